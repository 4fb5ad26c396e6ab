"""Frames of libraries: a call site is the innermost frame of the user's own code."""

from __future__ import annotations

import re

from pario.see.tables.model import Frame
from pario.see.tables.scripts import is_interpreter

#: Names of libraries whose frames are not the user's code, wherever they are installed.
_NAMES = re.compile(
    r"(?:ld-linux|ld-musl|libpario|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libc\+\+"
    r"|libgfortran|libquadmath|libgomp|libiomp5|libomp|libifcore|libifcoremt|libflang\w*"
    r"|lib\w*mpi\w*|libopen-\w+|libmpich\w*|libpmix|libprrte|libfabric|libuc[pst]|libucm"
    r"|libhdf5\w*|libnetcdf\w*|libpnetcdf|libadios2\w*|libsilo\w*|libconduit\w*|libcgns"
    r"|adios2_bindings"
    r"|libpython[\d.]*|libz|libzstd|liblz4|libbz2|liblzma|libsqlite3|libcurl|libssl|libcrypto"
    r"|libuv|liburing|libaio|libtbb|libjvm|libnode"
    r"|libarrow\w*|libparquet|libtorch\w*|libcuda\w*|libnccl)(?:[-_.].*)?"
)
#: Libraries that start every thread and answer every call: their functions say nothing.
_SYSTEM_NAMES = re.compile(r"(?:ld-linux|ld-musl|libpario|libc|libpthread)(?:[-_.].*)?")
#: Functions of the start code that the linker adds to programs.
_STARTS = ("_start", "__libc_start_main", "_init", "_fini")
#: Functions of the standard libraries of C++ and Rust, which are parts of programs.
_STANDARD_FUNCTIONS = re.compile(r"<?(?:std|core|alloc)::")
#: Functions of HDF5: H5Dread, H5FD__mpio_read. A static library is a part of the program.
_HDF5_FUNCTIONS = re.compile(r"H5[A-Z]{0,2}2?_+\w+|H5[ADEFGILOPRSTZ][a-z]\w*")
_SYSTEM = re.compile(r"/(?:usr/(?:local/)?)?lib(?:32|64)?/")
_PROGRAMS = re.compile(r"/(?:usr/(?:local/)?)?s?bin/|/usr/libexec/")
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")
_STANDARD_LIBRARY = re.compile(r"/lib(?:32|64)?/python3\.\d+\w?/|\.zip/|^<(?!stdin>|string>)")
#: Sources of functions that compilers inline into the user's code, and of Rust's standard library.
_HEADERS = re.compile(
    r"/usr/include/|/usr/lib/gcc|/c\+\+/\d+|/include/c\+\+/|/bits/|^/rustc/|/\.cargo/registry/"
)


def is_user_code(frame: Frame) -> bool:
    """Tell whether a frame belongs to the user's program, not to a library."""
    if not frame.module:
        return bool(frame.file) and not (
            _PACKAGES.search(frame.file) or _STANDARD_LIBRARY.search(frame.file)
        )
    return not (
        frame.function in _STARTS
        or _STANDARD_FUNCTIONS.match(frame.function)
        or _HDF5_FUNCTIONS.fullmatch(frame.function)
        or _is_of_interpreter(frame)
        or _NAMES.fullmatch(frame.module.rpartition("/")[2])
        or _SYSTEM.match(frame.module)
        or _PACKAGES.search(frame.module)
        or "/lib-dynload/" in frame.module
        or _HEADERS.search(frame.file)
    )


def is_of_linked_hdf5(frame: Frame) -> bool:
    """Tell whether a frame belongs to HDF5 that is a part of the program, not a shared library."""
    shared = _NAMES.fullmatch(frame.module.rpartition("/")[2]) or _PACKAGES.search(frame.module)
    return bool(frame.module and not shared and _HDF5_FUNCTIONS.fullmatch(frame.function))


def is_installed_program(path: str) -> bool:
    """Tell whether a file is a program of the system. Its only names are those that it exports: the
    nearest one, such as main, is not the function of an address."""
    return bool(_PROGRAMS.match(path))


def is_package(frame: Frame) -> bool:
    """Tell whether a Python frame belongs to an installed package."""
    return not frame.module and bool(_PACKAGES.search(frame.file))


def is_own(frame: Frame) -> bool:
    """Tell whether a frame belongs to pario's library."""
    return frame.module.rpartition("/")[2].startswith("libpario")


def user_depth(stack: tuple[Frame, ...]) -> int:
    """Return the index of the call site in a stack: the innermost frame of the user's code, else
    of a Python package, of an interpreter, or of a named function of a library; -1 if there is
    none."""
    for belongs in (is_user_code, is_package, _is_of_interpreter, _is_named):
        for depth, frame in enumerate(stack):
            if belongs(frame):
                return depth
    return -1


def _is_of_interpreter(frame: Frame) -> bool:
    """Tell whether a frame belongs to an interpreter, whose scripts are the user's code."""
    return is_interpreter(frame.module)


def _is_named(frame: Frame) -> bool:
    return bool(frame.function) and not _SYSTEM_NAMES.fullmatch(frame.module.rpartition("/")[2])
