"""Writes Darshan logs (formats 3.21 and 3.41) with given records, also of modules that no log in
the darshan package has."""

from __future__ import annotations

import importlib
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

#: Imported only where it is used: with pandas, it takes half a second.
_LIBRARY = "darshan.backend.cffi_backend"
MODULES = {
    "POSIX": 1,
    "MPI-IO": 2,
    "STDIO": 8,
    "DXT_POSIX": 9,
    "DXT_MPIIO": 10,
    "HEATMAP": 14,
}  # module numbers in format 3.21
#: Module numbers in format 3.41.
NEW_MODULES = {
    "POSIX": 1,
    "MPI-IO": 2,
    "H5F": 3,
    "H5D": 4,
    "PNETCDF_FILE": 5,
    "PNETCDF_VAR": 6,
    "STDIO": 9,
    "DXT_POSIX": 10,
    "DXT_MPIIO": 11,
    "MDHIM": 12,
    "APMPI": 14,
    "HEATMAP": 15,
    "DFS": 16,
    "DAOS": 17,
}
VERSIONS = {
    "POSIX": 4,
    "MPI-IO": 3,
    "STDIO": 2,
    "DXT_POSIX": 1,
    "DXT_MPIIO": 2,
    "HEATMAP": 1,
    "H5F": 3,
    "H5D": 2,
    "PNETCDF_FILE": 3,
    "PNETCDF_VAR": 1,
    "MDHIM": 1,
    "APMPI": 1,
    "DFS": 1,
    "DAOS": 1,
}
#: Bytes behind the counters of a record, and modules with the file before them.
_TRAILING = {"DFS": 32, "DAOS": 48}
_OF_FILES = ("H5D", "PNETCDF_VAR")
SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])
_JOB_SIZE, _POSIX_COUNTERS, _POSIX_TIMES = 4096, 69, 17


def posix_record(
    record: int,
    rank: int,
    counters: dict[int, int] | None = None,
    times: dict[int, float] | None = None,
) -> bytes:
    """Makes a POSIX record; counters and times are given by their indices in Darshan's tables."""
    ints = [(counters or {}).get(i, 0) for i in range(_POSIX_COUNTERS)]
    floats = [(times or {}).get(i, 0.0) for i in range(_POSIX_TIMES)]
    return struct.pack(f"<Qq{_POSIX_COUNTERS}q{_POSIX_TIMES}d", record, rank, *ints, *floats)


def named_record(module: str, record: int, rank: int, file: int = 0, **values: float) -> bytes:
    """Makes a record of a module of format 3.41; counters are named without the module's prefix.
    ``file``: the record of the file of a dataset or variable."""
    prefix = module.replace("-", "") + "_"
    library = importlib.import_module(_LIBRARY)
    integers = library.counter_names(module)
    times = library.fcounter_names(module)
    unknown = {prefix + name for name in values} - {*integers, *times}
    assert not unknown, unknown
    wanted = {prefix + name: value for name, value in values.items()}
    return (
        struct.pack("<Qq", record, rank)
        + (struct.pack("<Q", file) if module in _OF_FILES else b"")
        + struct.pack(f"<{len(integers)}q", *(int(wanted.get(name, 0)) for name in integers))
        + struct.pack(f"<{len(times)}d", *(wanted.get(name, 0.0) for name in times))
        + bytes(_TRAILING.get(module, 0))
    )


def heatmap_record(
    record: int, rank: int, width: float, writes: list[int], reads: list[int]
) -> bytes:
    head = struct.pack("<QqdqQQ", record, rank, width, len(writes), 0, 0)
    return head + struct.pack(f"<{2 * len(writes)}q", *writes, *reads)


def apmpi_header() -> bytes:
    """Makes the first record of the APMPI module."""
    magic = int.from_bytes(b"APMPI", "big")
    return struct.pack("<QqqI4xdd", 99, 0, magic, 1, 0.0, 0.0)


