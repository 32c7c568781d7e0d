#!/bin/sh
# Hears from the cox who rows, and fails unless every rower is among them.
set -eu

news=$(python3 post.py receive "$PAI_HOST_IP_bank_0" "$PAI_PORT_LIST_bank_0_call" 1)
echo "$news"
rower=0
while [ "$rower" -lt "$PAI_TASK_ROLE_TASK_COUNT_rower" ]; do
    case "$news" in
    *"rower $rower aboard"*) ;;
    *) echo "rower $rower is missing" >&2 && exit 1 ;;
    esac
    rower=$((rower + 1))
done
echo "all $PAI_TASK_ROLE_TASK_COUNT_rower rowers seen: hello, regatta"
