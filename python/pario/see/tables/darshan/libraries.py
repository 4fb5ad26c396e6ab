"""The modules of Darshan that count calls of libraries, as rows of functions: MPI communication
(APMPI), HDF5 and PnetCDF. These calls contain the calls of the modules below them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.darshan.log import Log, Module

#: Functions of a module: name, counters of calls, of seconds, of bytes.
_CALLS: Mapping[str, tuple[tuple[str, tuple[str, ...], str, str], ...]] = {
    "H5F": (("H5Fopen, H5Fclose", ("OPENS",), "F_META_TIME", ""),),
    "H5D": (
        ("H5Dread", ("READS",), "F_READ_TIME", "BYTES_READ"),
        ("H5Dwrite", ("WRITES",), "F_WRITE_TIME", "BYTES_WRITTEN"),
        ("H5Dopen, H5Dclose, H5Dflush", ("OPENS", "FLUSHES"), "F_META_TIME", ""),
    ),
    "PNETCDF_FILE": (
        ("ncmpi_open, ncmpi_close", ("OPENS", "REDEFS", "SYNCS"), "F_META_TIME", ""),
        ("ncmpi_wait", ("INDEP_WAITS", "COLL_WAITS"), "F_WAIT_TIME", ""),
    ),
    "PNETCDF_VAR": (
        ("ncmpi_get_var", ("INDEP_READS", "COLL_READS", "NB_READS"), "F_READ_TIME", "BYTES_READ"),
        (
            "ncmpi_put_var",
            ("INDEP_WRITES", "COLL_WRITES", "NB_WRITES"),
            "F_WRITE_TIME",
            "BYTES_WRITTEN",
        ),
        ("ncmpi_def_var", ("OPENS",), "F_META_TIME", ""),
    ),
}
#: Display names of the libraries, by module.
LIBRARIES: Mapping[str, str] = {
    "H5F": "HDF5",
    "H5D": "HDF5",
    "PNETCDF_FILE": "PnetCDF",
    "PNETCDF_VAR": "PnetCDF",
}
APMPI = "APMPI"
MODULES = frozenset((*_CALLS, APMPI))

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


def library_calls(log: Log, module: Module, processes: int) -> tuple[list[Calls], int]:
    """Return the functions of a module by process, and the number of its records. A record that
    sums all ranks is divided equally."""
    if module.name == APMPI:
        return _mpi_calls(log, module, processes)
    records = log.counters(module)
    category = LIBRARIES[module.name].lower()
    found = []
    for name, counters, seconds, moved in _CALLS[module.name]:
        calls = sum((np.maximum(records[counter], 0) for counter in counters), np.zeros(1))
        columns = (
            calls + np.zeros(len(records)),
            records[seconds],
            records[moved] if moved else np.zeros(len(records)),
        )
        parts = (_by_process(records["rank"], column, processes) for column in columns)
        found.append(Calls(name, category, *parts))
    return found, len(records)


def _by_process(
    rank: NDArray[np.int64], values: NDArray[np.generic], processes: int
) -> NDArray[np.float64]:
    known = np.maximum(np.asarray(values, np.float64), 0.0)
    own = (rank >= 0) & (rank < processes)
    parts = np.bincount(rank[own], known[own], minlength=processes)
    return np.asarray(parts + known[~own].sum() / max(processes, 1))


def _mpi_calls(log: Log, module: Module, processes: int) -> tuple[list[Calls], int]:
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
