"""The mapping of Darshan's counters to the table model: one table per module, and rules for
counters that Darshan does not separate.

Darshan has one time for all metadata calls (in ``other_time`` here; ``Job.has`` lacks
``meta_split``), counts unaligned calls and strides for reads and writes together (shared out here
by the numbers of reads and writes), and adds the time of fsync to the write time.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import LAYERS
from pario.see.tables.rows import MOMENTS, new_records

_SIZES = (
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
)

#: Field of RECORD: Darshan counters whose sum it is.
_COMMON: Mapping[str, tuple[str, ...]] = {
    "bytes_read": ("BYTES_READ",),
    "bytes_written": ("BYTES_WRITTEN",),
    "read_time": ("F_READ_TIME",),
    "write_time": ("F_WRITE_TIME",),
    "other_time": ("F_META_TIME",),
    "first_open": ("F_OPEN_START_TIMESTAMP",),
    "last_close": ("F_CLOSE_END_TIMESTAMP",),
    "first_read": ("F_READ_START_TIMESTAMP",),
    "last_read": ("F_READ_END_TIMESTAMP",),
    "first_write": ("F_WRITE_START_TIMESTAMP",),
    "last_write": ("F_WRITE_END_TIMESTAMP",),
}
_SLOWEST = {
    "slowest_read_time": ("F_MAX_READ_TIME",),
    "slowest_write_time": ("F_MAX_WRITE_TIME",),
    "slowest_read_size": ("MAX_READ_TIME_SIZE",),
    "slowest_write_size": ("MAX_WRITE_TIME_SIZE",),
    "switches": ("RW_SWITCHES",),
}
_FIELDS: dict[str, Mapping[str, tuple[str, ...]]] = {
    "POSIX": {
        **_COMMON,
        **_SLOWEST,
        "opens": ("OPENS",),
        "reads": ("READS",),
        "writes": ("WRITES",),
        "seeks": ("SEEKS",),
        "stats": ("STATS",),
        "maps": ("MMAPS",),
        "syncs": ("FSYNCS", "FDSYNCS"),
        "others": ("RENAME_SOURCES", "RENAME_TARGETS"),
        "consecutive_reads": ("CONSEC_READS",),
        "consecutive_writes": ("CONSEC_WRITES",),
        "forward_reads": ("SEQ_READS",),  # consecutive ones included: see _derive
        "forward_writes": ("SEQ_WRITES",),
        "block_size": ("FILE_ALIGNMENT",),
        "end_read": ("MAX_BYTE_READ",),
        "end_written": ("MAX_BYTE_WRITTEN",),
    },
    "STDIO": {
        **_COMMON,
        "opens": ("OPENS", "FDOPENS"),
        "reads": ("READS",),
        "writes": ("WRITES",),
        "seeks": ("SEEKS",),
        "flushes": ("FLUSHES",),
        "end_read": ("MAX_BYTE_READ",),
        "end_written": ("MAX_BYTE_WRITTEN",),
    },
    "MPI-IO": {
        **_COMMON,
        **_SLOWEST,
        "opens": ("INDEP_OPENS", "COLL_OPENS"),
        "reads": ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
        "writes": ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
        "syncs": ("SYNCS",),
        "views": ("VIEWS",),
        "collective_opens": ("COLL_OPENS",),
        "collective_reads": ("COLL_READS", "SPLIT_READS"),
        "collective_writes": ("COLL_WRITES", "SPLIT_WRITES"),
        "nonblocking_calls": ("NB_READS", "NB_WRITES"),
        "open_flags": ("MODE",),
    },
    "DFS": {
        **_COMMON,
        **_SLOWEST,
        "opens": ("OPENS", "GLOBAL_OPENS", "LOOKUPS"),
        "reads": ("READS", "READXS"),
        "writes": ("WRITES", "WRITEXS"),
        "stats": ("STATS", "GET_SIZES"),
        "others": ("PUNCHES", "REMOVES"),
    },
    "DAOS": {
        **_COMMON,
        **_SLOWEST,
        "opens": ("OBJ_OPENS", "ARRAY_OPENS", "KV_OPENS"),
        "reads": ("OBJ_FETCHES", "ARRAY_READS", "KV_GETS"),
        "writes": ("OBJ_UPDATES", "ARRAY_WRITES", "KV_PUTS"),
        "stats": ("ARRAY_GET_SIZES", "ARRAY_STATS"),
        "others": (
            "OBJ_PUNCHES",
            "OBJ_DKEY_PUNCHES",
            "OBJ_AKEY_PUNCHES",
            "OBJ_DKEY_LISTS",
            "OBJ_AKEY_LISTS",
            "OBJ_RECX_LISTS",
            "ARRAY_SET_SIZES",
            "ARRAY_PUNCHES",
            "ARRAY_DESTROYS",
            "KV_REMOVES",
            "KV_LISTS",
            "KV_DESTROYS",
        ),
    },
}
#: Calls of libraries: on files, and on datasets or variables. PnetCDF's waits move the bytes of
#: non-blocking calls.
_FIELDS_OF_LIBRARIES: dict[str, Mapping[str, tuple[str, ...]]] = {
    "H5F": {
        "opens": ("OPENS",),
        "flushes": ("FLUSHES",),
        "other_time": ("F_META_TIME",),
        "first_open": ("F_OPEN_START_TIMESTAMP",),
        "last_close": ("F_CLOSE_END_TIMESTAMP",),
    },
    "H5D": {
        **_COMMON,
        **_SLOWEST,
        "opens": ("OPENS",),
        "reads": ("READS",),
        "writes": ("WRITES",),
        "flushes": ("FLUSHES",),
    },
    "PNETCDF_FILE": {
        "opens": ("CREATES", "OPENS"),
        "flushes": ("SYNCS", "INDEP_WAITS", "COLL_WAITS"),
        "others": ("REDEFS",),
        "other_time": ("F_META_TIME", "F_WAIT_TIME"),
        "first_open": ("F_OPEN_START_TIMESTAMP",),
        "last_close": ("F_CLOSE_END_TIMESTAMP",),
    },
    "PNETCDF_VAR": {
        **_COMMON,
        **_SLOWEST,
        "reads": ("INDEP_READS", "COLL_READS", "NB_READS"),
        "writes": ("INDEP_WRITES", "COLL_WRITES", "NB_WRITES"),
        "collective_reads": ("COLL_READS",),
        "collective_writes": ("COLL_WRITES",),
        "nonblocking_calls": ("NB_READS", "NB_WRITES"),
    },
}
#: Layers of the calls of libraries, which contain calls of the modules below them.
LIBRARY_LAYERS: dict[str, str] = {
    "H5F": "hdf5",
    "H5D": "hdf5",
    "PNETCDF_FILE": "pnetcdf",
    "PNETCDF_VAR": "pnetcdf",
}
#: Calls to DAOS, by files or by objects, have the place of POSIX calls.
MODULE_LAYERS: dict[str, str] = {
    "POSIX": "posix",
    "STDIO": "stdio",
    "MPI-IO": "mpiio",
    "DFS": "posix",
    "DAOS": "posix",
}

#: Fields of rows that sum all ranks.
_RANKS = {
    "slowest_rank": "SLOWEST_RANK",
    "fastest_rank": "FASTEST_RANK",
    "slowest_rank_time": "F_SLOWEST_RANK_TIME",
    "fastest_rank_time": "F_FASTEST_RANK_TIME",
    "slowest_rank_bytes": "SLOWEST_RANK_BYTES",
    "fastest_rank_bytes": "FASTEST_RANK_BYTES",
    "variance_time": "F_VARIANCE_RANK_TIME",
    "variance_bytes": "F_VARIANCE_RANK_BYTES",
}


def to_rows(module: str, source: NDArray[Any], ranks: int) -> NDArray[Any]:
    """Return the records of a Darshan module as rows of RECORD; the caller sets ``file`` and
    ``process``."""
    rows = new_records(len(source))
    rows["layer"] = LAYERS.index((MODULE_LAYERS | LIBRARY_LAYERS)[module])
    for field, counters in (_FIELDS | _FIELDS_OF_LIBRARIES)[module].items():
        rows[field] = sum(
            np.maximum(source[counter], 0) for counter in counters
        )  # -1: Darshan does not know
    for moment in MOMENTS:
        rows[moment][rows[moment] == 0] = np.nan
    _add_sizes(source, rows)
    if module == "POSIX":
        _derive_pattern(source, rows)
    if module == "H5D":  # one flag for all calls on a dataset
        for direction in ("reads", "writes"):
            collective = source["USE_MPIIO_COLLECTIVE"] > 0
            rows[f"collective_{direction}"] = np.where(collective, rows[direction], 0)
    if module in ("MPI-IO", "H5D", "PNETCDF_VAR"):
        _derive_collective_times(rows)
    _add_ends(rows, _FIELDS.get(module, ()))
    shared = source["rank"] < 0
    if ranks > 1:
        rows["ranks"][shared] = ranks
        for field, counter in _RANKS.items():
            if counter in (source.dtype.names or ()):
                rows[field][shared] = source[counter][shared]
    return rows


def _add_sizes(source: NDArray[Any], rows: NDArray[Any]) -> None:
    names = set(source.dtype.names or ())
    for direction in ("read", "write"):
        for number, size in enumerate(_SIZES):
            for counter in (
                f"SIZE_{direction.upper()}_{size}",
                f"SIZE_{direction.upper()}_AGG_{size}",
            ):
                if counter in names:
                    rows[f"{direction}_sizes"][:, number] = source[counter]


def _derive_pattern(source: NDArray[Any], rows: NDArray[Any]) -> None:
    for direction in ("reads", "writes"):
        rows[f"forward_{direction}"] = np.maximum(
            rows[f"forward_{direction}"] - rows[f"consecutive_{direction}"], 0
        )
    calls = rows["reads"] + rows["writes"]
    share = rows["reads"] / np.maximum(calls, 1)
    strided = sum(np.maximum(source[f"STRIDE{i}_COUNT"], 0) for i in range(1, 5))
    for name, total in (
        ("unaligned", np.maximum(source["FILE_NOT_ALIGNED"], 0)),
        ("strided", strided),
    ):
        rows[f"{name}_reads"] = np.round(total * share)
        rows[f"{name}_writes"] = total - rows[f"{name}_reads"]


def _derive_collective_times(rows: NDArray[Any]) -> None:
    """Set the times of collective calls: exact if all calls of a direction are collective,
    otherwise in proportion to calls."""
    for direction in ("read", "write"):
        share = rows[f"collective_{direction}s"] / np.maximum(rows[f"{direction}s"], 1)
        rows[f"collective_{direction}_time"] = rows[f"{direction}_time"] * share


def _add_ends(rows: NDArray[Any], known: Container[str]) -> None:
    """Add one to the ends: Darshan records the highest byte, the model the offset behind it. Some
    modules record no ends."""
    for end, calls in (("end_read", "bytes_read"), ("end_written", "bytes_written")):
        if end in known:
            rows[end] += rows[calls] > 0
