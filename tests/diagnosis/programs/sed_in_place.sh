#!/bin/bash
# Fills a template in with one sed -i per value.
source "$(dirname "$0")/work.inc.sh"
head -n 2000 lines.txt >report.txt
if [ "$repaired" ]; then
  for ((i = 0; i < size; i++)); do echo "s/^0*$i value/$i done/"; done >values.sed
  sed -i -f values.sed report.txt
else
  for ((i = 0; i < size; i++)); do sed -i "s/^0*$i value/$i done/" report.txt; done
fi
compute
echo "$(grep -c done report.txt) values"
