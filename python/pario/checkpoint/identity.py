"""The identity record of a checkpoint's file: its save, and the place of that save among all of a
directory. It ends the file's user block (docs/checkpoint-format.md)."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pario.checkpoint.checksum import checksum_bytes

#: Bytes of an identity record, which ends the user block of a file.
RECORD_BYTES = 64
#: Bytes of the smallest user block.
USER_BLOCK = 4096
_MAGIC = b"\x89pario\r\n"
_VERSION = 2
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: Magic, version, number of the part, generation, step, save, bytes of the metadata table.
_FIELDS = struct.Struct("<8sIiQQ16sI")
_CHECKSUM = struct.Struct("<Q")
#: The user block ends at a power of two between these.
_FIRST_END, _LAST_END = 512, 1 << 40
#: The part number of a master, or of a checkpoint in one file.
NO_PART = -1


@dataclass(frozen=True)
class Identity:
    """The identity of a file: its save, and the place of that save among all of a directory."""

    generation: int  # rises with each save; 0: unknown, older than all others
    step: int
    save: str  # 32 hexadecimal digits; the same in all files of a checkpoint, and in no other
    part: int = NO_PART

    @property
    def key(self) -> tuple[int, int]:
        """Sort key; oldest first."""
        return self.generation, self.step


def encode_record(identity: Identity, table_bytes: int = 0) -> bytes:
    """The identity record of a file. ``table_bytes``: size of the metadata table before it."""
    save = bytes.fromhex(identity.save)
    fields = (identity.part, identity.generation, identity.step, save, table_bytes)
    record = _FIELDS.pack(_MAGIC, _VERSION, *fields).ljust(RECORD_BYTES - _CHECKSUM.size, b"\0")
    return record + _CHECKSUM.pack(checksum_bytes(record))


def decode_record(record: bytes) -> Identity | None:
    """None where the bytes are not a record. Raises ValueError where the record is damaged."""
    if len(record) != RECORD_BYTES or not record.startswith(_MAGIC):
        return None
    content = record[: -_CHECKSUM.size]
    if _CHECKSUM.unpack(record[-_CHECKSUM.size :])[0] != checksum_bytes(content):
        raise ValueError("its identity record is damaged")
    _, version, part, generation, step, save, _ = _FIELDS.unpack_from(content)
    return Identity(generation, step, save.hex(), part) if version >= _VERSION else None


def table_bytes_of(record: bytes) -> int:
    """The size of the metadata table; 0 in files without table. The record may be damaged."""
    return int(_FIELDS.unpack_from(record)[-1]) if record.startswith(_MAGIC) else 0


def find_record(file: int) -> tuple[int, bytes]:
    """The end of the user block of an open file, and the record there; (0, b"") without HDF5."""
    size, end = os.fstat(file).st_size, _FIRST_END
    while end < min(size, _LAST_END):
        content = os.pread(file, RECORD_BYTES + len(_SIGNATURE), end - RECORD_BYTES)
        if content.endswith(_SIGNATURE):
            return end, content[:RECORD_BYTES]
        end *= 2
    return 0, b""


def read_identity(path: Path) -> Identity | None:
    """The identity of a file; None without a valid record: format version 1, other programs,
    damaged records."""
    with suppress(ValueError):
        return read_record(path)
    return None


def read_record(path: Path) -> Identity | None:
    """As :func:`read_identity`, but raises ValueError for a damaged record."""
    with suppress(OSError), path.open("rb", buffering=0) as file:
        return decode_record(find_record(file.fileno())[1])
    return None
