"""The plan of a save: which bytes of which rank go where. It is kept while all ranks give arrays of
the same names, types and boxes.

A checkpoint is one file, or a directory with a part for each group of ranks and a master that
presents them as one file by virtual datasets. In a part each block is a dataset of its own, and so
one run of bytes in any decomposition. Replicated and small arrays are in the master.

Each rank packs its parts of small arrays, and rank 0 writes all, because calls for each of a
thousand arrays cost more than their bytes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5, wording
from pario._native import packed_checksums
from pario.checkpoint import container, transfer
from pario.checkpoint.arrays import REPLICATED, Facts, Given, Layout, agree, is_written
from pario.checkpoint.checksum import Tally, grid_of
from pario.checkpoint.compression import CompressedBlock, compress_arrays
from pario.checkpoint.container import Label, Places, Skeleton
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, runs, strides, whole
from pario.checkpoint.store import MASTER
from pario.checkpoint.transfer import Extent, Move, check_space, write_all
from pario.checkpoint.types import Array
from pario.ranks import Ranks

#: Values of ``files`` beside numbers: one part for each node, or for each rank.
NODE, RANK = "node", "rank"
#: Copies arrays where a copy is needed.
Copy = Callable[[Sequence[Given]], Sequence[Given]]
#: Bytes of a gap between packed arrays, which holds HDF5 metadata, that are rewritten to save a
#: call; bytes written together.
_GAP, _GROUP = 1 << 12, 1 << 20
#: Bytes of an array that are copied twice when they are packed, to save a call.
_FEW = 1 << 14


class Packing:
    """The order in which a rank packs its parts of small arrays: written parts first.

    Of replicated arrays only the parts of rank 0 are written.
    """

    def __init__(self, facts: Sequence[Facts], names: frozenset[str], rank: int) -> None:
        counts = np.cumsum([0, *(_sum_count(one, names) for one in facts)]).tolist()
        packed = [(place, one) for place, one in enumerate(facts) if one.name in names]
        packed.sort(key=lambda each: not is_written(each[1], rank))
        self._facts = [one for _, one in packed]
        self._places = [place for place, _ in packed]
        #: The numbers of the parts' checksums among all checksums of the rank.
        self.numbers = np.array(
            [counts[place] + number for place, one in packed for number in range(len(one.boxes))],
            int,
        )
        rows = [
            (one.dtype.itemsize, len(one.shape), *one.shape, *box.begin, *box.shape)
            for one in self._facts
            for box in one.boxes
        ]
        self._boxes = np.array([number for row in rows for number in row], "u8")
        #: Bytes of the written parts.
        self.written = sum(
            box.size * one.dtype.itemsize
            for one in self._facts
            if is_written(one, rank)
            for box in one.boxes
        )

    def pack(self, given: Sequence[Given]) -> bytes:
        """The bytes of all parts."""
        return b"".join([_bytes_of(data) for place in self._places for data in given[place].data])

    def sums(self, packed: bytes) -> list[int]:
        """The checksums of the parts."""
        return packed_checksums(packed, self._boxes)

    def merge_sums(self, packed: bytes, others: Sequence[Array]) -> Array:
        """All checksums of the rank in order. ``others``: those of arrays that are not packed."""
        rest_sums = np.concatenate([np.zeros(0, np.uint64), *others])
        sums = self.sums(packed)
        found = np.empty(len(sums) + len(rest_sums), np.uint64)
        rest = np.ones(len(found), bool)
        rest[self.numbers] = False
        found[self.numbers], found[rest] = sums, rest_sums
        return found

    def pieces(self, places: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
        """The written runs: offset in the file, offset in the packed bytes, and length.

        ``places``: the offset of each array in the file.
        """
        at = 0
        for one in self._facts:
            for box in one.boxes:
                element = one.dtype.itemsize
                in_file, in_memory, length = runs(
                    box, whole(one.shape), element, strides(box.shape, element)
                )
                for place, begin in zip(in_file.tolist(), in_memory.tolist(), strict=True):
                    if box.size and at < self.written:
                        yield places[one.name] + place, at + begin, length
                at += box.size * element


def _bytes_of(data: Array) -> bytes | memoryview:
    """The bytes of an array in C order. A view costs more than a copy of few bytes."""
    return data.tobytes() if data.nbytes < _FEW else data.reshape(-1).view(np.uint8).data


def _sum_count(facts: Facts, packed: frozenset[str]) -> int:
    """The number of a rank's checksums of an array; a box of a small array is one chunk."""
    if facts.name in packed:
        return len(facts.boxes)
    return sum(grid_of(box, facts.dtype.itemsize).count for box in facts.boxes)


