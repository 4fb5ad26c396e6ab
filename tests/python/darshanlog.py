"""Writes Darshan logs (format 3.21) with given records, also of modules that no log in the darshan
package has."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MODULES = {
    "POSIX": 1,
    "MPI-IO": 2,
    "STDIO": 8,
    "DXT_POSIX": 9,
    "DXT_MPIIO": 10,
    "HEATMAP": 14,
}  # module numbers in format 3.21
VERSIONS = {"POSIX": 4, "MPI-IO": 3, "STDIO": 2, "DXT_POSIX": 1, "DXT_MPIIO": 2, "HEATMAP": 1}
SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("start", "<f8"), ("end", "<f8")])
_SLOTS = 16
_HEADER_SIZE = 8 + 8 + 8 + 16 + _SLOTS * 16 + _SLOTS * 4
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

    def write(self, path: Path) -> Path:
        job = struct.pack(
            "<qqqqq1024s",
            1000,
            self.start,
            self.start + self.seconds,
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
        offsets = np.cumsum([_HEADER_SIZE, *lengths]).tolist()
        flags = sum(1 << MODULES[name] for name in self.partial)
        maps, versions = [(0, 0)] * _SLOTS, [0] * _SLOTS
        for number, name in enumerate(self.modules):
            maps[MODULES[name]] = (offsets[number + 2], lengths[number + 2])
            versions[MODULES[name]] = self.versions.get(name, VERSIONS[name])
        head = struct.pack("<8sqB3xI", b"3.21", 6567223, 0, flags)
        regions = [value for pair in [(offsets[1], lengths[1]), *maps] for value in pair]
        return head + struct.pack(f"<{len(regions)}Q{_SLOTS}I", *regions, *versions)
