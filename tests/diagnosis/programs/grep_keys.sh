#!/bin/bash
# Counts the lines of each key with a grep of its own through the whole file.
source "$(dirname "$0")/work.inc.sh"
keys() { seq -f "%04.0f5" 1 "$size"; }
if [ "$repaired" ]; then
  keys >keys.txt
  awk 'NR == FNR { wanted[$1]; next } { key = substr($1, 4, 5); n += key in wanted }
    END { print n + 0, "lines" }' keys.txt lines.txt
else
  total=0
  for key in $(keys); do
    n=$(grep -c "^...$key " lines.txt)
    total=$((total + n))
  done
  echo "$total lines"
fi
compute
