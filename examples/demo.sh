#!/bin/sh
# examples/demo.sh [DIRECTORY]: sees why an MPI kernel writes slowly (a separate write for each row
# of cells), then sees, repairs and proves the same of a program that writes a log line by line.
# Needs `pario` and `python` of one environment on the PATH or in $BIN; without `mpicc`, `mpiexec`
# and `make` the first part is left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/pario-demo.XXXXXX")}
PATH=${BIN:+$BIN:}$PATH
missing() { ! command -v "$1" >/dev/null; }
if missing pario; then
  echo "demo: pario is not on the PATH; install it, or set BIN to its folder" >&2
  exit 1
fi
mkdir -p "$work"
cd "$work"

if missing mpicc || missing mpiexec || missing make; then
  echo "skipped: the report of an MPI program (mpicc, mpiexec or make is not on the PATH)"
else
  ranks=$(nproc)
  [ "$ranks" -le 4 ] || ranks=4
  make -s -C "$here/s3d" BUILD="$work" MPICC=mpicc
  rm -rf demo.pario
  set -- mpiexec -n "$ranks" ./s3d --size 64x64x64 --steps 4 --compute 0.3 --write independent
  printf '\n1. See\n$ pario run -- %s\n' "$*"
  pario run --output demo.pario --html demo.html -- "$@"
fi

rm -rf fix.pario log.txt
cp "$here/tutorials/lines/exercise.py" lines.py
set -- python lines.py log.txt
printf '\n2. Fix and prove\n$ pario run --fix --verify log.txt -- %s\n' "$*"
pario run --fix --verify log.txt --output fix.pario --html fix.html -- "$@"
echo
[ ! -e demo.html ] || echo "The report with charts: $work/demo.html"
echo "The comparison with charts: $work/fix.html"
