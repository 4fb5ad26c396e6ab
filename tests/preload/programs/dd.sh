dd if=in/numbers of=part bs=1000 count=20 skip=3 2>/dev/null
dd if=in/numbers bs=512 status=none | sha256sum
wc -c part
