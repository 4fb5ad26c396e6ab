#!/bin/sh
# The init of a user-mode Linux (test_quotas.py): runs the cases of quotas.py, each as a user of its
# own, on an XFS with quotas. The root file system is that of this machine. Variables of the
# kernel's command line: PARIO_PLACE, a folder for the mount point and the results; PARIO_ROOT, the
# checkout; PARIO_PYTHON, the interpreter; PARIO_LIMIT, the limit of each quota.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -o uquota,gquota,pquota /dev/ubda "$PARIO_PLACE/mount" || echo "cannot mount XFS"

limit() { xfs_quota -x -c "$*" "$PARIO_PLACE/mount"; }

number=1000
while read -r case quota; do
  number=$((number + 1))
  place=$PARIO_PLACE/mount/$case
  mkdir "$place"
  chown $number:$number "$place"
  case $quota in
    user) limit limit bhard="$PARIO_LIMIT" $number ;;
    directory)
      limit project -s -p "$place" $number
      limit limit -p bhard="$PARIO_LIMIT" $number
      ;;
    # The group of new files, which is none of the process's: no check before a save can know it.
    owner)
      chgrp 999 "$place" && chmod g+s "$place"
      limit limit -g bhard="$PARIO_LIMIT" 999
      ;;
  esac
  cd "$PARIO_ROOT" || exit
  HOME=$place OPENBLAS_NUM_THREADS=1 PYTHONPATH=$PARIO_ROOT setpriv --reuid $number \
    --regid $number --clear-groups "$PARIO_PYTHON" -m tests.filesystems.quotas "$case" "$place" \
    >"$PARIO_PLACE/$case.out" 2>&1
  rm -r "$place"
done <"$PARIO_PLACE/cases"
umount "$PARIO_PLACE/mount"
echo o >/proc/sysrq-trigger
sleep 10