#: Adjacent bytes of packed arrays: offset in the file, and the rank and slice of each piece.
_Region = tuple[int, list[tuple[int, slice]]]


class Unpacking:
    """The places where rank 0 writes the packed bytes of all ranks."""

    def __init__(self, packings: Sequence[Packing], places: Mapping[str, int]) -> None:
        pieces = sorted(
            (place, rank, begin, count)
            for rank, one in enumerate(packings)
            for place, begin, count in one.pieces(places)
        )
        self._groups: list[list[_Region]] = []  # of regions with small gaps
        first = end = -_GROUP
        for place, rank, begin, count in pieces:
            if place > end + _GAP or place > first + _GROUP:
                self._groups.append([])
                first = place
            if place != end or not self._groups[-1]:
                self._groups[-1].append((place, []))
            self._groups[-1][-1][1].append((rank, slice(begin, begin + count)))
            end = place + count

    def write(self, file: int, packed: Sequence[bytes]) -> None:
        """Writes the packed bytes of all ranks to a descriptor; gaps keep their bytes."""
        views = [memoryview(one) for one in packed]
        for group in self._groups:
            regions = [
                (place, b"".join([views[rank][piece] for rank, piece in pieces]))
                for place, pieces in group
            ]
            write_all(file, _join_regions(file, regions), regions[0][0])


def _join_regions(file: int, regions: Sequence[tuple[int, bytes]]) -> bytes:
    """The bytes of regions, and those of the file between them."""
    if len(regions) == 1:
        return regions[0][1]
    first, (last, content) = regions[0][0], regions[-1]
    size = last + len(content) - first
    joined = bytearray(os.pread(file, size, first).ljust(size, b"\0"))
    for place, content in regions:
        joined[place - first : place - first + len(content)] = content
    return bytes(joined)


@dataclass(frozen=True)
class SaveRequest:
    """A checkpoint to be saved. Label and attributes are those of rank 0."""

    path: str  # while it is unfinished
    label: Label
    attrs: Mapping[str, Mapping[str, object]]  # by array
    nodes: int = 1  # that share its bytes while it is unfinished
    safetensors: bool = False  # the file is a safetensors file, too


@dataclass(frozen=True)
class RankData:
    """The data of a rank: small arrays, packed; the other arrays, with tallies of their boxes."""

    packed: bytes
    rest: Sequence[Given]
    tallies: Sequence[Sequence[Tally]]


@dataclass(frozen=True)
class RankResult:
    """The result of a rank's writing, for rank 0: packed bytes to be written, and checksums."""

    packed: bytes
    sums: Array  # of the chunks of its boxes


