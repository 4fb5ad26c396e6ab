"""A checkpoint as a file: HDF5 that any program reads, with the bytes of each array in one piece at a known place.

Rank 0 makes the file with plain, serial HDF5; bytes are written past HDF5, by all ranks. Where the arrays of the next checkpoint are the
same, its file is made of the bytes that lie around the arrays of this one, which is much faster than to have HDF5 make a thousand arrays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pario.checkpoint.attributes import put, put_all
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.layout import Layout
from pario.checkpoint.transfer import opened, write_all
from pario.checkpoint.types import Array, Type
from pario.hdf5 import add_contiguous

FORMAT = 1
#: Arrays from this size on begin at multiples of it.
_ALIGNMENT = 1 << 20
_META = 1 << 16
#: Arrays that can have the same axis: the list of them must fit into an attribute.
_MOST_ON_AN_AXIS = 4000


@dataclass(frozen=True)
class Places:
    """Where the bytes are that HDF5 does not write itself."""

    arrays: tuple[int, ...]  # first byte of each; of one without elements 0
    sums: int  # a number of 64 bits for each block
    size: int  # of the file


@dataclass(frozen=True)
class Skeleton:
    """All of a file but its arrays."""

    places: Places
    pieces: tuple[tuple[int, bytes], ...]  # place and bytes


@dataclass(frozen=True)
class Label:
    """What a file says of itself beside its arrays."""

    step: int
    attrs: Mapping[str, Any]
    about: Mapping[str, Any]


def create(
    path: str,
    layouts: Sequence[Layout],
    label: Label,
    array: Callable[[Any, Layout], Any] | None = None,
    tables: Mapping[str, Array] | None = None,
) -> Skeleton:
    """Makes the file, with room for the arrays. ``array`` makes one; those that it makes without room have no place.
    ``tables`` are more of what pario says of the arrays.
    """
    with _named(path), _new(path) as file:
        own = file.create_group("pario")
        own.attrs["format"] = FORMAT
        own.attrs["about"] = json.dumps(dict(label.about))
        ids = [(array or add_array)(file, layout) for layout in layouts]
        _put_axes(file, layouts)
        rows = [row for number, layout in enumerate(layouts) for row in _rows(number, layout)]
        _table(own, layouts, rows)
        for name, table in (tables or {}).items():
            own.create_dataset(name, data=table)
        sums = add_contiguous(own, "checksums", (len(rows),), "<u8")
        _put_label(file, label)
        places = [one.get_offset() or 0 for one in ids]
        at = sums.get_offset() or 0
    return _skeleton(path, layouts, places, at)


def create_plain(path: str, layouts: Sequence[Layout]) -> Skeleton:
    """Makes a file with room for arrays, and nothing else."""
    with _named(path), _new(path) as file:
        places = [add_array(file, layout).get_offset() or 0 for layout in layouts]
    return _skeleton(path, layouts, places, 0)


def copy(path: str, skeleton: Skeleton, label: Label) -> None:
    """Makes the file of another step with the same arrays."""
    import h5py

    put_skeleton(path, skeleton)
    with _named(path), h5py.File(path, "r+", locking=False) as container:
        _put_label(container, label)


def put_skeleton(path: str, skeleton: Skeleton) -> None:
    """Makes a file of what was around the arrays of another one; what others have already written of the arrays stays."""
    with opened(path, os.O_WRONLY | os.O_CREAT) as file:
        for at, piece in skeleton.pieces:
            write_all(file, piece, at)
        os.ftruncate(file, skeleton.places.size)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """What HDF5 raises becomes an error that names the file: where there is no room it is a RuntimeError of its own words."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _new(path: str) -> Any:
    import h5py

    return h5py.File(path, "w", locking=False, alignment_threshold=_ALIGNMENT, alignment_interval=_ALIGNMENT, meta_block_size=_META)


def _skeleton(path: str, layouts: Sequence[Layout], places: Sequence[int], sums: int) -> Skeleton:
    size = os.stat(path).st_size  # noqa: PTH116
    where = Places(tuple(places), sums, size)
    return Skeleton(where, _around(path, [(at, layout.nbytes) for at, layout in zip(places, layouts, strict=True)], size))


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


def _around(path: str, arrays: Sequence[tuple[int, int]], size: int) -> tuple[tuple[int, bytes], ...]:
    """What lies between the arrays."""
    pieces, at = [], 0
    with open(path, "rb") as file:  # noqa: PTH123
        for begin, length in sorted((begin, length) for begin, length in (*arrays, (size, 0)) if begin):
            if begin > at:
                file.seek(at)
                pieces.append((at, file.read(begin - at).rstrip(b"\0")))
            at = begin + length
    return tuple(pieces)


def check_room(path: str, needed: int) -> None:
    """Raises CheckpointError where a file system has no room for so many bytes."""
    try:
        facts = os.statvfs(os.path.dirname(path) or ".")  # noqa: PTH120
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    free = facts.f_bavail * facts.f_frsize
    if free < needed:
        raise CheckpointError(f"{path}: no space: {needed} bytes are needed, {free} are free")
