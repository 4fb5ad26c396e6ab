#!/bin/bash
# Starts cut for each line of a table.
source "$(dirname "$0")/work.inc.sh"
if [ "$repaired" ]; then
  head -n "$size" lines.txt | cut -d' ' -f1 >names.txt
else
  head -n "$size" lines.txt | while read -r line; do
    cut -d' ' -f1 <<<"$line"
  done >names.txt
fi
compute
echo "$(wc -l <names.txt) names"
