"""A checkpoint as a file: HDF5 that any program reads, with the bytes of each array in one piece.

Serial HDF5 makes a skeleton in memory: all of a file but its arrays. Rank 0 writes it; all ranks
write the arrays, without HDF5. The skeleton of the next checkpoint with the same arrays is made
from this one, which is much faster than to have HDF5 make a thousand arrays.
"""

from __future__ import annotations

import json
import os
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pario.checkpoint import identity
from pario.checkpoint.attributes import put, put_all
from pario.checkpoint.chunks import CHUNK_BYTES, grid_of
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity
from pario.checkpoint.layout import Layout
from pario.checkpoint.packing import small
from pario.checkpoint.transfer import opened, write_all
from pario.checkpoint.types import Array, Type
from pario.hdf5 import add_contiguous
from pario.hdf5_image import Image, Piece

FORMAT = 2
#: Arrays from this size on begin at multiples of it.
_ALIGNMENT = 1 << 20
#: Arrays that can have the same axis: the list of them must fit into an attribute.
_MOST_ON_AN_AXIS = 4000


@dataclass(frozen=True)
class Places:
    """Where the bytes are that HDF5 does not write itself."""

    arrays: tuple[int, ...]  # first byte of each; of one without elements 0
    sums: int  # a number of 64 bits for each chunk
    size: int  # of the file
    metadata: int  # bytes that are no elements of arrays


@dataclass(frozen=True)
class Skeleton:
    """All of a file but its arrays."""

    places: Places
    pieces: tuple[Piece, ...]
    others: tuple[tuple[int, int], ...]  # places and bytes of arrays that other ranks may write
    user_block: int  # bytes


@dataclass(frozen=True)
class Label:
    """What a file says of itself beside its arrays."""

    step: int
    attrs: Mapping[str, Any]
    about: Mapping[str, Any]
    identity: Identity


def sum_count(layouts: Sequence[Layout]) -> int:
    """How many chunks all blocks of arrays have."""
    return sum(grid_of(block.box, layout.dtype.itemsize).count for layout in layouts for block in layout.blocks)


def create(
    layouts: Sequence[Layout],
    label: Label,
    array: Callable[[Any, Layout], Any] | None = None,
    tables: Mapping[str, Array] | None = None,
    finish: Callable[[Any], None] = lambda file: None,
) -> Skeleton:
    """Makes the skeleton of a file.

    ``array`` makes an array; those that it makes without room have no place. ``tables`` are more
    tables of ``/pario``. ``finish`` may change attributes of the file at the end. Raises
    CheckpointError where HDF5 cannot hold an array or an attribute.
    """
    with _new_image(layouts) as (image, file):
        own = file.create_group("pario")
        own.attrs["format"] = FORMAT
        own.attrs["chunk_bytes"] = CHUNK_BYTES
        own.attrs["about"] = json.dumps(dict(label.about))
        ids = [(array or add_array)(file, layout) for layout in layouts]
        _put_axes(file, layouts)
        rows = [row for number, layout in enumerate(layouts) for row in _rows(number, layout)]
        _table(own, layouts, rows)
        for name, table in (tables or {}).items():
            own.create_dataset(name, data=table)
        sums = add_contiguous(own, "checksums", (sum_count(layouts),), "<u8")
        _put_label(file, label)
        finish(file)
        places = [one.get_offset() or 0 for one in ids]
        at = sums.get_offset() or 0
    return _skeleton(image, layouts, places, at, label.identity, packed=small(layouts))


def create_plain(layouts: Sequence[Layout], own: Identity) -> Skeleton:
    """Makes the skeleton of a file with room for arrays, and nothing else."""
    with _new_image(layouts) as (image, file):
        places = [add_array(file, layout).get_offset() or 0 for layout in layouts]
    return _skeleton(image, layouts, places, 0, own)


def relabel(skeleton: Skeleton, label: Label) -> Skeleton:
    """The skeleton for another step with the same arrays."""
    import h5py

    pieces = (piece for piece in skeleton.pieces if piece[0] >= skeleton.user_block)
    image = Image(pieces, skeleton.places.size)
    with _as_checkpoint_error(), h5py.File(image, "r+", locking=False) as file:
        _put_label(file, label)
    places = replace(skeleton.places, size=image.size)
    made = replace(skeleton, places=places, pieces=_without(image.pieces(), skeleton.others))
    return identified(made, label.identity)


def identified(skeleton: Skeleton, own: Identity) -> Skeleton:
    """The skeleton with another identity record, which ends the user block."""
    place = skeleton.user_block - identity.SIZE
    rest = (piece for piece in skeleton.pieces if piece[0] >= skeleton.user_block)
    return replace(skeleton, pieces=((place, identity.encode(own)), *rest))


def write(path: str, skeleton: Skeleton) -> None:
    """Writes a skeleton to a file, which may be new. Elements that others have written stay.

    Raises CheckpointError that names the file.
    """
    with opened(path, os.O_WRONLY | os.O_CREAT) as file:
        for at, content in skeleton.pieces:
            write_all(file, content, at)
        os.ftruncate(file, skeleton.places.size)