def apmpi_record(rank: int, node: str = "node0", **values: float) -> bytes:
    """Makes the record of one rank of the APMPI module."""
    library = importlib.import_module(_LIBRARY)
    integers = library.counter_names("APMPI")
    groups = [
        library.counter_names("APMPI", True, special)
        for special in ("mpiop_totaltime_", "mpiop_synctime_", "mpi_global_")
    ]
    floats = [name for group in groups for name in group]
    assert not set(values) - {*integers, *floats}
    return (
        struct.pack("<Qq", 99, rank)
        + struct.pack(f"<{len(integers)}Q", *(int(values.get(name, 0)) for name in integers))
        + struct.pack(f"<{len(floats)}d", *(values.get(name, 0.0) for name in floats))
        + struct.pack("128s", node.encode())
    )


def dxt_record(
    record: int, rank: int, writes: np.ndarray, reads: np.ndarray, host: str = "node0"
) -> bytes:
    head = struct.pack("<Qqq64sqq", record, rank, 0, host.encode(), len(writes), len(reads))
    return head + writes.tobytes() + reads.tobytes()


def segments(number: int, first: float = 0.0, step: float = 0.001, length: int = 512) -> np.ndarray:
    rows = np.zeros(number, SEGMENT)
    rows["offset"] = np.arange(number) * length
    rows["length"] = length
    rows["start"] = first + np.arange(number) * step
    rows["end"] = rows["start"] + step / 2
    return rows


@dataclass
class DarshanLog:
    """The content of a Darshan log."""

    nprocs: int = 1
    jobid: int = 42
    start: int = 1_600_000_000
    seconds: int = 10
    command: str = "./app -x"
    mounts: dict[str, str] = field(default_factory=lambda: {"/": "ext4", "/scratch": "lustre"})
    names: dict[int, str] = field(default_factory=lambda: {1: "/scratch/a"})
    modules: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    format: str = "3.21"  # or 3.41

    def write(self, path: Path) -> Path:
        end = self.start + self.seconds
        moments = [self.start, end] if self.format == "3.21" else [self.start, 0, end, 0]
        job = struct.pack(
            f"<{len(moments) + 3}q1024s",
            1000,
            *moments,
            self.nprocs,
            self.jobid,
            b"lib_ver=3.2.1\n",
        )
        tail = "\n".join(
            [self.command, *(f"{kind}\t{mount}" for mount, kind in self.mounts.items())]
        )
        regions = [zlib.compress((job + tail.encode()).ljust(_JOB_SIZE, b"\0"))]
        regions.append(
            zlib.compress(
                b"".join(
                    struct.pack("<Q", i) + name.encode() + b"\0" for i, name in self.names.items()
                )
            )
        )
        regions += [zlib.compress(self.modules[name], 1) for name in self.modules]
        path.write_bytes(self._header([len(region) for region in regions]) + b"".join(regions))
        return path

    def _header(self, lengths: list[int]) -> bytes:
        new = self.format != "3.21"
        numbers, slots = (NEW_MODULES, 64) if new else (MODULES, 16)
        head_size = 32 if new else 24
        offsets = np.cumsum([head_size + 16 + slots * 20, *lengths]).tolist()
        flags = sum(1 << numbers[name] for name in self.partial)
        maps, versions = [(0, 0)] * slots, [0] * slots
        for number, name in enumerate(self.modules):
            maps[numbers[name]] = (offsets[number + 2], lengths[number + 2])
            versions[numbers[name]] = self.versions.get(name, VERSIONS[name])
        form = "<8sqB7xQ" if new else "<8sqB3xI"
        head = struct.pack(form, self.format.encode(), 6567223, 0, flags)
        regions = [value for pair in [(offsets[1], lengths[1]), *maps] for value in pair]
        return head + struct.pack(f"<{len(regions)}Q{slots}I", *regions, *versions)
