"""What a checkpoint says of itself: read by one process, sent to the others."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint.attributes import get_all, get_few, names_of, value_of
from pario.checkpoint.chunks import Grid, grid_of
from pario.checkpoint.container import FORMAT
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, Shape, whole
from pario.checkpoint.layout import Block, Layout
from pario.checkpoint.store import document
from pario.checkpoint.transfer import Extent, Move
from pario.checkpoint.types import Array
from pario.paths import local_path

#: Names of the files beside a master: their bytes are read past HDF5, so no other file may be named.
_PART = re.compile(r"part-\d{5,}\.h5")


@dataclass(frozen=True)
class Entry:
    """An array of a file."""

    layout: Layout
    extents: tuple[Extent, ...] | None  # where its bytes are; None where HDF5 has to be asked for them
    sums: Array  # uint64, of the chunks of all blocks; none in files of other programs
    chunk_bytes: int = 0  # of a chunk at most; 0: blocks are chunks (format version 1)

    @property
    def sum(self) -> int | None:
        """Of the whole array."""
        return int(np.add.reduce(self.sums)) if len(self.sums) else None

    def blocks_in(self, box: Box) -> list[int]:
        """Numbers of the blocks that have elements of a box, and maybe of empty ones."""
        if not box.size or not self.layout.blocks:
            return []
        begins, behind = self._block_bounds
        near = (begins < np.array(box.end)) & (behind > np.array(box.begin))
        return np.flatnonzero(near.all(axis=1)).tolist()

    @cached_property
    def _block_bounds(self) -> tuple[Array, Array]:
        boxes = [block.box for block in self.layout.blocks]
        return np.array([box.begin for box in boxes]), np.array([box.end for box in boxes])

    @property
    def sum_count(self) -> int:
        """How many chunks all blocks have."""
        return int(self._firsts[-1])

    def grid(self, number: int) -> Grid:
        """The chunks of a block."""
        block = self.layout.blocks[number].box
        return grid_of(block, self.layout.dtype.itemsize, self.chunk_bytes)

    def sums_of(self, number: int) -> Array:
        """The sums of the chunks of a block."""
        first, behind = self._firsts[number : number + 2].tolist()
        return self.sums[first:behind]

    @cached_property
    def _firsts(self) -> Array:
        """For each block the number of its first sum; at last, of all sums."""
        counts = [self.grid(number).count for number in range(len(self.layout.blocks))]
        return np.cumsum([0, *counts])

    def moves(self, box: Box, data: Array) -> dict[str, list[Move]]:
        """By file what reads a box into an array of its shape."""
        assert self.extents is not None
        found: dict[str, list[Move]] = {}
        for extent in self._near(box):
            common = extent.box.meet(box)
            if common.size:
                found.setdefault(extent.file, []).append(extent.move(common, data[common.within(box)]))
        return found

    def _near(self, box: Box) -> Iterable[Extent]:
        """The extents that have something of a box, and maybe others."""
        assert self.extents is not None
        if len(self.extents) < 2:
            return self.extents
        ends = np.array(box.end)
        begins, behind = self._bounds
        return (self.extents[number] for number in np.flatnonzero(((begins < ends) & (behind > box.begin)).all(axis=1)))

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        return np.array([one.box.begin for one in self.extents or ()]), np.array([one.box.end for one in self.extents or ()])


@dataclass(frozen=True)
class Header:
    """All of a checkpoint but the elements of its arrays."""

    path: str
    step: int
    attrs: Mapping[str, Any]
    about: Mapping[str, Any]  # where, when and by what it was saved
    entries: Mapping[str, Entry]
    format: int = FORMAT  # 0: of another program

    def file(self, name: str) -> str:
        """The path of one of its files, as extents name them."""
        return str(Path(self.path).parent / name) if name else self.path


def read_header(path: str | os.PathLike[str]) -> Header:
    """Raises CheckpointError where the file is no whole checkpoint, and says why. Files of other programs have no blocks and sums."""
    path = document(local_path(path, CheckpointError))
    if path.is_symlink():  # "latest", which may be another one soon
        path = path.resolve()
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file")
    try:
        with hdf5.open_to_read(path, CheckpointError) as source:
            return _header(str(path), source)
    except (OSError, KeyError, ValueError, IndexError, TypeError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: {str(error).strip(chr(39))}") from error


def _header(path: str, source: hdf5.Source) -> Header:
    file = source.file
    about: dict[str, Any] = {}
    blocks: dict[str, list[_Row]] = {}
    dims: dict[str, tuple[str, ...]] = {}
    version = 0
    if "pario" in file:
        own = file["pario"]
        version = int(own.attrs["format"])
        if version > FORMAT:
            raise CheckpointError(f"{path} has format {version}; this pario knows formats up to {FORMAT}")
        about = {**json.loads(own.attrs["about"]), "saved": own.attrs["saved"]}
        dims = {name: tuple(axes) for name, axes in json.loads(source.read("pario/arrays").tobytes())}
        blocks = _blocks(source, list(dims), _checked_parts(path, source))
    entries = {name: _entry(dataset, name, names, blocks.get(name, []), dims.get(name)) for name, dataset, names in _datasets(source)}
    if blocks:
        chunk_bytes = int(own.attrs["chunk_bytes"]) if version > 1 else 0
        sums = source.read("pario/checksums")
        entries = dict(_with_sums(path, entries, blocks, sums, chunk_bytes))
    step = file.attrs.get("step", 0)
    return Header(path, int(step), get_all(file), about, entries, version)


def _with_sums(
    path: str,
    entries: Mapping[str, Entry],
    blocks: Mapping[str, Sequence[_Row]],
    sums: Array,
    chunk_bytes: int,
) -> Iterator[tuple[str, Entry]]:
    """The arrays in the order of the table of blocks, each with its checksums; then the others."""
    at = 0
    for name, rows in blocks.items():
        if name not in entries:
            raise CheckpointError(f"{path}: array '{name}' is listed, but not there")
        entry = replace(entries[name], chunk_bytes=chunk_bytes)
        count = entry.sum_count if rows else 0
        yield name, replace(entry, sums=sums[at : at + count])
        at += count
    if at != len(sums):
        raise CheckpointError(f"{path} has {len(sums)} checksums; its blocks have {at} chunks")
    yield from ((name, entry) for name, entry in entries.items() if name not in blocks)


def _datasets(source: hdf5.Source) -> Iterator[tuple[str, Any, list[str]]]:
    """The arrays of a file, and the names of their attributes. As HDF5 itself has them: h5py's own objects take several times as long."""
    for name, dataset in source.datasets():
        if not name.startswith("pario/"):
            names = names_of(dataset)
            if "NAME" not in names or not _only_axis(dataset):
                yield name, dataset, names


