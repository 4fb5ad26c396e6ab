"""The program's own calls: those of each row without the calls that its MPI-IO library made, and
the calls of libraries such as HDF5 on a file once."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, Mask
from pario.see.analyze.cells import MPIIO, POSIX, find_rows, of_library
from pario.see.tables.model import Job

#: Counters of calls, and the counters of those among them that were made inside MPI-IO calls.
NESTED: dict[str, str] = {
    "reads": "nested_reads",
    "writes": "nested_writes",
    "opens": "nested_opens",
    "failed_opens": "nested_failed_opens",
    "closes": "nested_closes",
    "seeks": "nested_seeks",
    "stats": "nested_stats",
    "syncs": "nested_syncs",
    "others": "nested_others",
}
#: Logs of earlier versions have only these, and Darshan logs have none.
_TRANSFERS = ("reads", "writes")


def own_calls(job: Job, name: str) -> Floats:
    """Return, per record, the calls ``name`` that the program made itself. Where a log does not
    tell them apart, the POSIX calls of a process on a file that it opened through MPI-IO count as
    the library's. Calls of libraries on a whole file, such as H5Fopen, count as the calls
    below them."""
    calls = np.where(_above_files(job), 0.0, np.asarray(job.records[name], np.float64))
    if name not in NESTED:
        return calls
    own = np.maximum(calls - job.records[NESTED[name]], 0.0)
    if name in _TRANSFERS:
        own = np.where(
            find_submitted_below(job), np.minimum(own, calls - _requests(job, name)), own
        )
    return np.where(_below(job), 0.0, own) if _is_assumed(job, name) else own


def find_submitted_below(job: Job) -> Mask:
    """True for POSIX rows whose asynchronous requests MPI-IO submitted, for its nonblocking calls;
    they complete later, outside of MPI-IO calls."""
    records = job.records
    submitted = (records["async_calls"] > 0) & (records["nested_rest"] >= records["async_calls"])
    return np.asarray((records["layer"] == POSIX) & submitted)


def _requests(job: Job, name: str) -> Floats:
    return np.asarray(job.records[f"async_{name}"], np.float64)


def _is_assumed(job: Job, name: str) -> bool:
    """True if the log cannot hold the number of nested calls, although it has MPI-IO."""
    records = job.records
    if not (records["layer"] == MPIIO).any():
        return False
    if name in _TRANSFERS:
        return job.format == "darshan"
    return not any(records[NESTED[kind]].any() for kind in NESTED if kind not in _TRANSFERS)


def _above_files(job: Job) -> Mask:
    """True for rows of libraries of files that have rows of other layers: not for datasets."""
    records = job.records
    of_files = np.zeros(len(job.files), bool)
    of_files[records["file"][~of_library(records["layer"])]] = True
    return np.asarray(of_library(records["layer"]) & of_files[records["file"]])


def _below(job: Job) -> Mask:
    """True for POSIX rows of a process and file with an MPI-IO row."""
    records = job.records
    above = find_rows(records, records["process"], records["file"], np.full(len(records), MPIIO))
    return np.asarray((records["layer"] == POSIX) & (above >= 0))
