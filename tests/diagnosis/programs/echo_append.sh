#!/bin/bash
# Appends each line to the log with a redirection of its own.
source "$(dirname "$0")/work.inc.sh"
if [ "$repaired" ]; then
  seq -f "step %.0f done" "$size" >steps.log
else
  for ((i = 1; i <= size; i++)); do echo "step $i done" >>steps.log; done
fi
compute
echo "$size steps"
