"""The HDF5 files of a checkpoint, without the elements of their arrays.

Serial HDF5 makes a skeleton in memory: all bytes of a file but its arrays. Rank 0 writes it; all
ranks write the arrays, without HDF5. The skeleton of the next checkpoint with the same arrays is
made from this one, which is much faster than making a thousand datasets again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from operator import mul
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint.attributes import put_attr
from pario.checkpoint.checksum import CHUNK_BYTES, grid_of
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import RECORD_BYTES, USER_BLOCK, Identity, encode_record
from pario.checkpoint.layouts import ArrayLayout
from pario.checkpoint.metadata_table import GAP, encode_table, outside, table_bytes
from pario.checkpoint.safetensors import NAMES, Tensor, encode_covering_header, header_bytes
from pario.checkpoint.transfer import open_file
from pario.checkpoint.types import Array, Type
from pario.copying import write_all
from pario.hdf5 import Image, Piece, add_contiguous

#: The format of files without compressed arrays, and of those with them.
FORMAT, COMPRESSED = 2, 3
#: The group with the blocks of compressed arrays.
_BLOCKS = "pario/compressed"
#: zstd's level. HDF5's filter gets it as well, for programs that write to the file.
LEVEL = 3
#: Frames of zstd for each row that their index adds to the metadata table, at least: a node of the
#: index has the places of 32 frames and more.
_FRAMES_OF_A_ROW = 16
#: Size of an array in bytes from which on it begins at a multiple of this.
_ALIGNMENT = 1 << 20
#: Most arrays that share an axis in HDF5's scales: their list must fit into an attribute.
_MOST_ON_AN_AXIS = 4000
#: Small arrays: their size in bytes is below this, all together have at most _MOST_SMALL bytes.
#: Ranks send their parts to rank 0, which writes them.
LARGE = 1 << 20
_MOST_SMALL = 1 << 25

#: Rows of the metadata table beside those of arrays.
_MORE_ROWS = 64
#: The attribute of an array with elements of PyTorch that numpy does not have: their type.
TORCH_TYPE = "torch_dtype"
#: The array with the description of a state.
TREE = "state.json"
#: Arrays of states have names that begin with this.
_STATE = "state/"


@dataclass(frozen=True)
class Places:
    """The offsets of bytes that HDF5 does not write, and sizes."""

    arrays: tuple[int, ...]  # first byte of each array; 0 for an array without elements
    sums: int  # first byte of the checksums, one uint64 for each chunk
    size: int  # of the file
    metadata: int  # bytes that are not elements of arrays


@dataclass(frozen=True)
class Skeleton:
    """All bytes of a file but its arrays."""

    places: Places
    pieces: tuple[Piece, ...]  # without the user block
    others: tuple[tuple[int, int], ...]  # extents of arrays that are not in the pieces
    elements: tuple[tuple[int, int], ...]  # extents of all arrays and of the checksums
    user_block: int  # bytes
    table: bytes  # of the metadata
    identity: Identity
    tensors: tuple[Tensor, ...] | None = None  # in its safetensors header; None: it has none
    frames: Array | None = None  # rows of place and bytes for each chunk; zeros: not compressed

    def head(self) -> list[Piece]:
        """The user block: safetensors header, metadata table, identity record."""
        content = self.table + encode_record(self.identity, len(self.table))
        pieces = [(self.user_block - len(content), content)]
        if self.tensors is not None:
            start, size = self.user_block // 2, self.places.size
            pieces.insert(0, (0, encode_covering_header(self.tensors, start, size)))
        return pieces


@dataclass(frozen=True)
class Label:
    """The contents of a file beside its arrays."""

    step: int
    attrs: Mapping[str, Any]
    about: Mapping[str, Any]
    identity: Identity


def sum_count(layouts: Sequence[ArrayLayout]) -> int:
    """The number of chunks in all blocks of all arrays."""
    return sum(
        grid_of(block.box, layout.dtype.itemsize).count
        for layout in layouts
        for block in layout.blocks
    )


def small_arrays(layouts: Sequence[ArrayLayout]) -> frozenset[str]:
    """The names of the small arrays; none where all of them together are too large."""
    found = {layout.name: layout.nbytes for layout in layouts if layout.nbytes < LARGE}
    return frozenset(found if sum(found.values()) <= _MOST_SMALL else ())


def create(
    layouts: Sequence[ArrayLayout],
    label: Label,
    array: Callable[[Any, ArrayLayout], Any] | None = None,
    tables: Mapping[str, Array] | None = None,
    finish: Callable[[Any], None] = lambda file: None,
    *,
    safetensors: bool = False,
    frames: Array | None = None,
) -> Skeleton:
    """Makes the skeleton of a file. Pure.

    ``safetensors``: the file is a safetensors file, too. ``frames``: bytes of each chunk that is
    compressed, 0 for other ones; in the order of the checksums.

    ``array`` adds an array instead of :func:`add_array`. ``tables``: more tables of ``/pario``.
    ``finish`` may change attributes of the file at the end. Raises CheckpointError where HDF5
    cannot hold an array or an attribute.
    """
    image, count = Image(), 0 if frames is None else int(np.count_nonzero(frames))
    rows: Array | None = None
    with _new_file(image, layouts, safetensors=safetensors, frames=count) as file:
        own = file.create_group("pario")
        own.attrs["format"] = COMPRESSED if count else FORMAT
        own.attrs["chunk_bytes"] = CHUNK_BYTES
        own.attrs["about"] = json.dumps(dict(label.about))
        if array:
            ids = [array(file, layout) for layout in layouts]
        elif frames is not None and count:
            ids = _add_compressed(image, file, layouts, frames)
            rows = _places_of(image, frames)
            tables = {"frames": rows}
        else:
            ids = _add_arrays(file, layouts, by_size=safetensors)
        _put_axes(file, layouts)
        _put_blocks(own, layouts)
        for name, table in (tables or {}).items():
            own.create_dataset(name, data=table)
        sums = add_contiguous(own, "checksums", (sum_count(layouts),), "<u8")
        _put_label(file, label)
        finish(file)
        places = [one.get_offset() or 0 for one in ids]
        at = sums.get_offset() or 0
    tensors = tuple(_tensors(layouts, places)) if safetensors else None
    skeleton = _skeleton(image, layouts, places, at, label.identity)
    return replace(skeleton, tensors=tensors, frames=rows)


def _add_compressed(
    image: Image, file: Any, layouts: Sequence[ArrayLayout], frames: Array
) -> list[Any]:
    """Adds arrays, of which some are compressed: then each block is a dataset of its own, and the
    array presents them as a virtual one. Reserves the places of frames. Returns the IDs of arrays.
    """
    found, plain, at = [], [], 0
    for layout in layouts:
        grids = [grid_of(block.box, layout.dtype.itemsize) for block in layout.blocks]
        ends = np.cumsum([at, *(grid.count for grid in grids)]).tolist()
        sizes, at = frames[at : ends[-1]], ends[-1]
        if not sizes.any():
            plain.append(add_array(file, layout, allocate=False))
            found.append(plain[-1])
            continue
        sources = []
        for number, grid in enumerate(grids):
            mine = frames[ends[number] : ends[number + 1]].tolist()
            if not grid.block.size:
                continue
            name, shape = f"{_BLOCKS}/{layout.name}/{number}", grid.block.shape
            block = hdf5.add_zstd(
                file,
                name,
                shape,
                element_type(layout),
                grid.chunk,
                LEVEL,
                shuffle=shuffled_bytes(layout.dtype) > 1,
            )
            for size, index in zip(mine, product(*map(range, grid.counts)), strict=True):
                first = tuple(map(mul, index, grid.chunk))
                image.reserve(block, first, size)
            sources.append(((grid.block.begin, shape), hdf5.ITSELF, f"/{name}"))
        kind = element_type(layout)
        found.append(hdf5.add_virtual(file, layout.name, layout.shape, kind, sources))
    for one in plain:
        hdf5.allocate_bytes(one)
    return found


def shuffled_bytes(dtype: Type) -> int:
    """Bytes of the elements of a type that are shuffled before they are compressed; 1: they are
    not. Numbers compress better so, text does not."""
    return dtype.itemsize if dtype.kind in "iufc" else 1


def _places_of(image: Image, frames: Array) -> Array:
    """Rows of place and size for all chunks; zeros for those that are not compressed."""
    rows = np.zeros((len(frames), 2), "<i8")
    rows[frames > 0] = image.reserved
    return rows


def _tensors(layouts: Sequence[ArrayLayout], places: Sequence[int]) -> Iterator[Tensor]:
    """The arrays that safetensors files can have, as tensors; named by the keys of a state, joined
    by dots."""
    names = {layout.name: layout.name.removeprefix(_STATE).replace("/", ".") for layout in layouts}
    uses = Counter([*names.values(), "__metadata__", "__metadata__"])
    for layout, place in zip(layouts, places, strict=True):
        kind = layout.attrs.get(TORCH_TYPE) or layout.note or layout.dtype.name
        is_little = layout.dtype.newbyteorder("<") == layout.dtype
        if layout.name != TREE and layout.dtype.kind in "biuf" and kind in NAMES and is_little:
            name = names[layout.name] if uses[names[layout.name]] == 1 else layout.name
            yield Tensor(name, NAMES[kind], layout.shape, place, layout.nbytes)


def create_plain(layouts: Sequence[ArrayLayout], own: Identity) -> Skeleton:
    """Makes the skeleton of a file with arrays only. Pure."""
    image = Image()
    with _new_file(image, layouts) as file:
        places = [one.get_offset() or 0 for one in _add_arrays(file, layouts)]
    return _skeleton(image, layouts, places, 0, own)


def relabel(skeleton: Skeleton, label: Label) -> Skeleton:
    """The skeleton for another step with the same arrays."""
    image = Image(skeleton.pieces, skeleton.places.size)
    with hdf5.edit_image(image, "r+", CheckpointError) as file:
        _put_label(file, label)
    pieces = image.pieces()
    return replace(
        skeleton,
        places=replace(skeleton.places, size=image.size),
        pieces=outside(pieces, skeleton.others),
        table=encode_table(pieces, skeleton.elements, skeleton.user_block),
        identity=label.identity,
    )


def write(path: str, skeleton: Skeleton) -> None:
    """Writes a skeleton to a new file, or into one with elements that other ranks have written.

    Raises CheckpointError that names the file.
    """
    with open_file(path, os.O_WRONLY | os.O_CREAT) as file:
        for at, content in (*skeleton.head(), *skeleton.pieces):
            write_all(file, at, content)
        os.ftruncate(file, skeleton.places.size)


@contextmanager
def _new_file(
    image: Image, layouts: Sequence[ArrayLayout], *, safetensors: bool = False, frames: int = 0
) -> Iterator[Any]:
    """A new HDF5 file with a user block for the metadata table and the safetensors header.

    ``frames``: the number of compressed chunks, which lie without gaps.
    """
    rows = 2 * len(layouts) + _MORE_ROWS
    if frames:
        rows += 2 * sum(len(layout.blocks) for layout in layouts) + frames // _FRAMES_OF_A_ROW
    needed = RECORD_BYTES + table_bytes(rows)
    if safetensors:  # each has one half
        header = header_bytes((one.name, one.shape) for one in layouts)
        needed = 2 * max(needed, header)
    user_block = USER_BLOCK
    while user_block < needed:
        user_block *= 2
    options = {"userblock_size": user_block}
    if not safetensors and not frames and any(layout.nbytes >= _ALIGNMENT for layout in layouts):
        options = {  # HDF5 requires a user block as large as the alignment
            "userblock_size": max(user_block, _ALIGNMENT),
            "alignment_threshold": _ALIGNMENT,
            "alignment_interval": _ALIGNMENT,
        }
    with hdf5.edit_image(image, "w", CheckpointError, **options) as file:
        yield file


def _skeleton(
    image: Image, layouts: Sequence[ArrayLayout], places: Sequence[int], sums: int, own: Identity
) -> Skeleton:
    count, pieces, packed = sum_count(layouts), image.pieces(), frozenset[str]()
    arrays = [(at, layout) for at, layout in zip(places, layouts, strict=True) if at]
    if sums:
        packed = small_arrays(layouts)  # rank 0 writes these after the skeleton
    frames = _join_extents(image.reserved)
    small = _join_extents((at, layout.nbytes) for at, layout in arrays if layout.name in packed)
    others = tuple((at, layout.nbytes) for at, layout in arrays if layout.name not in packed)
    others += frames + tuple(extent for extent in small if extent[1] >= GAP)
    elements = (*((at, layout.nbytes) for at, layout in arrays), (sums, 8 * count), *frames)
    user_block = pieces[0][0]  # HDF5 writes nothing before its superblock
    written = outside(pieces, others)
    metadata = sum(len(content) for _, content in written) + 8 * count
    where = Places(tuple(places), sums, image.size, metadata)
    table = encode_table(pieces, elements, user_block)
    return Skeleton(where, written, others, elements, user_block, table, own)


def _join_extents(extents: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Extents (offset, bytes), of which adjacent ones are joined."""
    found: list[tuple[int, int]] = []
    for begin, length in sorted(extents):
        if found and sum(found[-1]) == begin:
            found[-1] = found[-1][0], found[-1][1] + length
        else:
            found.append((begin, length))
    return tuple(found)


