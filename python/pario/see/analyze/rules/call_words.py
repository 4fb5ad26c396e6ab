"""The names of functions in texts, as they stand in the source of a program."""

from __future__ import annotations

import os
import re

import numpy as np

from pario.see.analyze.arrays import Ints, sums
from pario.see.analyze.cells import MPIIO
from pario.see.analyze.facts import Facts
from pario.see.tables.model import EVENT_KINDS

#: Functions that ask for the state of a file, all called stat in texts.
_STAT = re.compile(r"f?stat(64|at|at64|x)?|lstat(64)?|__\w*stat(64|at|at64)?|access|faccessat")
_SHARE = 0.1  # of the calls: functions with fewer are not named
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
        of_calls = not flags & os.O_DSYNC  # pwritev2 with RWF_DSYNC or RWF_SYNC
        kinds.append(
            "RWF_DSYNC writes" if of_calls else "O_SYNC writes" if is_full else "O_DSYNC writes"
        )
    return " and ".join(dict.fromkeys(kinds))


def stat_words(facts: Facts, rows: Ints) -> str:
    """Return the kinds of the questions about the files of rows: ``getxattr calls``; ``stat calls``
    without events, and for all usual ones."""
    names = name_functions(facts, rows, "stat")
    return f"{names or 'stat'} calls"


def name_functions(facts: Facts, rows: Ints, kind: str) -> str:
    """Return the functions of a kind that make most calls on the files of rows, at most two:
    ``chmod and utime``; empty without events."""
    calls = _count_calls(facts, rows, kind)
    names = [
        "stat" if _STAT.fullmatch(name) else name
        for name, count in calls.items()
        if count >= _SHARE * sum(calls.values())
    ]
    return " and ".join(list(dict.fromkeys(names))[:2])


def _functions(facts: Facts, rows: Ints) -> list[str]:
    """Return the functions that synchronised the files of rows, by events, most calls first."""
    return list(_count_calls(facts, rows, "sync"))


def _count_calls(facts: Facts, rows: Ints, kind: str) -> dict[str, float]:
    """Return the calls of each function of a kind on the files of rows, by events, most first."""
    events, names = facts.job.events, facts.job.function_names
    chosen = events["kind"] == EVENT_KINDS.index(kind)
    chosen &= np.isin(events["file"], np.unique(facts.file[rows]))
    calls = sums(events["function"][chosen], events["count"][chosen], len(names))
    order = np.argsort(-calls, kind="stable")
    return {names[number]: float(calls[number]) for number in order if calls[number] > 0}
