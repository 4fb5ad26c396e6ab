#!/bin/bash
# Appends to a record with dd and waits for the disk after each step.
source "$(dirname "$0")/work.inc.sh"
head -c 65536 /dev/zero >block
if [ "$repaired" ]; then
  head -c $((size * 65536)) /dev/zero | dd of=record.bin bs=1M conv=fsync status=none
else
  for ((i = 0; i < size; i++)); do
    dd if=block of=record.bin bs=64K seek="$i" conv=notrunc,fsync status=none
  done
fi
compute
echo "$(stat -c %s record.bin) bytes"
