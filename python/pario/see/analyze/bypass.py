"""Runs that asked for pario's MPI-IO and made no MPI-IO call: names the library that wrote its
files by other calls, and the setting that makes it use MPI-IO."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pario.see.analyze.facts import Facts
from pario.see.tables.model import FILE_LAYERS, LAYERS, Job
from pario.settings import uses_own_mpiio

#: Matches no name.
_NONE = "(?!)"


@dataclass(frozen=True)
class _Library:
    """A library that may write without MPI-IO, patterns of the names of its files, its functions
    and its shared libraries, and the layer of its calls."""

    name: str
    files: str
    function: str
    module: str
    remedy: str
    layer: str = ""


_LIBRARIES = (
    _Library(
        "HDF5's subfiling driver",
        r"\.subfile_\d+_\d+_of_\d+$",
        "H5FD__?subfiling",
        _NONE,
        "H5Pset_fapl_mpio() in place of H5Pset_fapl_subfiling() makes it use MPI-IO",
    ),
    _Library(
        "ADIOS2's BP engine",
        r"\.bp/(data\.\d+|md\.\d+|md\.idx|mmd\.0)$",
        "adios2",
        "libadios2",
        "its engine HDF5, or the transport library MPI, use MPI-IO",
        "adios2",
    ),
    _Library(
        "PnetCDF's own driver GIO",
        _NONE,
        "ncmpi",
        "libpnetcdf",
        "nc_driver=mpiio in PNETCDF_HINTS makes it use MPI-IO",
        "pnetcdf",
    ),
)


def explain_bypass(facts: Facts) -> tuple[str, ...]:
    """Return a message if pario's MPI-IO was asked for and the ranks wrote or read files without an
    MPI-IO call; else none."""
    job = facts.job
    asked = uses_own_mpiio(job.metadata.get("env", {}))
    if not asked or not facts.lanes.mpi or _calls_mpiio(job) or not facts.stored.any():
        return ()
    library = _find_library(job)
    text = "pario's MPI-IO was asked for, but no rank called MPI-IO"
    if library is None:
        return (f"{text}: the program uses its files by other calls",)
    return (f"{text}: {library.name} writes by other calls; {library.remedy}",)


def _calls_mpiio(job: Job) -> bool:
    return bool(len(job.mpiio) or np.any(job.records["layer"] == LAYERS.index("mpiio")))


def _find_library(job: Job) -> _Library | None:
    """The library that made calls on files, by its own calls, its files or the call stacks."""
    used = job.records[job.records["layer"] < len(FILE_LAYERS)]
    paths = [job.path(int(file)) for file in np.unique(used["file"]) if file >= 0]
    frames = {frame for stack in job.stacks for frame in stack}
    functions = {frame.function for frame in frames}
    layers = {LAYERS[layer] for layer in np.unique(job.records["layer"])}
    modules = {frame.module.rpartition("/")[2] for frame in frames}
    return next(
        (
            library
            for library in _LIBRARIES
            if library.layer in layers
            or any(re.search(library.files, path) for path in paths)
            or any(re.match(library.function, name) for name in functions)
            or any(re.match(library.module, name) for name in modules)
        ),
        None,
    )
