# needs: gcc
printf '#include <stdio.h>\nint main(void){puts("made");return 3;}\n' > p.c
gcc -O2 -o p p.c
./p
echo $?
rm p
