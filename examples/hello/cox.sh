#!/bin/sh
# Waits until every rower is aboard, then tells the bank who rows.
set -eu

echo "listening for $PAI_TASK_ROLE_TASK_COUNT_rower rowers at $PAI_HOST_IP_cox_0:$PAI_PORT_LIST_cox_0_call"
crew=$(python3 post.py receive "$PAI_HOST_IP_cox_0" "$PAI_PORT_LIST_cox_0_call" "$PAI_TASK_ROLE_TASK_COUNT_rower")
echo "$crew"
boat=$(echo "$crew" | sort | paste -s -d ',' -)
python3 post.py send "$PAI_HOST_IP_bank_0" "$PAI_PORT_LIST_bank_0_call" "off they go: $boat"
echo "ready, row!"
