# needs: make
printf 'all: a b\n\tcat a b\na b:\n\techo $@ > $@\n' > Makefile
make -s -j2
make -q
echo $?
