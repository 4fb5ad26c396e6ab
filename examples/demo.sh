#!/bin/sh
# examples/demo.sh [DIRECTORY]: runs the S3D-like kernel with the bad choice (every row of cells a write of its own) under pario, and shows
# what pario says about it. Needs `pario`, `mpicc` and `mpiexec` of one environment on the PATH or in $BIN.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/pario-demo.XXXXXX")}
PATH=${BIN:+$BIN:}$PATH
for tool in pario mpicc mpiexec make; do
  command -v $tool >/dev/null || { echo "demo: $tool is not on the PATH; pip install pario mpich (or set BIN to where it is)" >&2; exit 1; }
done
ranks=$(nproc)
[ "$ranks" -le 4 ] || ranks=4

mkdir -p "$work"
make -s -C "$here/s3d" BUILD="$work" MPICC=mpicc
cd "$work"
rm -rf demo.pario
set -- mpiexec -n "$ranks" ./s3d --size 64x64x64 --steps 4 --compute 0.3 --write independent
echo "\$ pario run -- $*"
pario run --output demo.pario --html demo.html -- "$@"
echo
echo "The same report with charts: $work/demo.html"
