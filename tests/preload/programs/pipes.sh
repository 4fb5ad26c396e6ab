seq 20000 | head -2
yes | head -n 1000 | md5sum
(sleep 0.01; echo late) | cat
cat in/numbers | (read a; echo $a; cat > rest)
wc -l < rest
seq 100000 | head -1
echo ${PIPESTATUS[@]}
