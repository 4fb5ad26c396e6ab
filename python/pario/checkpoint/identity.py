"""The identity record of a checkpoint file: its place among the checkpoints of a directory.

The record ends the user block, so it lies right before the HDF5 superblock and is read without
HDF5 (docs/checkpoint-format.md).
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pario.checkpoint.checksum import checksum_bytes

#: Bytes of the record.
SIZE = 64
#: Bytes of the user block of files without aligned arrays.
USER_BLOCK = 4096
_MAGIC = b"\x89pario\r\n"
_VERSION = 2
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: Magic, version, number of the part, generation, step, save.
_FIELDS = struct.Struct("<8sIiQQ16s")
_CHECKSUM = struct.Struct("<Q")
#: The user block ends at a power of two, from the first to the last of these.
_FIRST_END, _LAST_END = 512, 1 << 40
#: Number of the part of a master, or of a checkpoint in one file.
NO_PART = -1


@dataclass(frozen=True)
class Identity:
    """``generation`` orders the checkpoints of a directory: a later save has a higher one."""

    generation: int  # 0: unknown, older than all others
    step: int
    save: str  # 32 hexadecimal digits; the same in all files of a checkpoint, and in no other
    part: int = NO_PART

    @property
    def key(self) -> tuple[int, int]:
        """The order of checkpoints, oldest first."""
        return self.generation, self.step


def encode(identity: Identity) -> bytes:
    """The record."""
    fields = (identity.part, identity.generation, identity.step, bytes.fromhex(identity.save))
    record = _FIELDS.pack(_MAGIC, _VERSION, *fields).ljust(SIZE - _CHECKSUM.size, b"\0")
    return record + _CHECKSUM.pack(checksum_bytes(record))


def decode(record: bytes) -> Identity | None:
    """None where the bytes are no record. Raises ValueError where they are a damaged one."""
    if len(record) != SIZE or not record.startswith(_MAGIC):
        return None
    content = record[: -_CHECKSUM.size]
    if _CHECKSUM.unpack(record[-_CHECKSUM.size :])[0] != checksum_bytes(content):
        raise ValueError("its identity record is damaged")
    _, version, part, generation, step, save = _FIELDS.unpack_from(content)
    return Identity(generation, step, save.hex(), part) if version >= _VERSION else None


def read_identity(path: Path) -> Identity | None:
    """None for files without a valid record: of format version 1, of other programs, damaged ones."""
    with suppress(ValueError):
        return read_record(path)
    return None


def read_record(path: Path) -> Identity | None:
    """The same, but raises ValueError for a damaged record."""
    with suppress(OSError), path.open("rb", buffering=0) as file:
        size, end = os.fstat(file.fileno()).st_size, _FIRST_END
        while end < min(size, _LAST_END):
            content = os.pread(file.fileno(), SIZE + len(_SIGNATURE), end - SIZE)
            if content.endswith(_SIGNATURE):
                return decode(content[:SIZE])
            end *= 2
    return None
