#!/bin/bash
# Gives each line of a list a file of its own, and counts them.
source "$(dirname "$0")/work.inc.sh"
if [ "$repaired" ]; then
  head -n "$size" lines.txt >parts.txt
  lines=$(wc -l <parts.txt)
else
  mkdir parts
  head -n "$size" lines.txt | split -l 1 -a 5 - parts/part.
  lines=$(cat parts/* | wc -l)
fi
compute
echo "$lines lines"