def _add_arrays(file: Any, layouts: Sequence[ArrayLayout], *, by_size: bool = False) -> list[Any]:
    """Adds arrays, and then allocates their bytes: small arrays lie together, apart from the
    metadata of all, and are written at once. Returns their low-level IDs.

    ``by_size``: elements of decreasing size, so that all are aligned without gaps.
    """
    ids = [add_array(file, layout, allocate=False) for layout in layouts]
    for one in sorted(ids, key=lambda one: -one.dtype.itemsize) if by_size else ids:
        hdf5.allocate_bytes(one)
    return ids


def add_array(file: Any, layout: ArrayLayout, *, allocate: bool = True) -> Any:
    """Adds an array, with allocated bytes. Returns its low-level ID."""
    kind = element_type(layout)
    return add_contiguous(file, layout.name, layout.shape, kind, allocate=allocate)


def element_type(layout: ArrayLayout) -> Type:
    """The type of elements as h5py needs it."""
    import h5py

    return (
        h5py.string_dtype("utf-8", layout.dtype.itemsize)
        if layout.note[1:2] == "U"
        else layout.dtype
    )


def _put_label(file: Any, label: Label) -> None:
    """Sets the attributes that differ from one checkpoint to the next."""
    file["pario"].attrs["saved"] = datetime.now(UTC).isoformat(timespec="seconds")
    for name in set(file.attrs) - set(label.attrs):
        del file.attrs[name]
    for name, value in label.attrs.items():
        put_attr(file, name, value)
    file.attrs["step"] = label.step


