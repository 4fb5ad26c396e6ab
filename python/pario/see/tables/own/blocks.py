"""A process log (docs/log-format.md) as its checked blocks, with the numbers of the log.

Logs of killed processes and logs without an end are read; ``remarks`` name the skipped parts.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pario import _native
from pario.see.tables.errors import ReadError
from pario.see.tables.own.schema import Schema, parse_schema

VERSION = 1
MAGIC = 0x4B4C4250
PAGE = 4096
EXPECTED = f"a process log of pario (format version {VERSION})"

PROCESS, SCHEMA, RECORDS, STRINGS, THREAD, EVENTS, NOTES, SITES = range(1, 9)
KIND_NAMES = ("", "process", "schema", "records", "strings", "thread", "events", "notes", "sites")
#: Fields of a process block whose range is smaller than that of a signed 64-bit number.
_LIMITS = {
    "pid": 1 << 31,
    "ppid": 1 << 31,
    "threads": 1 << 31,
    "mpi_rank": 1 << 24,
    "mpi_size": 1 << 24,
}
#: Fields that relate ticks to time: without them a log says nothing.
_CLOCK = (
    "ticks_per_second",
    "anchor0_ticks",
    "anchor0_mono_ns",
    "start_mono_ns",
    "start_realtime_ns",
)
_CLOCK_LIMIT = 1 << 62
_COUNT_LIMIT = 1 << 63  # counters are signed numbers in the table model
_CHECKED = {SCHEMA, EVENTS}  # the others are live: they have no checksum

_HEADER = struct.Struct("<IHHQQQIIQQQ")
HEADER_SIZE = _HEADER.size
EVENT_SIZE = 48
NOWHERE = 2**64 - 1  # the address of no string
_MOST_MISSING = 100_000  # records; larger numbers than there can be are damage


@dataclass(frozen=True)
class Block:
    """The header of a block, and the place of its payload in the log."""

    kind: int
    at: int  # of the payload
    available: int  # bytes of the payload that are in the file
    used: int
    checksum: int
    index: int
    count: int
    aux: tuple[int, int, int]


@dataclass
class Remarks:
    """The remarks of the reader of one log."""

    damages: list[str] = field(default_factory=list)  # parts that are missing or unreadable
    notes: list[str] = field(default_factory=list)  # nothing is missing

    @property
    def texts(self) -> list[str]:
        """Return all remarks, damages first."""
        return [*self.damages, *self.notes]


@dataclass
class ProcessLog:
    """The blocks of one process log."""

    path: Path
    data: NDArray[np.uint8]
    schema: Schema
    process: dict[str, int]
    records: NDArray[Any]  # dtype of the schema, in order of their row numbers
    threads: list[Block]
    chunks: list[Block]
    notes: list[dict[str, Any]]
    strings: dict[int, bytes]  # payloads by number of the block
    sites: list[Block] = field(default_factory=list)
    remarks: Remarks = field(default_factory=Remarks)

    def payload(self, block: Block) -> NDArray[np.uint8]:
        """Return the used bytes of a block."""
        return self.data[block.at : block.at + block.used]

    def string(self, address: int) -> str | None:
        """Return the string at an address of the log; None if it is missing."""
        payload = self.strings.get(address >> 32, b"")
        at = (address & 0xFFFFFFFF) + 4
        end = at + int.from_bytes(payload[at - 4 : at], "little")
        return (
            payload[at:end].decode("utf-8", "backslashreplace")
            if at <= end <= len(payload)
            else None
        )

    def notes_of(self, kind: str) -> Iterator[dict[str, Any]]:
        """Return the notes of one kind, in the order of writing."""
        return (note for note in self.notes if note.get("note") == kind)

    @property
    def process_note(self) -> dict[str, Any]:
        """The note about the process: host, program, arguments ...; empty if it is missing."""
        return next(self.notes_of("process"), {})


def read_log(path: Path, *, with_events: bool = True) -> ProcessLog:
    """Read the blocks of one process log. Without events the time does not grow with their number.
    Raises ReadError for another file or version."""
    data = _map(path)
    remarks = Remarks()
    blocks = list(_scan(path, data, remarks, with_events=with_events))
    by_kind: dict[int, list[Block]] = {kind: [] for kind in range(PROCESS, SITES + 1)}
    for block in blocks:
        by_kind[block.kind].append(block)
    schema = _schema(path, data, by_kind[SCHEMA])
    log = ProcessLog(
        path=path,
        data=data,
        schema=schema,
        process=_process(path, data, schema, by_kind[PROCESS], remarks),
        records=_records(data, schema, by_kind[RECORDS], remarks),
        threads=by_kind[THREAD],
        chunks=by_kind[EVENTS],
        notes=[],
        strings={
            block.index: data[block.at : block.at + block.used].tobytes()
            for block in by_kind[STRINGS]
        },
        sites=by_kind[SITES],
        remarks=remarks,
    )
    _report_missing_rows(log, with_events=with_events)
    in_order = sorted(by_kind[NOTES], key=lambda block: block.index)
    log.notes = [note for block in in_order for note in _notes(log.payload(block), remarks)]
    return log


def _report_missing_rows(log: ProcessLog, *, with_events: bool) -> None:
    """Compare the number of rows in the log with the counts of the process."""
    counts = {"records": len(log.records)}
    if with_events:
        counts["events"] = sum(block.count for block in log.chunks)
    for name, found in counts.items():
        written = log.process.get(name, 0)
        if found < written:
            missing = f"{written - found} of {written} {name} are missing: the log was cut off"
            log.remarks.damages.append(missing)


def is_log(path: Path) -> bool:
    """Tell whether a file begins like a process log. Raises ReadError if it cannot be opened."""
    with _open(path) as file:
        return file.read(4) == struct.pack("<I", MAGIC)


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading. Errors of the system become ReadErrors, also those of the body."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ReadError(path, str(error.strerror).lower(), "a readable file") from error


def _map(path: Path) -> NDArray[np.uint8]:
    with _open(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ReadError(path, "an empty file", EXPECTED)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def _scan(
    path: Path, data: NDArray[np.uint8], remarks: Remarks, *, with_events: bool
) -> Iterator[Block]:
    """Yield the usable blocks of a log, in the order of the file."""
    position, unwritten = 0, 0
    while position + HEADER_SIZE <= len(data):
        header = _HEADER.unpack(data[position : position + HEADER_SIZE].tobytes())
        if header[0] != MAGIC:
            _require(position > 0, path, f"a file that begins with {data[:4].tobytes().hex()}")
            unwritten += 1
            position += PAGE
            continue
        _, kind, version, size, *_ = header
        _require(version == VERSION, path, f"a process log of format version {version}")
        if size < PAGE or size % PAGE:
            remarks.damages.append(f"block at {position} says it has {size} bytes: passed over")
            position += PAGE
            continue
        if kind == EVENTS and not with_events:
            position += size
            continue
        block = _block(header, position, len(data))
        fault = _fault(block, data)
        if fault:
            remarks.damages.append(f"{_name(kind)} block at {position} {fault}: passed over")
        else:
            if position + size > len(data):
                remarks.damages.append(
                    f"the log ends within a {_name(kind)} block: it was cut off, and the rest is"
                    " not known"
                )
            yield block
        position += size
    if unwritten:
        remarks.notes.append(f"{unwritten} pages were reserved and never written")


def _require(condition: bool, path: Path, found: str) -> None:
    if not condition:
        raise ReadError(path, found, EXPECTED)


def _name(kind: int) -> str:
    return KIND_NAMES[kind] if 0 < kind < len(KIND_NAMES) else f"kind {kind}"


def _block(header: tuple[int, ...], position: int, file_size: int) -> Block:
    _, kind, _, size, used, checksum, index, count, *aux = header
    at = position + HEADER_SIZE
    return Block(
        kind,
        at,
        min(position + size, file_size) - at,
        used,
        checksum,
        index,
        count,
        (aux[0], aux[1], aux[2]),
    )


def _fault(block: Block, data: NDArray[np.uint8]) -> str:
    """Return why a block is unusable, or an empty text."""
    if not PROCESS <= block.kind <= SITES:
        return "is not known to this version of pario"
    if block.used > block.available:
        return f"is cut off: {block.available} of {block.used} bytes are in the file"
    if (
        block.kind in _CHECKED
        and _native.checksum(data[block.at : block.at + block.used]) != block.checksum
    ):
        return "is damaged (checksum)"
    return ""


def _schema(path: Path, data: NDArray[np.uint8], blocks: list[Block]) -> Schema:
    if not blocks:
        raise ReadError(
            path, "a log without a schema (the process died while it started)", EXPECTED
        )
    try:
        return parse_schema(data[blocks[0].at : blocks[0].at + blocks[0].used].tobytes())
    except ValueError as error:
        raise ReadError(path, str(error), EXPECTED) from None


def _process(
    path: Path, data: NDArray[np.uint8], schema: Schema, blocks: list[Block], remarks: Remarks
) -> dict[str, int]:
    """Return the facts of the process; impossible values become 0 and are damage.

    Raises ReadError where the clock is among them.
    """
    has_row = bool(blocks) and blocks[0].available >= schema.process.itemsize
    _require(has_row, path, "a log without its process block")
    row = np.frombuffer(data, schema.process, 1, blocks[0].at)[0]
    process = dict(zip(schema.process.names or (), row.tolist(), strict=True))
    for name in _CLOCK:
        impossible = f"a damaged process block ({name} is {process.get(name)})"
        _require(0 <= process.get(name, -1) < _CLOCK_LIMIT, path, impossible)
    if "end_code" in process:
        process["end_code"] &= 0xFF  # earlier versions wrote negative statuses as 64-bit numbers
    for name, value in process.items():
        if value >= _LIMITS.get(name, _COUNT_LIMIT):
            remarks.damages.append(f"the process block is damaged: {name} is {value}")
            process[name] = 0
    return process


def _records(
    data: NDArray[np.uint8], schema: Schema, blocks: list[Block], remarks: Remarks
) -> NDArray[Any]:
    """Return all rows, at their numbers. The path of a missing row is the address of no string."""
    dtype = schema.record
    found = [
        np.frombuffer(data, dtype, min(block.count, block.available // dtype.itemsize), block.at)
        for block in blocks
    ]
    rows = found[0] if len(found) == 1 else np.concatenate([np.zeros(0, dtype), *found])
    numbers = rows["row"].astype(np.int64)
    if np.array_equal(numbers, np.arange(len(rows))):
        return rows
    sane = (numbers >= 0) & (numbers < 2 * len(rows) + _MOST_MISSING)
    if not np.all(sane):
        remarks.damages.append(f"{np.count_nonzero(~sane)} damaged records were passed over")
    table = np.full(numbers[sane].max(initial=-1) + 1, NOWHERE, "<u8").astype(dtype)
    table[numbers[sane]] = rows[sane]
    return table


def _notes(payload: NDArray[np.uint8], remarks: Remarks) -> Iterator[dict[str, Any]]:
    for line in payload.tobytes().split(b"\n"):
        if not line.strip(b" \0"):
            continue
        try:
            note = json.loads(line)
        except ValueError:
            remarks.damages.append(f"a note is damaged: {line[:60]!r}")
            continue
        if isinstance(note, dict):
            yield note
