"""HDF5 that is linked into the program itself: the tracer sees the calls of shared libraries."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.libraries import is_of_linked_hdf5
from pario.see.tables.model import LAYERS, Job

#: Fewer calls on files by HDF5 are those of a program that moves large parts of datasets.
MANY_CALLS = 500


def explain_linked(job: Job) -> tuple[str, ...]:
    """Return a clause on calls of HDF5 that the log lacks, if HDF5 makes many calls on files; else
    none."""
    if not len(job.sites) or np.any(job.records["layer"] == LAYERS.index("hdf5")):
        return ()
    modules = [
        next((frame.module for frame in stack if is_of_linked_hdf5(frame)), "")
        for stack in job.stacks
    ]
    own = np.array([*map(bool, modules), False])[job.sites["stack"]]
    if int(job.sites["calls"][own].sum()) < MANY_CALLS:
        return ()
    program = modules[int(job.sites["stack"][own][0])].rpartition("/")[2]
    return (
        f"the calls of HDF5 cannot be seen, because it is linked into {program} (link the shared"
        " library, as h5cc -shlib does)",
    )
