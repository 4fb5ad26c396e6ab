cp -a in copy
cat copy/* | sha256sum
mv copy/words copy/moved
ls copy
rm -r copy
cat in/none
