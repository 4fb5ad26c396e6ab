#!/bin/bash
# Adds one file after the other to an archive; tar reads the archive to its end each time.
source "$(dirname "$0")/work.inc.sh"
cd items || exit 1
if [ "$repaired" ]; then
  ls | head -n "$size" | tar cf ../items.tar -T -
else
  ls | head -n "$size" | while read -r name; do tar rf ../items.tar "$name"; done
fi
cd ..
compute
echo "$(tar tf items.tar | wc -l) members"
