"""The metadata table of a file: checksums of HDF5's own metadata (docs/checkpoint-format.md).

HDF5 may loop forever on damaged metadata. Readers compare the table before they open a file with
HDF5.
"""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pario.checkpoint.checksum import checksum_bytes, checksum_joined
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import RECORD_BYTES, find_record, table_bytes_of
from pario.checkpoint.transfer import open_file
from pario.checkpoint.types import Array
from pario.hdf5 import Piece

#: Bytes of the two checksums that end a metadata table; of a row.
_SUMS_BYTES, _ROW_BYTES = 16, 16
#: Bytes between two extents of metadata that are read, or written, together.
GAP = 1 << 16


def table_bytes(rows: int) -> int:
    """The size of a metadata table."""
    return _SUMS_BYTES + _ROW_BYTES * rows


def outside(pieces: Sequence[Piece], extents: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """The parts of pieces outside of extents (offset, bytes), which do not overlap."""
    found: list[Piece] = []
    ordered = sorted(extents)
    starts = [begin for begin, _ in ordered]
    for place, content in pieces:
        at, end = place, place + len(content)
        for number in range(max(0, bisect(starts, place) - 1), len(ordered)):
            begin, length = ordered[number]
            if begin >= end:
                break
            if begin > at:
                found.append((at, content[at - place : begin - place]))
            at = max(at, begin + length)
        if at < end:
            found.append((at, content[at - place :]))
    return tuple(found)


def encode_table(
    pieces: Sequence[Piece], elements: Sequence[tuple[int, int]], user_block: int
) -> bytes:
    """The metadata table (docs/checkpoint-format.md); empty where the user block is too small."""
    covered = outside(pieces, elements)
    numbers = [(at - user_block, len(content)) for at, content in covered]
    rows = np.array(numbers, "<i8").tobytes()
    content = (content for _, content in covered)
    sums = [checksum_bytes(rows, 8), checksum_joined(content, 8)]
    table = rows + np.array(sums, "<u8").tobytes()
    return table if len(table) <= user_block - RECORD_BYTES else b""


def check_metadata(path: Path) -> None:
    """Compares HDF5's metadata in a file with its metadata table, without HDF5.

    Raises CheckpointError where they differ. Files of other programs and of earlier versions have
    no table and are not checked.
    """
    with open_file(str(path), os.O_RDONLY) as file:
        user_block, record = find_record(file)
        size = table_bytes_of(record) if user_block else 0
        if size and not _metadata_is_good(file, user_block, size):
            raise CheckpointError(
                f"{path}: its HDF5 metadata is not what was saved: the file is damaged, or another"
                " program has changed it (verify=False reads it all the same)"
            )


def _metadata_is_good(file: int, user_block: int, size: int) -> bool:
    if size % _ROW_BYTES or size > user_block - RECORD_BYTES:
        return False
    table = os.pread(file, size, user_block - RECORD_BYTES - size)
    rows, sums = table[:-_SUMS_BYTES], np.frombuffer(table[-_SUMS_BYTES:], "<u8").tolist()
    if checksum_bytes(rows, 8) != sums[0]:
        return False
    extents = np.frombuffer(rows, "<i8").reshape(-1, 2)
    content = b"".join(_read_extents(file, extents, user_block))
    return len(content) == int(extents[:, 1].sum()) and checksum_bytes(content, 8) == sums[1]


def _read_extents(file: int, extents: Array, user_block: int) -> Iterator[bytes]:
    """The bytes of extents in order; those with small gaps are read together."""
    begins = extents[:, 0] + user_block
    ends = begins + extents[:, 1]
    first = np.flatnonzero(np.append(True, begins[1:] > ends[:-1] + GAP)[: len(begins)])
    last = np.append(first[1:], len(begins))
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        start = int(begins[low])
        content = os.pread(file, int(ends[high - 1]) - start, start)
        for begin, end in zip(begins[low:high].tolist(), ends[low:high].tolist(), strict=True):
            yield content[begin - start : end - start]
