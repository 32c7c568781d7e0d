#!/bin/sh
# Tells the cox that this rower is aboard.
set -eu

me="rower $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
echo "I am $me of $PAI_TASK_ROLE_TASK_COUNT_rower in $PAI_JOB_NAME, at $PAI_CURRENT_CONTAINER_IP"
python3 post.py send "$PAI_HOST_IP_cox_0" "$PAI_PORT_LIST_cox_0_call" "$me aboard"
echo "the cox knows"