@dataclass
class Master:
    """The knowledge of rank 0: all arrays, the file that it makes, and all ranks' checksums."""

    layouts: Sequence[Layout]
    skeleton: Skeleton
    unpacking: Unpacking
    sums_of: Sequence[Mapping[str, Sequence[slice]]]  # by rank and array, for each box

    @cached_property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(layout.nbytes for layout in self.layouts)

    def check_replicated(self, sums: Sequence[Array]) -> None:
        """Raises CheckpointError where a rank gives other values than rank 0. ``sums``: by rank."""
        own = [theirs[places] for theirs, places in zip(sums, self._replicated_sums, strict=True)]
        if all(np.array_equal(own[0], theirs) for theirs in own[1:]):
            return
        for name in self._replicated:
            found = [
                theirs[places[name][0]] for places, theirs in zip(self.sums_of, sums, strict=True)
            ]
            others = [rank for rank, one in enumerate(found) if not np.array_equal(one, found[0])]
            if others:
                raise CheckpointError(
                    f"array '{name}': not the same on rank {wording.ranks(others)} as on rank 0"
                )

    @cached_property
    def _replicated(self) -> list[str]:
        return [layout.name for layout in self.layouts if layout.kind == REPLICATED]

    @cached_property
    def _replicated_sums(self) -> list[Array]:
        """For each rank the numbers of its checksums of replicated arrays."""
        nothing = np.zeros(0, np.int64)
        return [
            np.concatenate([nothing, *(_numbers(places[name][0]) for name in self._replicated)])
            for places in self.sums_of
        ]

    def order_sums(self, sums: Sequence[Array]) -> bytes:
        """The table of checksums in the file, from those of each rank."""
        found: Array = np.concatenate([*sums, np.zeros(0, np.uint64)])[self._order]
        return found.astype("<u8", copy=False).tobytes()

    @cached_property
    def _order(self) -> Array:
        return _file_order(self.layouts, self.sums_of)


def _file_order(
    layouts: Sequence[Layout], sums_of: Sequence[Mapping[str, Sequence[slice]]]
) -> Array:
    """For each chunk in the file its number among those of all ranks, rank by rank."""
    starts = np.cumsum([0, *map(_count_chunks, sums_of)]).tolist()
    order = [np.zeros(0, np.int64)]
    for layout in layouts:
        used: Counter[int] = Counter()
        for block in layout.blocks:
            own = sums_of[block.rank][layout.name][used[block.rank]]
            order.append(starts[block.rank] + _numbers(own))
            used[block.rank] += 1
    return np.concatenate(order)


def _count_chunks(places: Mapping[str, Sequence[slice]]) -> int:
    """The number of a rank's chunks, from the numbers of each box."""
    return max((own.stop for some in places.values() for own in some), default=0)


def _numbers(some: slice) -> Array:
    return np.arange(some.start, some.stop)


