split -l 3000 in/numbers part.
cat part.* | tee copy | cmp - in/numbers
ls part.*
tail -c 20 copy
