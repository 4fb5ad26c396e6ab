tar cf a.tar in
tar tf a.tar
mkdir out
tar xf a.tar -C out
diff -r in out/in
rm a.tar
