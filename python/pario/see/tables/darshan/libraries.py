"""The time that calls of libraries (HDF5, PnetCDF) spend in the calls on files that they make.
Darshan counts both, and does not tell which calls were made inside which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import LAYERS

_POSIX, _MPIIO = LAYERS.index("posix"), LAYERS.index("mpiio")
_COUNTERS = {"read": ("reads", "bytes_read"), "write": ("writes", "bytes_written"), "other": ()}


def add_inner(records: NDArray[Any], file_of: Mapping[int, int], files: int) -> None:
    """Set the calls inside the rows of libraries: all calls of POSIX and MPI-IO on the same file,
    as far as the time of the library's calls can hold them, in proportion to its time. ``file_of``
    has the file of each dataset or variable."""
    above = np.flatnonzero(records["layer"] > _MPIIO)
    if not len(above):
        return
    file = np.array([file_of.get(part, part) for part in records["file"][above].tolist()])
    outermost = records["layer"] == _MPIIO
    has_mpiio = np.bincount(records["file"][outermost], minlength=files) > 0
    below = outermost | ((records["layer"] == _POSIX) & ~has_mpiio[records["file"]])
    for part, counters in _COUNTERS.items():
        own = records[f"{part}_time"][above]
        whole = np.bincount(file, own, files)
        inner = np.bincount(records["file"][below], records[f"{part}_time"][below], files)
        inner = np.minimum(inner, whole)
        share = np.divide(own, whole[file], out=np.zeros(len(own)), where=whole[file] > 0)
        records[f"inner_{part}_time"][above] = inner[file] * share
        for counter in counters:
            total = np.bincount(records["file"][below], records[counter][below], files)
            records[f"inner_{counter}"][above] = np.round(total[file] * share)