def _put_axes(file: Any, layouts: Sequence[ArrayLayout]) -> None:
    """Sets the attributes of arrays, and the names of axes as netCDF-4 stores them."""
    scales: dict[str, Any] = {}
    uses: dict[str, int] = {}
    named = {layout.name for layout in layouts}
    for layout in layouts:
        dataset = file[layout.name]
        for key, value in layout.attrs.items():
            put_attr(dataset, key, value)
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
        file.create_dataset(dim, (length,), dtype=">f4")  # as netCDF-4 does; never written
        file[dim].make_scale(f"This is a netCDF dimension but not a netCDF variable. {length:9d}")
    return file[dim]


def _put_blocks(own: Any, layouts: Sequence[ArrayLayout]) -> None:
    """Adds the tables of arrays and blocks. A row has the numbers of array and rank, then begin
    and shape, with as many axes as the array with most axes."""
    axes = max((len(layout.shape) for layout in layouts), default=0)
    rows = [(number, block) for number, layout in enumerate(layouts) for block in layout.blocks]
    table = np.zeros((len(rows), 2 + 2 * axes), "<i8")
    for row, (number, block) in zip(table, rows, strict=True):
        begin, shape = block.box.begin, block.box.shape
        row[:2] = number, block.rank
        row[2 : 2 + len(begin)] = begin
        row[2 + axes : 2 + axes + len(shape)] = shape
    own.create_dataset("blocks", data=table)
    names = json.dumps([[layout.name, layout.dims] for layout in layouts]).encode()
    own.create_dataset("arrays", data=np.frombuffer(names, np.uint8))
