find in -type f -printf '%f %s\n' | sort
find in -name 'n*' | xargs -n1 -P2 wc -l
du -a in | wc -l
