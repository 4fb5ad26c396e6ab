"""Compressed arrays: each chunk of a block is a frame of zstd, for a registered filter of HDF5.

A save compresses the blocks of a rank before it knows their places, because the sizes of all frames
decide these. So the frames are in memory until they are written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np

from pario._native import Compressor, decompress_elements
from pario.checkpoint.arrays import Given, is_written
from pario.checkpoint.checksum import chunk_sums, grid_of
from pario.checkpoint.container import LEVEL, shuffled_bytes
from pario.checkpoint.errors import CheckpointError, DamageError
from pario.checkpoint.geometry import Box, Shape
from pario.checkpoint.header import Entry, Header
from pario.checkpoint.lazy import Lazy
from pario.checkpoint.transfer import Move, open_file, read_all
from pario.checkpoint.types import Array
from pario.interrupts import check
from pario.machine import count_processors
from pario.progress import Show, silent
from pario.ranks import Ranks

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Most threads of a process: memory limits their speed.
_MOST_THREADS = 8
#: The value of ``compress``.
ZSTD = "zstd"
#: Bytes of the longest frame for each byte of its elements, and in any case; zstd needs less.
_LONGEST, _LONGEST_OF_NONE = 2, 1 << 10


def check_compress(compress: str | None, files: int | str, *, safetensors: bool) -> None:
    """Raises CheckpointError if ``compress`` is not valid, or not with the other options."""
    if compress is None:
        return
    if compress != ZSTD:
        raise CheckpointError(f"compress={compress!r}; expected '{ZSTD}' or None")
    if files != 1:
        raise CheckpointError(f"compress='{ZSTD}', files={files!r}; expected files=1")
    if safetensors:
        raise CheckpointError(
            f"compress='{ZSTD}', safetensors=True; expected one of them: safetensors files hold"
            " plain elements"
        )


@dataclass(frozen=True)
class CompressedBlock:
    """A block of an array, compressed: the frames of its chunks and their checksums."""

    frames: list[bytes]  # empty ones: there are no elements, or another rank writes them
    sums: Array

    def moves(self, places: Array) -> list[Move]:
        """The writes of the frames to their places."""
        found = []
        for frame, place in zip(self.frames, places.tolist(), strict=True):
            box = Box((0,), (len(frame),))
            if frame:
                found.append(Move(place, box, box, np.frombuffer(frame, np.uint8)))
        return found


def thread_count(ranks: Ranks) -> int:
    """The threads by which each rank compresses and decompresses: its share of the processors."""
    return max(1, min(_MOST_THREADS, count_processors() // ranks.on_node))


def compress_arrays(given: Sequence[Given], ranks: Ranks) -> dict[str, list[CompressedBlock]]:
    """The blocks of each array. Of replicated ones, which rank 0 writes, others have the checksums
    only."""
    total, done, show = sum(data.nbytes for one in given for data in one.data), 0, ranks.moving()
    threads, found = thread_count(ranks), dict[str, list[CompressedBlock]]()

    def count(size: int) -> None:
        nonlocal done
        done += size
        show(done, total)

    for one in given:
        shape, written = one.facts.shape, is_written(one.facts, ranks.rank)
        found[one.facts.name] = [
            _compress_block(data, box, shape, threads if written else 0, count)
            for data, box in zip(one.data, one.facts.boxes, strict=True)
        ]
    return found


def _compress_block(
    data: Array | Lazy, box: Box, shape: Shape, threads: int, show: Callable[[int], object]
) -> CompressedBlock:
    """Compresses ``data``, the elements of a box of an array of ``shape``. ``threads`` 0: only adds
    up the checksums. ``show`` receives the bytes of each chunk."""
    content = data.read() if isinstance(data, Lazy) else data
    grid = grid_of(box, content.dtype.itemsize)

    def compress(part: Box) -> tuple[bytes, int]:
        elements = content[part.within(box)]
        one = chunk_sums(elements, part, grid, shape)[1][0]
        if not threads:
            return b"", one
        plain = _fill_up(elements, grid.chunk).reshape(-1).view(np.uint8)
        frame = Compressor(LEVEL).compress(plain, shuffled_bytes(content.dtype))
        return frame, one

    block = CompressedBlock([b""] * grid.count, np.zeros(grid.count, np.uint64))
    for number, (frame, one) in enumerate(_map(threads, compress, grid.boxes())):
        check()
        block.frames[number], block.sums[number] = frame, one
        show(math.prod(grid.chunk) * content.dtype.itemsize)
    return block


def _map(threads: int, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results for all items, in order; by several threads."""
    if threads < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, items)


def _fill_up(elements: Array, chunk: Shape) -> Array:
    """The elements in C order, as a whole chunk: HDF5 has no smaller ones at the end of an axis."""
    if elements.shape == chunk:
        return np.ascontiguousarray(elements)
    whole = np.zeros(chunk, elements.dtype)
    whole[tuple(slice(length) for length in elements.shape)] = elements
    return whole


def read_compressed(
    header: Header,
    entry: Entry,
    box: Box,
    data: Array,
    *,
    opened: int = -1,
    verify: bool = True,
    threads: int = 1,
    show: Show = silent,
) -> None:
    """Reads a part of a compressed array into ``data``, with elements as in the file.

    Only chunks that overlap the part are read, and compared with their checksums. ``opened``: as
    for :func:`open_file`. Raises DamageError that names the first damaged chunk.
    """
    done = 0
    with open_file(header.path, os.O_RDONLY, opened) as file:

        def read(found: tuple[int, Box]) -> int:
            number, chunk = found
            common = chunk.meet(box)
            elements = _read_chunk(file, header, entry, number, chunk, verify=verify)
            data[common.within(box)] = elements[common.within(chunk)]
            return common.size * data.dtype.itemsize

        for size in _map(threads, read, _list_chunks(entry, box)):
            check()
            done += size
            show(done, data.nbytes)


def _list_chunks(entry: Entry, box: Box) -> Iterator[tuple[int, Box]]:
    """The chunks that overlap a box: the number of the block, and the chunk's own box."""
    for number in entry.blocks_in(box):
        grid = entry.grid(number)
        touched = grid.chunks_touching(box)
        if touched is not None:
            for index in product(*(range(some.start, some.stop) for some in touched)):
                yield number, grid.box(index)


def _read_chunk(
    file: int, header: Header, entry: Entry, number: int, box: Box, *, verify: bool
) -> Array:
    """The elements of a chunk. Raises DamageError."""
    grid, layout = entry.grid(number), entry.layout
    chunk = np.empty(grid.chunk, layout.dtype)
    at = grid.number(box.begin)
    place, size = entry.frames_of(number)[at].tolist()
    try:
        _read_frame(file, header.path, place, size, chunk)
    except ValueError as error:
        raise DamageError(header.name, f"{entry.damage_text(number, box)}: {error}") from error
    elements = chunk[tuple(slice(length) for length in box.shape)]
    if verify and chunk_sums(elements, box, grid, layout.shape)[1][0] != entry.sums_of(number)[at]:
        raise DamageError(header.name, entry.damage_text(number, box))
    return elements


def _read_frame(file: int, path: str, place: int, size: int, chunk: Array) -> None:
    """Fills a chunk. Raises ValueError with the reason for a damaged frame."""
    content = chunk.reshape(-1).view(np.uint8)
    if not 0 < size <= _LONGEST * len(content) + _LONGEST_OF_NONE:
        raise ValueError(f"Frame of {size} bytes")
    frame = np.empty(size, np.uint8)
    read_all(file, frame.data, place, path)
    decompress_elements(frame, shuffled_bytes(chunk.dtype), content)
