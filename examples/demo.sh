#!/bin/sh
# examples/demo.sh [DIRECTORY]: runs the S3D-like kernel in its slowest way (a separate write for
# each row of cells) under pario, and shows pario's report. Needs `pario`, `mpicc` and `mpiexec` of
# one environment on the PATH or in $BIN.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/pario-demo.XXXXXX")}
PATH=${BIN:+$BIN:}$PATH
for tool in pario mpicc mpiexec make; do
  if ! command -v $tool >/dev/null; then
    echo "demo: $tool is not on the PATH; pip install pario mpich (or set BIN to its folder)" >&2
    exit 1
  fi
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
