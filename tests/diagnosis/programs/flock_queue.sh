#!/bin/bash
# Two workers that hold a lock for the whole of their tasks.
source "$(dirname "$0")/work.inc.sh"
work() {
  for ((i = 0; i < size; i++)); do
    if [ "$repaired" ]; then
      compute
      flock ledger.lock -c "echo $1 >>ledger.txt"
    else
      (
        flock 9
        compute
        echo "$1" >>ledger.txt
      ) 9>ledger.lock
    fi
  done
}
work task &
work task &
wait
echo "$(wc -l <ledger.txt) entries"
