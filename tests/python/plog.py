"""Writes process logs as docs/log-format.md describes them, independently of the tracer; fields
come from its .def tables."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pario import _native

ROOT = Path(__file__).parents[2]
PAGE = 4096
RATE = 2_000_000_000  # ticks per second
EVENT = np.dtype(
    [
        *((name, "<u8") for name in ("start", "duration", "offset", "length")),
        *((name, "<u4") for name in ("file", "count", "span")),
        *(("function", "<u2"), ("thread", "u1"), ("flags", "u1")),
    ]
)
FUNCTIONS = [
    {"id": 0, "name": "open", "category": "posix", "op": "open"},
    {"id": 1, "name": "read", "category": "posix", "op": "read"},
    {"id": 2, "name": "write", "category": "posix", "op": "write"},
    {"id": 3, "name": "fwrite", "category": "stdio", "op": "write"},
    {"id": 4, "name": "MPI_File_write_all", "category": "mpiio", "op": "write"},
    {"id": 5, "name": "MPI_Barrier", "category": "collective", "op": "other"},
]
OPS = [
    "open",
    "close",
    "read",
    "write",
    "seek",
    "stat",
    "sync",
    "flush",
    "map",
    "truncate",
    "lock",
    "list",
    "entry",
    "async",
    "other",
]


def _fields(table: str) -> list[list[str]]:
    text = (ROOT / "src/core/trace" / table).read_text()
    return [list(found) for found in re.findall(r"^PARIO_\w+\((\w+),\s*(\w+),", text, re.M)]


RECORD_FIELDS, PROCESS_FIELDS = _fields("counters.def"), _fields("process.def")


def ticks(seconds: float) -> int:
    """Returns the ticks of a moment (seconds since the process started) or of a duration. Moments
    begin at RATE, so that none is 0."""
    return round(seconds * RATE)


def moment(seconds: float) -> int:
    return RATE + ticks(seconds)


def block(
    kind: int,
    payload: bytes,
    *,
    count: int = 0,
    index: int = 0,
    aux: tuple[int, int, int] = (0, 0, 0),
    live: bool = True,
) -> bytes:
    size = -(-(64 + len(payload)) // PAGE) * PAGE
    checksum = 0 if live else _native.checksum(np.frombuffer(payload, np.uint8))
    head = struct.pack(
        "<IHHQQQIIQQQ", 0x4B4C4250, kind, 1, size, len(payload), checksum, index, count, *aux
    )
    return (head + payload).ljust(size, b"\0")


def encode(events: np.ndarray) -> bytes:
    """Encodes the columns of a chunk as one zstd frame: differences to the previous row,
    byte-transposed."""
    columns = []
    for name in EVENT.names or ():
        column = np.ascontiguousarray(events[name])
        column[1:] -= column[:-1].copy()
        columns.append(column.view(np.uint8).reshape(len(events), -1).T.tobytes())
    return pa.compress(b"".join(columns), codec="zstd", asbytes=True)


@dataclass
class ProcessLog:
    """The content of a process log."""

    host: str = "node0"
    boot: str = ""
    cwd: str = "/"
    rank: int = -1
    size: int = 0
    pid: int = 1000
    start_mono_ns: int = 50_000_000_000
    start_realtime_ns: int = 1_700_000_000_000_000_000
    end: float | None = 10.0  # seconds since the start; None for a killed process
    process: dict[str, int] = field(default_factory=dict)  # other fields of the process block
    records: list[dict[str, Any]] = field(default_factory=list)
    functions: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    chunks: list[np.ndarray] = field(default_factory=list)
    tail: np.ndarray = field(default_factory=lambda: np.zeros(0, EVENT))
    notes: list[dict[str, Any]] = field(default_factory=list)
    unwritten_pages: int = 0

    def to_bytes(self) -> bytes:
        strings, rows = self._strings_and_rows()
        schema = {
            "version": 1,
            "pario": "0.1.0",
            "process": PROCESS_FIELDS,
            "record": RECORD_FIELDS,
            "event": [],
        }
        schema |= {"functions": FUNCTIONS, "layers": ["posix", "stdio", "mpiio"], "ops": OPS}
        about = {
            "note": "process",
            "host": self.host,
            "boot_id": self.boot or self.host,
            "exe": "/bin/app",
            "argv": ["app", "-x"],
        }
        about["cwd"] = self.cwd
        counters = np.array(self.functions or np.zeros((0, 5)), "<u8").reshape(-1, 5)
        thread = counters.tobytes() + self.tail.tobytes()
        lines = b"".join(json.dumps(note).encode() + b"\n" for note in [about, *self.notes])
        parts = [
            block(1, self._process_row(), count=1),
            block(2, json.dumps(schema).encode(), live=False),
            block(3, rows, count=len(self.records)),
            block(4, strings),
            block(5, thread, count=len(self.tail), aux=(0, counters.nbytes, len(counters))),
            b"\0" * PAGE * self.unwritten_pages,
            *(
                block(
                    6,
                    encode(chunk),
                    count=len(chunk),
                    index=i,
                    aux=(chunk.nbytes, 0, 0),
                    live=False,
                )
                for i, chunk in enumerate(self.chunks)
            ),
            block(7, lines),
        ]
        return b"".join(parts)

    def write(self, directory: Path) -> Path:
        path = directory / f"{self.host}.{self.pid}.{self.start_realtime_ns:x}.plog"
        path.write_bytes(self.to_bytes())
        return path

    def _process_row(self) -> bytes:
        values = {
            "pid": self.pid,
            "ppid": 1,
            "start_mono_ns": self.start_mono_ns,
            "start_realtime_ns": self.start_realtime_ns,
        }
        values |= {
            "ticks_per_second": RATE,
            "anchor0_ticks": RATE,
            "anchor0_mono_ns": self.start_mono_ns,
            "anchor1_ticks": moment(1.0),
        }
        values |= {
            "mpi_rank": self.rank + 1,
            "mpi_size": self.size,
            "threads": 1,
            "records": len(self.records),
        }
        if self.end is not None:
            values |= {"end": moment(self.end), "end_kind": 1}
        values |= self.process
        return struct.pack(
            f"<{len(PROCESS_FIELDS)}Q", *(values.get(name, 0) for name, _ in PROCESS_FIELDS)
        )

    def _strings_and_rows(self) -> tuple[bytes, bytes]:
        strings, rows = b"", b""
        for row, record in enumerate(self.records):
            values = {"row": row, **record, "path": len(strings)}
            path = record["path"].encode()
            strings += struct.pack("<I", len(path)) + path
            rows += struct.pack(
                f"<{len(RECORD_FIELDS)}Q", *(values.get(name, 0) for name, _ in RECORD_FIELDS)
            )
        return strings, rows


def events(
    number: int,
    *,
    function: int = 2,
    file: int = 0,
    first: float = 0.0,
    step: float = 0.001,
    **fields: Any,
) -> np.ndarray:
    """Makes ``number`` events, one every ``step`` seconds."""
    rows = np.zeros(number, EVENT)
    rows["start"] = moment(first) + (np.arange(number) * ticks(step)).astype("<u8")
    rows["duration"] = ticks(step / 2)
    rows["offset"] = np.arange(number) * 512
    rows["length"], rows["count"], rows["function"], rows["file"] = 512, 1, function, file
    for name, value in fields.items():
        rows[name] = value
    return rows