def _only_axis(dataset: Any) -> bool:
    return bool(np.bytes_(value_of(dataset, "NAME")).startswith(b"This is a netCDF dimension but not"))


@dataclass(frozen=True)
class _Row:
    """A block as the tables have it."""

    rank: int
    begin: Shape
    shape: Shape
    file: str  # nothing where it is in no part
    place: int


def _checked_parts(path: str, source: hdf5.Source) -> list[str]:
    """Names of the files beside the master, which must be there as a whole: HDF5 would make up what is missing."""
    parts = json.loads(source.read("pario/parts").tobytes()) if "pario/parts" in source.file else []
    for name, size in parts:
        if not _PART.fullmatch(name):
            raise CheckpointError(f"{path}: part '{name}'; expected part-00000.h5 and so on")
        part = Path(path).with_name(name)
        found = part.stat().st_size if part.is_file() else None
        if found is None or found < size:
            raise CheckpointError(f"{path}: {part} " + ("is not there" if found is None else f"has {found} bytes of {size}"))
    return [name for name, _ in parts]


def _blocks(source: hdf5.Source, names: Sequence[str], parts: Sequence[str]) -> dict[str, list[_Row]]:
    """Blocks by array."""
    table = source.read("pario/blocks")
    places = source.read("pario/places").tolist() if parts else [(-1, 0)] * len(table)
    axes = (table.shape[1] - 2) // 2
    found: dict[str, list[_Row]] = {name: [] for name in names}
    for row, (part, place) in zip(table.tolist(), places, strict=True):
        begin, shape = tuple(row[2 : 2 + axes]), tuple(row[2 + axes :])
        found[names[row[0]]].append(_Row(row[1], begin, shape, parts[part] if part >= 0 else "", place))
    return found


def _entry(dataset: Any, name: str, names: Sequence[str], rows: list[_Row], dims: tuple[str, ...] | None) -> Entry:
    shape, dtype = _shape(dataset), dataset.dtype
    axes = len(shape)
    blocks = tuple(Block(row.rank, Box(row.begin[:axes], row.shape[:axes])) for row in rows)
    attrs = get_few(dataset, names)
    dims = dims if dims is not None else tuple(_axis(dataset, axis) for axis in range(axes))  # HDF5 takes its time to tell them
    note = str(value_of(dataset, "pario_type")) if "pario_type" in names else ""
    layout = Layout(name, np.dtype(dtype.str) if dtype.kind == "S" else dtype, note, shape, "", dims, attrs, blocks)
    return Entry(layout, _extents(dataset, layout, rows), np.zeros(0, np.uint64))


def _shape(dataset: Any) -> Shape:
    from h5py import h5s

    space = dataset.get_space()
    return (0,) if space.get_simple_extent_type() == h5s.NULL else tuple(space.get_simple_extent_dims())


def _extents(dataset: Any, layout: Layout, rows: list[_Row]) -> tuple[Extent, ...] | None:
    """HDF5 tells no place of what is in several pieces, compressed, or in other files."""
    in_parts = tuple(Extent(row.file, row.place, block.box) for row, block in zip(rows, layout.blocks, strict=True) if row.file)
    if in_parts or not Box(layout.shape, layout.shape).size:
        return in_parts
    place = dataset.get_offset() if layout.dtype.kind != "O" else None
    return None if place is None else (Extent("", place, whole(layout.shape)),)


def _axis(dataset: Any, axis: int) -> str:
    import h5py

    dims = h5py.Dataset(dataset).dims
    scales: Sequence[Any] = dims[axis] if axis < len(dims) else ()  # of what is empty there are none
    return scales[0].name.lstrip("/") if len(scales) else ""
