"""Darshan's module of MPI communication (APMPI), as rows of functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.darshan.log import Log, Module

APMPI = "APMPI"

_P2P = ("SEND", "SSEND", "RSEND", "BSEND", "RECV", "SENDRECV", "SENDRECV_REPLACE")
_P2P_STARTED = ("ISEND", "ISSEND", "IRSEND", "IBSEND", "IRECV")
_RMA = ("PUT", "GET", "ACCUMULATE", "GET_ACCUMULATE", "FETCH_AND_OP", "COMPARE_AND_SWAP")
_WAITS = ("PROBE", "IPROBE", "TEST", "WAIT")
#: The row of the time that APMPI spends in its own barriers before collectives: waiting.
SYNC = "MPI_Barrier before collectives"


@dataclass
class Calls:
    """The calls of one function by process of a log."""

    name: str
    category: str  # see FUNCTION
    calls: NDArray[np.float64]
    seconds: NDArray[np.float64]
    bytes: NDArray[np.float64]


def _by_process(
    rank: NDArray[np.int64], values: NDArray[np.generic], processes: int
) -> NDArray[np.float64]:
    known = np.maximum(np.asarray(values, np.float64), 0.0)
    own = (rank >= 0) & (rank < processes)
    parts = np.bincount(rank[own], known[own], minlength=processes)
    return np.asarray(parts + known[~own].sum() / max(processes, 1))


def mpi_calls(log: Log, module: Module, processes: int) -> tuple[list[Calls], int]:
    """Return the functions of MPI by process, and the number of records. A record that sums all
    ranks is divided equally."""
    table = log.mpi_counters(module)
    rank = table["rank"]
    found = []
    for name in _operations(table.dtype.names or ()):
        columns = (
            table[f"{name}_CALL_COUNT"],
            table[f"{name}_TOTAL_TIME"],
            table[f"{name}_TOTAL_BYTES"]
            if f"{name}_TOTAL_BYTES" in (table.dtype.names or ())
            else np.zeros(len(table)),
        )
        parts = [_by_process(rank, column, processes) for column in columns]
        if parts[0].any():
            found.append(Calls(f"MPI_{name[4:].capitalize()}", _category(name[4:]), *parts))
    sync = _by_process(rank, table["MPI_TOTAL_COMM_SYNC_TIME"], processes)
    if sync.any():
        calls = sum((part.calls for part in found if part.category == "collective"), 0 * sync)
        found.append(Calls(SYNC, "collective", calls, sync, 0 * sync))
    return found, len(table)


def _operations(names: tuple[str, ...]) -> Iterator[str]:
    return (name.removesuffix("_CALL_COUNT") for name in names if name.endswith("_CALL_COUNT"))


def _category(name: str) -> str:
    """Return the category of an MPI function, such as ``SEND``."""
    if name in _P2P or name in _P2P_STARTED:
        return "p2p"
    if name in _RMA or name.startswith("WIN_"):
        return "rma"
    return "wait" if name.startswith(_WAITS) else "collective"