@dataclass
class SavePlan:
    """The plan of a save on one rank."""

    facts: list[Facts]  # of this rank's arrays
    extents: Mapping[str, Sequence[Extent]]  # for each box of each array that is not packed
    independent: bool  # each rank writes its own large runs
    packing: Packing
    master: Master | None = None  # on rank 0
    part: tuple[str, Skeleton] | None = None  # name and skeleton of the part that this rank makes
    container: str = ""  # the name in extents of rank 0's file
    #: The compressed arrays: for each box its frames. Such a plan is for one save.
    compressed: Mapping[str, Sequence[CompressedBlock]] = field(default_factory=dict)
    frames: Sequence[Move] = ()  # the writes of all frames

    @property
    def file_sizes(self) -> dict[str, int]:
        """The sizes of the files that this rank makes, by their names in extents."""
        made = {self.container: self.master.skeleton} if self.master else {}
        if self.part:
            made[self.part[0]] = self.part[1]
        return {name: skeleton.places.size for name, skeleton in made.items()}

    def space_needed(self, nodes: int) -> int:
        """Bytes that rank 0 looks for before a save: arrays on one node, and its metadata."""
        assert self.master is not None
        made = [self.master.skeleton, *([self.part[1]] if self.part else [])]
        metadata = sum(skeleton.places.metadata for skeleton in made)
        return self.master.nbytes // nodes + metadata

    def collect(self, given: Sequence[Given], copy: Copy) -> RankData:
        """Packs small arrays; ``copy`` copies the others where needed."""
        packed = self.packing.pack(given)
        rest = copy([one for one in given if one.facts.name in self.extents])
        tallies = [
            [Tally(box, one.facts.shape, one.facts.dtype.itemsize) for box in one.facts.boxes]
            for one in rest
        ]
        return RankData(packed, rest, tallies)

    def free_frames(self) -> None:
        """Frees the memory of compressed arrays, which are written."""
        self.compressed, self.frames = {}, ()

    def moves(self, data: RankData, rank: int, *, all_ranks: bool) -> dict[str, list[Move]]:
        """This rank's writes by file. ``all_ranks``: every rank opens rank 0's file."""
        found: dict[str, list[Move]] = {"": []} if all_ranks else {}
        if self.part is not None:
            found[self.part[0]] = []
        for one, tallies in zip(data.rest, data.tallies, strict=True):
            if is_written(one.facts, rank):
                extents = self.extents[one.facts.name]
                for extent, box, array, tally in zip(
                    extents, one.facts.boxes, one.data, tallies, strict=True
                ):
                    found.setdefault(extent.file, []).append(extent.move(box, array, tally))
        if self.frames:
            found.setdefault("", []).extend(self.frames)
        return found

    def result(self, data: RankData) -> RankResult:
        """The result for rank 0. Computes the checksums that were not added up during writing."""
        found = {name: [one.sums for one in some] for name, some in self.compressed.items()}
        for one, tallies in zip(data.rest, data.tallies, strict=True):
            pairs = zip(tallies, one.data, strict=True)
            found[one.facts.name] = [tally.of(array) for tally, array in pairs]
        rest = [one for facts in self.facts for one in found.get(facts.name, ())]
        sums = self.packing.merge_sums(data.packed, rest)
        return RankResult(data.packed[: self.packing.written], sums)


def _sum_places(facts: Sequence[Facts]) -> dict[str, list[slice]]:
    """For each array the numbers of a rank's checksums of each box."""
    found: dict[str, list[slice]] = {}
    at = 0
    for one in facts:
        counts = [grid_of(box, one.dtype.itemsize).count for box in one.boxes]
        ends = np.cumsum([at, *counts]).tolist()
        found[one.name] = [slice(begin, end) for begin, end in pairwise(ends)]
        at = ends[-1]
    return found


def _master(
    everyones: Sequence[Sequence[Facts]],
    layouts: Sequence[Layout],
    skeleton: Skeleton,
    packed: frozenset[str],
) -> Master:
    packings = [Packing(theirs, packed, rank) for rank, theirs in enumerate(everyones)]
    sums_of = [_sum_places(theirs) for theirs in everyones]
    unpacking = Unpacking(packings, _places_of(layouts, skeleton))
    return Master(layouts, skeleton, unpacking, sums_of)


def _places_of(layouts: Sequence[Layout], skeleton: Skeleton) -> dict[str, int]:
    """The offset of each array in the file."""
    names = [layout.name for layout in layouts]
    return dict(zip(names, skeleton.places.arrays, strict=True))


def _extents_in(places: Mapping[str, int], facts: Sequence[Facts]) -> dict[str, list[Extent]]:
    """For each array with a place in rank 0's file the extents of a rank's boxes."""
    return {
        one.name: [Extent("", places[one.name], whole(one.shape))] * len(one.boxes)
        for one in facts
        if one.name in places
    }


