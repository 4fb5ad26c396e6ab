grep -c 7 in/numbers
sed -n 's/1/x/p' in/numbers | tail -1
awk '{s += $1} END {print s}' in/numbers
cut -c1-3 in/words | tr a-z A-Z
