"""The names of the calls that synchronise files, in texts."""

from __future__ import annotations

import os

import numpy as np

from pario.see.analyze.arrays import Ints, sums
from pario.see.analyze.cells import MPIIO
from pario.see.analyze.facts import Facts
from pario.see.tables.model import EVENT_KINDS

_OF_REQUESTS = {"libaio_sync": "fsync requests", "io_uring_sync": "fsync requests of io_uring"}


def sync_words(facts: Facts, rows: Ints) -> str:
    """Return the kinds of the synchronisations in rows, most first: ``fdatasync calls and O_DSYNC
    writes``. Without events: ``fsync calls``."""
    kinds = [_OF_REQUESTS.get(name, f"{name} calls") for name in _functions(facts, rows)]
    if not kinds and facts.records["syncs"][rows].any():
        mpiio = (facts.records["layer"][rows] == MPIIO).all()
        kinds = ["MPI_File_sync calls" if mpiio else "fsync calls"]
    if facts.records["sync_writes"][rows].any():
        flags = int(np.bitwise_or.reduce(facts.records["open_flags"][rows]))
        is_full = (flags & os.O_SYNC) == os.O_SYNC  # O_SYNC includes the bits of O_DSYNC
        kinds.append("O_SYNC writes" if is_full else "O_DSYNC writes")
    return " and ".join(dict.fromkeys(kinds))


def _functions(facts: Facts, rows: Ints) -> list[str]:
    """Return the functions that synchronised the files of rows, by events, most calls first."""
    events, names = facts.job.events, facts.job.function_names
    kind = EVENT_KINDS.index("sync")
    chosen = (events["kind"] == kind) & np.isin(events["file"], np.unique(facts.file[rows]))
    calls = sums(events["function"][chosen], events["count"][chosen], len(names))
    order = np.argsort(-calls, kind="stable")
    return [names[number] for number in order if calls[number] > 0]
