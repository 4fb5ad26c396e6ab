# needs: perl
perl -ne '$s += $_; END { print "$s\n" }' in/numbers
perl -e 'open F, ">pf"; print F "x" x 5000; close F; print -s "pf"; exec "echo", " end"'
