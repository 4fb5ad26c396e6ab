# untested: never built by Spack
from spack.package import *


class Pario(PythonPackage):
    """See why a program's I/O is slow, fix it without changing the program, and prove it."""

    # The address and the checksum of a release, or the address of the repository:
    # url = ".../pario-0.1.0.tar.gz"
    # version("0.1.0", sha256="...")
    # git = ".../pario.git"
    # version("main", branch="main")

    license("Apache-2.0")

    variant("checkpoint", default=False, description="pario.checkpoint")
    variant("darshan", default=False, description="Darshan logs")
    variant("export", default=False, description="Parquet files")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    conflicts("%gcc@:10", msg="pario needs C++20: GCC 11 or later")
    conflicts("%clang@:15", msg="pario needs C++20: Clang 16 or later")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-scikit-build-core@1.1:", type="build")
    depends_on("py-nanobind@3.1:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")
    depends_on("py-pip", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("zstd libs=static", type="build")
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-h5py@3.10:", type="run", when="+checkpoint")
    depends_on("py-darshan@3.4.4:", type="run", when="+darshan")
    depends_on("py-pyarrow@15:", type="run", when="+export")