def plan_one_file(ranks: Ranks, request: SaveRequest, facts: list[Facts]) -> SavePlan:
    """Plans a checkpoint in one file, which rank 0 makes. Collective."""
    masters: list[Master] = []

    def make(everyones: list[list[Facts]]) -> tuple[dict[str, int], frozenset[str], bool]:
        layouts = agree(everyones, request.attrs)
        skeleton = container.create(layouts, request.label, safetensors=request.safetensors)
        packed = container.small_arrays(layouts)
        masters.append(_master(everyones, layouts, skeleton, packed))
        check_space(request.path, masters[0].nbytes // request.nodes + skeleton.places.metadata)
        container.write(request.path, skeleton)
        places = _places_of(layouts, skeleton)
        for name in packed:
            del places[name]
        large = all(transfer.are_large(_list_divided(theirs, packed)) for theirs in everyones)
        return places, packed, large

    places, packed, large = ranks.together(f"save(step {request.label.step})", lambda: facts, make)
    extents, packing = _extents_in(places, facts), Packing(facts, packed, ranks.rank)
    return SavePlan(facts, extents, large, packing, masters[0] if masters else None)


def plan_compressed(ranks: Ranks, request: SaveRequest, given: Sequence[Given]) -> SavePlan:
    """Compresses this rank's large arrays, and plans a checkpoint in one file. Collective.

    Rank 0 makes the file when it knows the sizes of all frames.
    """
    what, facts = f"save(step {request.label.step})", [one.facts for one in given]
    made: list[_CompressedFile] = []

    def begin(everyones: list[list[Facts]]) -> tuple[frozenset[str], frozenset[str]]:
        made.append(_CompressedFile(agree(everyones, request.attrs), everyones))
        return made[0].packed, made[0].names

    packed, names = ranks.together(what, lambda: facts, begin)
    sums_of = _sum_places(facts)
    compressed: dict[str, list[CompressedBlock]] = {}

    def compress() -> Array:
        large = [one for one in given if one.facts.name in names]
        compressed.update(compress_arrays(large, ranks))
        sizes = np.zeros(_count_chunks(sums_of), np.int64)
        for name, some in compressed.items():
            for block, numbers in zip(some, sums_of[name], strict=True):
                sizes[numbers] = [len(frame) for frame in block.frames]
        return sizes

    places, frames = ranks.deal(what, compress, lambda sizes: made[0].make(request, sizes))
    extents = _extents_in(places, facts)
    moves = [
        move
        for name, some in compressed.items()
        for block, numbers in zip(some, sums_of[name], strict=True)
        for move in block.moves(frames[numbers])
    ]
    packing, master = Packing(facts, packed, ranks.rank), made[0].master if made else None
    return SavePlan(facts, extents, True, packing, master, compressed=compressed, frames=moves)


class _CompressedFile:
    """The file of rank 0 with compressed arrays."""

    def __init__(self, layouts: Sequence[Layout], everyones: Sequence[Sequence[Facts]]) -> None:
        self._layouts, self._everyones = layouts, everyones
        self.packed = container.small_arrays(layouts)
        #: The compressed arrays. HDF5 has no chunks without axes.
        self.names = frozenset(
            layout.name
            for layout in layouts
            if layout.name not in self.packed and layout.shape and layout.nbytes
        )
        self.master: Master | None = None

    def make(
        self, request: SaveRequest, sizes: Sequence[Array]
    ) -> list[tuple[dict[str, int], Array]]:
        """Makes the file. ``sizes``: for each rank, those of the frames of its chunks.

        Returns for each rank the places of the arrays in one piece, and those of its frames.
        """
        sums_of = [_sum_places(theirs) for theirs in self._everyones]
        order, of_all = _file_order(self._layouts, sums_of), np.concatenate(sizes)
        skeleton = container.create(self._layouts, request.label, frames=of_all[order])
        self.master = _master(self._everyones, self._layouts, skeleton, self.packed)
        plain = sum(one.nbytes for one in self._layouts if one.name not in self.names)
        needed = (int(of_all.sum()) + plain) // request.nodes
        check_space(request.path, needed + skeleton.places.metadata)
        container.write(request.path, skeleton)
        frames = np.zeros(len(of_all), np.int64)
        if skeleton.frames is not None:
            frames[order] = skeleton.frames[:, 0]
        places = _places_of(self._layouts, skeleton)
        for name in self.packed | self.names:
            del places[name]
        ends = np.cumsum([len(theirs) for theirs in sizes])
        return [(places, theirs) for theirs in np.split(frames, ends[:-1])]


def _list_divided(facts: Sequence[Facts], packed: frozenset[str]) -> Iterator[tuple[Box, Box, int]]:
    """A rank's boxes of arrays that are neither replicated nor packed."""
    rest = [one for one in facts if one.kind != REPLICATED and one.name not in packed]
    return ((whole(one.shape), box, one.dtype.itemsize) for one in rest for box in one.boxes)


def check_files(files: int | str) -> None:
    """Raises CheckpointError if ``files`` is not a valid number of files."""
    if files not in (NODE, RANK) and (not isinstance(files, int) or files < 1):
        raise CheckpointError(f"files={files!r}; expected a number from 1 on, '{NODE}' or '{RANK}'")


def groups(files: int | str, nodes: Sequence[str]) -> list[int]:
    """The number of the part that each rank writes; ``nodes``: the node of each rank. There are no
    more parts than ranks."""
    if files == NODE:
        numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
        return [numbers[node] for node in nodes]
    count = len(nodes) if files == RANK else min(int(files), len(nodes))
    return [rank * count // len(nodes) for rank in range(len(nodes))]


#: For a rank: the name of its part, the datasets if it makes the part, the names of small arrays.
_Task = tuple[str, Sequence[Layout] | None, frozenset[str]]
#: For each array the extents of its blocks in parts; None for blocks in the master.
_Extents = Mapping[str, Sequence[Extent | None]]


def plan_parts(
    group_of: Sequence[int], ranks: Ranks, request: SaveRequest, facts: list[Facts]
) -> SavePlan:
    """Plans a checkpoint in parts. The first rank of each group makes its part, then rank 0 the
    master. Collective; only rank 0 needs ``group_of``, the part of each rank."""
    what = f"save(step {request.label.step})"
    plans: list[_PartsPlan] = []
    made: list[Skeleton] = []

    def divide(everyones: list[list[Facts]]) -> list[_Task]:
        plans.append(_PartsPlan(group_of, agree(everyones, request.attrs), everyones))
        Path(request.path).mkdir(exist_ok=True)
        return plans[0].tasks()

    def make() -> Places | None:
        if layouts is None:
            return None
        made.append(container.create_plain(layouts, request.label.identity))
        return made[0].places

    part, layouts, packed = ranks.deal(what, lambda: facts, divide)
    extents = ranks.deal(what, make, lambda places: plans[0].make_master(request, places))
    return SavePlan(
        facts,
        extents,
        True,
        Packing(facts, packed, ranks.rank),
        plans[0].master if plans else None,
        (part, made[0]) if made else None,
        container=MASTER,
    )


class _PartsPlan:
    """The plan of rank 0: the part of each block."""

    def __init__(
        self,
        group_of: Sequence[int],
        layouts: Sequence[Layout],
        everyones: Sequence[Sequence[Facts]],
    ) -> None:
        self._everyones, self._layouts, self._group_of = everyones, layouts, group_of
        self.master: Master | None = None
        self._packed = container.small_arrays(layouts)
        self._leaders = [group_of.index(group) for group in range(max(group_of) + 1)]
        self._blocks: list[list[tuple[Layout, int]]] = [[] for _ in self._leaders]  # of each part
        for layout in filter(self._is_divided, layouts):
            for number, block in enumerate(layout.blocks):
                if block.box.size:
                    self._blocks[group_of[block.rank]].append((layout, number))

    def tasks(self) -> list[_Task]:
        """The task of each rank."""
        return [
            (
                _part_name(group),
                [_dataset(*one) for one in self._blocks[group]]
                if self._leaders[group] == rank
                else None,
                self._packed,
            )
            for rank, group in enumerate(self._group_of)
        ]

    def make_master(
        self, request: SaveRequest, made: Sequence[Places | None]
    ) -> list[dict[str, list[Extent]]]:
        """Makes the master. Returns for each rank the extents of its boxes. ``made``: the places in
        the parts, from the ranks that made them."""
        parts = [places for leader in self._leaders if (places := made[leader]) is not None]
        extents = self._extents(parts)
        sizes = [(_part_name(group), places.size) for group, places in enumerate(parts)]
        described = np.frombuffer(json.dumps(sizes).encode(), np.uint8)
        tables = {"parts": described, "places": self._places_table(extents)}

        def array(file: Any, layout: Layout) -> Any:
            return (
                _add_virtual(file, layout, extents[layout.name])
                if self._is_divided(layout)
                else container.add_array(file, layout)
            )

        skeleton = container.create(self._layouts, request.label, array, tables)
        self.master = _master(self._everyones, self._layouts, skeleton, self._packed)
        metadata = sum(places.metadata for places in (*parts, skeleton.places))
        check_space(request.path, self.master.nbytes + metadata)
        container.write(str(Path(request.path) / MASTER), skeleton)
        return self._by_rank(extents, skeleton.places.arrays)

    def _is_divided(self, layout: Layout) -> bool:
        """True if its blocks are in the parts. HDF5 has no virtual datasets without axes."""
        return (
            layout.name not in self._packed
            and layout.kind != REPLICATED
            and bool(layout.shape)
            and layout.nbytes > 0
        )

    def _extents(self, parts: Sequence[Places]) -> _Extents:
        found: dict[str, list[Extent | None]] = {
            layout.name: [None] * len(layout.blocks) for layout in self._layouts
        }
        for group, (blocks, places) in enumerate(zip(self._blocks, parts, strict=True)):
            for (layout, number), place in zip(blocks, places.arrays, strict=True):
                box = layout.blocks[number].box
                found[layout.name][number] = Extent(_part_name(group), place, box)
        return found

    def _places_table(self, extents: _Extents) -> Array:
        """For each block the number of its part, or -1, and its offset there."""
        rows = [
            (self._group_of[block.rank], extent.place) if extent else (-1, 0)
            for layout in self._layouts
            for block, extent in zip(layout.blocks, extents[layout.name], strict=True)
        ]
        return np.array(rows, "<i8").reshape(len(rows), 2)

    def _by_rank(self, extents: _Extents, places: Sequence[int]) -> list[dict[str, list[Extent]]]:
        rest = [
            (layout, place)
            for layout, place in zip(self._layouts, places, strict=True)
            if layout.name not in self._packed
        ]
        found: list[dict[str, list[Extent]]] = [
            {layout.name: [] for layout, _ in rest} for _ in self._group_of
        ]
        for layout, place in rest:
            for block, extent in zip(layout.blocks, extents[layout.name], strict=True):
                found[block.rank][layout.name].append(
                    extent or Extent(MASTER, place, whole(layout.shape))
                )
        return found


def _part_name(group: int) -> str:
    return f"part-{group:05d}.h5"


def part_number(name: str) -> int:
    """The number of the part with this file name."""
    return int(name.removeprefix("part-").removesuffix(".h5"))


def _dataset(layout: Layout, number: int) -> Layout:
    """A block as a dataset of its part."""
    shape = layout.blocks[number].box.shape
    name = f"{layout.name}/{number}"
    return replace(layout, name=name, shape=shape, dims=(), attrs={}, blocks=())


def _add_virtual(file: Any, layout: Layout, extents: Sequence[Extent | None]) -> Any:
    """Adds an array that consists of datasets of the parts; missing numbers are NaN."""
    return hdf5.add_virtual(
        file,
        layout.name,
        layout.shape,
        container.element_type(layout),
        (
            ((extent.box.begin, extent.box.shape), extent.file, f"{layout.name}/{number}")
            for number, extent in enumerate(extents)
            if extent is not None
        ),
        np.array(np.nan, layout.dtype) if layout.dtype.kind in "fc" else None,
    )