@contextmanager
def _as_checkpoint_error() -> Iterator[None]:
    """Errors of HDF5, some of which are RuntimeErrors, become CheckpointErrors."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise CheckpointError(f"HDF5 cannot describe these arrays: {error}") from error


@contextmanager
def _new_image(layouts: Sequence[Layout]) -> Iterator[tuple[Image, Any]]:
    """A new HDF5 file in memory. HDF5 requires a user block as large as the alignment."""
    import h5py

    image, options = Image(), {"userblock_size": identity.USER_BLOCK}
    if any(layout.nbytes >= _ALIGNMENT for layout in layouts):
        options = {
            "userblock_size": _ALIGNMENT,
            "alignment_threshold": _ALIGNMENT,
            "alignment_interval": _ALIGNMENT,
        }
    with _as_checkpoint_error(), h5py.File(image, "w", locking=False, **options) as file:
        yield image, file


def _skeleton(
    image: Image,
    layouts: Sequence[Layout],
    places: Sequence[int],
    sums: int,
    own: Identity,
    packed: frozenset[str] = frozenset(),
) -> Skeleton:
    """``packed``: arrays that the writer of the skeleton writes, too, after it."""
    arrays = [(at, layout) for at, layout in zip(places, layouts, strict=True) if at]
    others = tuple((at, layout.nbytes) for at, layout in arrays if layout.name not in packed)
    pieces = _without(image.pieces(), others)
    metadata = sum(len(content) for _, content in pieces) + 8 * sum_count(layouts)
    where = Places(tuple(places), sums, image.size, metadata)
    user_block = pieces[0][0]  # HDF5 writes nothing before its superblock
    return identified(Skeleton(where, pieces, others, user_block), own)


def _put_label(file: Any, label: Label) -> None:
    """What differs from one checkpoint to the next."""
    file["pario"].attrs["saved"] = datetime.now(UTC).isoformat(timespec="seconds")
    put_all(file, label.attrs)
    file.attrs["step"] = label.step


def add_array(file: Any, layout: Layout) -> Any:
    """Makes an array with room for its bytes."""
    return add_contiguous(file, layout.name, layout.shape, element_type(layout))


def element_type(layout: Layout) -> Type:
    """As h5py has it."""
    import h5py

    return h5py.string_dtype("utf-8", layout.dtype.itemsize) if layout.note[1:2] == "U" else layout.dtype


def _put_axes(file: Any, layouts: Sequence[Layout]) -> None:
    """Names of axes, as netCDF-4 has them, and what is said about each array."""
    scales: dict[str, Any] = {}
    uses: dict[str, int] = {}
    named = {layout.name for layout in layouts}
    for layout in layouts:
        dataset = file[layout.name]
        for key, value in layout.attrs.items():
            put(dataset, key, value)
        if layout.note:
            dataset.attrs["pario_type"] = layout.note
        for axis, dim in enumerate(layout.dims):
            if dim not in scales:
                scales[dim] = _scale(file, dim, layout.shape[axis], coordinates=dim in named)
            uses[dim] = uses.get(dim, 0) + 1
            if layout.name != dim and uses[dim] <= _MOST_ON_AN_AXIS:
                dataset.dims[axis].attach_scale(scales[dim])


def _scale(file: Any, dim: str, length: int, *, coordinates: bool) -> Any:
    if coordinates:
        file[dim].make_scale(dim)
    else:
        file.create_dataset(dim, (length,), dtype=">f4")  # as netCDF-4 does it; it is never written
        file[dim].make_scale(f"This is a netCDF dimension but not a netCDF variable. {length:9d}")
    return file[dim]


def _rows(number: int, layout: Layout) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
    return [(number, block.rank, block.box.begin, block.box.shape) for block in layout.blocks]


def _table(own: Any, layouts: Sequence[Layout], rows: Sequence[tuple[int, int, tuple[int, ...], tuple[int, ...]]]) -> None:
    """The blocks as rows of numbers: array, rank, where it begins, its shape, with as many axes as the array with most has."""
    axes = max((len(layout.shape) for layout in layouts), default=0)
    table = np.zeros((len(rows), 2 + 2 * axes), "<i8")
    for row, (number, rank, begin, shape) in zip(table, rows, strict=True):
        row[:2] = number, rank
        row[2 : 2 + len(begin)] = begin
        row[2 + axes : 2 + axes + len(shape)] = shape
    own.create_dataset("blocks", data=table)
    names = json.dumps([[layout.name, layout.dims] for layout in layouts]).encode()
    own.create_dataset("arrays", data=np.frombuffer(names, np.uint8))


def _without(pieces: Sequence[Piece], extents: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """The parts of pieces outside of extents (place, bytes), which do not overlap; without zeros
    at their ends, as the file is new.
    """
    found: list[Piece] = []
    ordered = sorted(extents)
    starts = [begin for begin, _ in ordered]
    for place, content in pieces:
        at, end = place, place + len(content)
        for begin, length in ordered[max(0, bisect(starts, place) - 1) :]:
            if begin >= end:
                break
            if begin > at:
                found.append((at, content[at - place : begin - place]))
            at = max(at, begin + length)
        if at < end:
            found.append((at, content[at - place :]))
    stripped = ((at, content.rstrip(b"\0")) for at, content in found)
    return tuple((at, content) for at, content in stripped if content)
