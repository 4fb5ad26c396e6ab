cat in/words >&-
echo $?
cat <&-
echo $?
sh -c 'echo x' 2>&-
ls in/none 2>&-
echo $?
env -i /bin/echo plain
