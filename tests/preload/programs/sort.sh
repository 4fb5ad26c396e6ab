sort --parallel=2 -S 1M -n -r in/numbers -o sorted
head -3 sorted
sort in/words | uniq -c | sort -rn | head -2
