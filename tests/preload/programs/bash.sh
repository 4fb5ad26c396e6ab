exec 3>log
echo a >&3
(echo b >&3; exit 7)
echo $?
exec 3>&-
cat < log
x=$(cat log | wc -l)
echo $x
read y < in/words
echo $y
{ echo out; echo err >&2; } > both 2>&1
cat both
echo more >> both
exec 5<both
read -u 5 line
echo $line
cat <&5
mapfile -t m < both
echo ${#m[@]}
