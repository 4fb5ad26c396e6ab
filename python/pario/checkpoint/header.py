"""The header of a checkpoint: all of it but the elements. Read by one process, sent to others."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint.attributes import user_attrs
from pario.checkpoint.checksum import Grid, grid_of
from pario.checkpoint.container import COMPRESSED, FORMAT
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, Shape, whole
from pario.checkpoint.layouts import ArrayLayout, Block
from pario.checkpoint.metadata_table import check_metadata
from pario.checkpoint.store import Found, Store, ask_path, document
from pario.checkpoint.transfer import Extent, Move
from pario.checkpoint.types import Array
from pario.hdf5 import attribute_names, attribute_value
from pario.paths import local_path, resolve

#: Names of parts beside a master. Their bytes are read without HDF5, so no other names may occur.
_PART = re.compile(r"part-\d{5,}\.h5")


@dataclass(frozen=True)
class Entry:
    """An array of a checkpoint: its layout, the places of its bytes, its checksums."""

    layout: ArrayLayout
    extents: tuple[Extent, ...] | None  # None: compressed, or only HDF5 can read the elements
    sums: Array  # uint64, of the chunks of all blocks; empty in files of other programs
    chunk_bytes: int = 0  # largest chunk; 0: blocks are chunks (format version 1)
    frames: Array | None = None  # rows of place and bytes of each compressed chunk

    @property
    def stored_bytes(self) -> int:
        """Bytes of the elements in the file."""
        return self.layout.nbytes if self.frames is None else int(self.frames[:, 1].sum())

    @property
    def sum(self) -> int | None:
        """The checksum of the whole array; None without checksums."""
        return int(np.add.reduce(self.sums)) if len(self.sums) else None

    def blocks_in(self, box: Box) -> list[int]:
        """The numbers of blocks that overlap a box, and maybe of empty ones."""
        if not box.size or not self.layout.blocks:
            return []
        begins, ends = self._block_bounds
        near = (begins < np.array(box.end)) & (ends > np.array(box.begin))
        return np.flatnonzero(near.all(axis=1)).tolist()

    @cached_property
    def _block_bounds(self) -> tuple[Array, Array]:
        boxes = [block.box for block in self.layout.blocks]
        return np.array([box.begin for box in boxes]), np.array([box.end for box in boxes])

    @property
    def sum_count(self) -> int:
        """The number of chunks of all blocks."""
        return int(self._firsts[-1])

    def grid(self, number: int) -> Grid:
        """The chunks of a block."""
        block = self.layout.blocks[number].box
        return grid_of(block, self.layout.dtype.itemsize, self.chunk_bytes)

    def sums_of(self, number: int) -> Array:
        """The checksums of the chunks of a block."""
        first, end = self._firsts[number : number + 2].tolist()
        return self.sums[first:end]

    def frames_of(self, number: int) -> Array:
        """The rows of the compressed chunks of a block."""
        assert self.frames is not None
        first, end = self._firsts[number : number + 2].tolist()
        return self.frames[first:end]

    def damage_text(self, number: int, box: Box) -> str:
        """Describes damage in a box of a block."""
        rank = self.layout.blocks[number].rank
        return f"array '{self.layout.name}': {box}, saved by rank {rank}, is not what was saved"

    @cached_property
    def _firsts(self) -> Array:
        """For each block the number of its first checksum; at the end the number of all."""
        counts = [self.grid(number).count for number in range(len(self.layout.blocks))]
        return np.cumsum([0, *counts])

    def moves(self, box: Box, data: Array) -> dict[str, list[Move]]:
        """The moves, by file, that read a box into ``data``, an array of its shape."""
        assert self.extents is not None
        found: dict[str, list[Move]] = {}
        for extent in self._near(box):
            common = extent.box.meet(box)
            if common.size:
                found.setdefault(extent.file, []).append(
                    extent.move(common, data[common.within(box)])
                )
        return found

    def _near(self, box: Box) -> Iterable[Extent]:
        """The extents that overlap a box, and maybe others."""
        assert self.extents is not None
        if len(self.extents) < 2:
            return self.extents
        begins, ends = self._bounds
        near = ((begins < np.array(box.end)) & (ends > box.begin)).all(axis=1)
        return (self.extents[number] for number in np.flatnonzero(near))

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        boxes = [extent.box for extent in self.extents or ()]
        return np.array([box.begin for box in boxes]), np.array([box.end for box in boxes])


@dataclass(frozen=True)
class Header:
    """All of a checkpoint but the elements of its arrays."""

    path: str
    step: int
    attrs: Mapping[str, Any]
    about: Mapping[str, Any]  # program, time and hosts of the save
    entries: Mapping[str, Entry]
    format: int = FORMAT  # 0: of another program
    url: str = ""  # the object that was copied to the path

    @property
    def name(self) -> str:
        """The URL or path of the checkpoint, for messages."""
        return self.url or self.path

    def file(self, name: str) -> str:
        """The path of a file of the checkpoint, by its name in extents."""
        return str(Path(self.path).parent / name) if name else self.path

    def describe_missing(self, name: str) -> str:
        """The message for an array that the checkpoint does not have."""
        return f"{self.name} has no array '{name}'; it has {', '.join(self.entries) or 'none'}"


def read_header(path: str | os.PathLike[str], *, verify: bool = True) -> Header:
    """Reads the header of a file, which has no blocks and checksums if another program made it.

    ``verify``: compares HDF5's metadata with its checksums first. Raises CheckpointError with the
    reason where the file is not a complete checkpoint.
    """
    path = document(local_path(path, CheckpointError))
    try:
        if path.is_symlink():  # "latest", which may soon be another checkpoint
            path = resolve(path)
        is_file = path.is_file()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    if not is_file:
        raise CheckpointError(
            f"{path}: no such file; expected a checkpoint, or a directory of them"
        )
    if verify:
        check_metadata(path)
    with hdf5.open_to_read(path, CheckpointError) as source:
        return _header(str(path), source)


def _header(path: str, source: hdf5.Source) -> Header:
    file = source.file
    about: dict[str, Any] = {}
    blocks: dict[str, list[_Row]] = {}
    dims: dict[str, tuple[str, ...]] = {}
    version = 0
    if "pario" in file:
        own = file["pario"]
        version = int(own.attrs["format"])
        if version > COMPRESSED:
            raise CheckpointError(
                f"{path} has format {version}; this pario knows formats up to {COMPRESSED}"
            )
        about = {**json.loads(own.attrs["about"]), "saved": own.attrs["saved"]}
        names = json.loads(source.read("pario/arrays").tobytes())
        dims = {name: tuple(axes) for name, axes in names}
        blocks = _blocks(source, list(dims), _checked_parts(path, source))
    entries = {
        name: _entry(dataset, name, names, blocks.get(name, []), dims.get(name))
        for name, dataset, names in _datasets(source)
    }
    if blocks:
        chunk_bytes = int(own.attrs["chunk_bytes"]) if version > 1 else 0
        sums = source.read("pario/checksums")
        frames = source.read("pario/frames") if "frames" in own else None
        if frames is not None and frames.shape != (len(sums), 2):
            raise CheckpointError(
                f"{path} has {len(sums)} checksums; its table of frames has shape"
                f" {list(frames.shape)}"
            )
        entries = dict(_with_sums(path, entries, blocks, sums, frames, chunk_bytes))
    step = int(file.attrs.get("step", 0))
    return Header(
        path, step, user_attrs(file.attrs, file.attrs.__getitem__), about, entries, version
    )


def _with_sums(
    path: str,
    entries: Mapping[str, Entry],
    blocks: Mapping[str, Sequence[_Row]],
    sums: Array,
    frames: Array | None,
    chunk_bytes: int,
) -> Iterator[tuple[str, Entry]]:
    """The arrays in the order of the table of blocks, with their checksums; then the others."""
    at = 0
    for name, rows in blocks.items():
        if name not in entries:
            raise CheckpointError(f"{path}: array '{name}' is listed, but not there")
        entry = replace(entries[name], chunk_bytes=chunk_bytes)
        count = entry.sum_count if rows else 0
        entry = replace(entry, sums=sums[at : at + count])
        if frames is not None and entry.extents is None:
            entry = replace(entry, frames=frames[at : at + count])
        yield name, entry
        at += count
    if at != len(sums):
        raise CheckpointError(f"{path} has {len(sums)} checksums; its blocks have {at} chunks")
    yield from ((name, entry) for name, entry in entries.items() if name not in blocks)


def _datasets(source: hdf5.Source) -> Iterator[tuple[str, Any, list[str]]]:
    """The arrays of a file as low-level datasets, and the names of their attributes."""
    for name, dataset in source.datasets():
        if not name.startswith("pario/"):
            names = attribute_names(dataset)
            if "NAME" not in names or not _is_only_axis(dataset):
                yield name, dataset, names


def _is_only_axis(dataset: Any) -> bool:
    name = np.bytes_(attribute_value(dataset, "NAME"))
    return bool(name.startswith(b"This is a netCDF dimension but not"))


@dataclass(frozen=True)
class _Row:
    """A block in the tables of a file."""

    rank: int
    begin: Shape
    shape: Shape
    file: str  # name of its part; empty if it is in none
    place: int


def _checked_parts(path: str, source: hdf5.Source) -> list[str]:
    """The names of the parts of a master, which must be complete: HDF5 would fill up gaps."""
    parts = json.loads(source.read("pario/parts").tobytes()) if "pario/parts" in source.file else []
    for name, size in parts:
        if not _PART.fullmatch(name):
            raise CheckpointError(f"{path}: part '{name}'; expected part-00000.h5 and so on")
        part = Path(path).with_name(name)
        found = part.stat().st_size if part.is_file() else None
        if found is None:
            raise CheckpointError(f"{path}: {part} is not there")
        if found < size:
            raise CheckpointError(f"{path}: {part} has {found} bytes of {size}")
    return [name for name, _ in parts]


def _blocks(
    source: hdf5.Source, names: Sequence[str], parts: Sequence[str]
) -> dict[str, list[_Row]]:
    """The blocks of each array."""
    table = source.read("pario/blocks")
    places = source.read("pario/places").tolist() if parts else [(-1, 0)] * len(table)
    axes = (table.shape[1] - 2) // 2
    found: dict[str, list[_Row]] = {name: [] for name in names}
    for row, (part, place) in zip(table.tolist(), places, strict=True):
        begin, shape = tuple(row[2 : 2 + axes]), tuple(row[2 + axes :])
        file = parts[part] if part >= 0 else ""
        found[names[row[0]]].append(_Row(row[1], begin, shape, file, place))
    return found


def _entry(
    dataset: Any, name: str, names: Sequence[str], rows: list[_Row], dims: tuple[str, ...] | None
) -> Entry:
    shape, dtype = hdf5.shape_of(dataset), dataset.dtype
    axes = len(shape)
    blocks = tuple(Block(row.rank, Box(row.begin[:axes], row.shape[:axes])) for row in rows)
    attrs = user_attrs(names, partial(attribute_value, dataset))
    if dims is None:  # slow: HDF5 follows references
        dims = tuple(hdf5.scale_name(dataset, axis) for axis in range(axes))
    note = str(attribute_value(dataset, "pario_type")) if "pario_type" in names else ""
    plain = np.dtype(dtype.str) if dtype.kind == "S" else dtype
    layout = ArrayLayout(name, plain, note, shape, "", dims, attrs, blocks)
    return Entry(layout, _extents(dataset, layout, rows), np.zeros(0, np.uint64))


def _extents(dataset: Any, layout: ArrayLayout, rows: list[_Row]) -> tuple[Extent, ...] | None:
    """The places of the elements; None for chunked, compressed or virtual datasets."""
    in_parts = tuple(
        Extent(row.file, row.place, block.box)
        for row, block in zip(rows, layout.blocks, strict=True)
        if row.file
    )
    if in_parts or not Box(layout.shape, layout.shape).size:
        return in_parts
    place = dataset.get_offset() if layout.dtype.kind != "O" else None
    return None if place is None else (Extent("", place, whole(layout.shape)),)


def find(
    path: str | os.PathLike[str], step: int | None = None, *, verify: bool = True
) -> tuple[Header, list[str]]:
    """The header of the checkpoint to load, and messages about those that are skipped."""
    local = local_path(path, CheckpointError)
    if _is_one(local):
        header = read_header(local, verify=verify)
        if step not in (None, header.step):
            raise CheckpointError(f"{path} is of step {header.step}, not of step {step}")
        return header, []
    store = Store(path)
    while True:
        found = [one for one in store.complete() if step is None or one.step == step]
        skipped = _list_flaws(store, found, step)
        for one in reversed(found):
            try:
                return read_header(one.path, verify=verify), skipped
            except CheckpointError as error:
                skipped.append(f"{error}; it is skipped")
            if not ask_path(one.path.exists, otherwise=True):
                break  # a Writer has published a newer one, and removed this one
        else:
            which = "no complete checkpoint" + ("" if step is None else f" of step {step}")
            raise CheckpointError("; ".join([f"{path}: {which}", *skipped]))


def _is_one(path: Path) -> bool:
    """True unless a path is a directory of checkpoints. Where the file system answers with an
    error, the opening fails, with the reason."""
    return ask_path(document(path).is_file, otherwise=True) or not ask_path(
        path.is_dir, otherwise=False
    )


def _list_flaws(store: Store, found: Sequence[Found], step: int | None) -> list[str]:
    """Messages about the manifest, damaged records and newer unfinished checkpoints."""
    messages = []
    if step is None:
        problem = store.manifest.read()[1]
        messages = [problem] if problem else []
        missing = store.missing()
        messages += [f"{store.directory / one.name}: listed, but not there" for one in missing]
    unordered = [document(one.path) for one in found if not one.generation]
    for path in unordered:
        if path in store.damaged:
            messages.append(f"{path}: {store.damaged[path]}; its order is unknown")
    newest = max((one.generation for one in found), default=0)
    for torn in store.list_unfinished():
        is_newer = not torn.generation or torn.generation > newest
        if is_newer and step in (None, torn.step):
            messages.append(f"{torn.path}: not finished; it is skipped")
    return messages
