gzip -nk in/numbers
gzip -t in/numbers.gz
zcat in/numbers.gz | sha256sum
