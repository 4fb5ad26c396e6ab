#!/bin/bash
# Cuts a column with stdbuf, as for a terminal, but into a file.
source "$(dirname "$0")/work.inc.sh"
if [ "$repaired" ]; then
  cut -c1-6 lines.txt >column.txt
else
  stdbuf -oL cut -c1-6 lines.txt >column.txt
fi
compute
echo "$size lines, $(cksum <column.txt)"
