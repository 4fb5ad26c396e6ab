"""The plan of a save: which bytes of which rank go where. It is kept while all ranks give arrays of
the same names, types and boxes.

A checkpoint is one file, here, or a directory of several (:mod:`pario.checkpoint.parts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from pario import wording
from pario.checkpoint import container, transfer
from pario.checkpoint.arrays import REPLICATED, Facts, Given, is_written
from pario.checkpoint.checksum import Tally, grid_of
from pario.checkpoint.compression import CompressedBlock, compress_arrays
from pario.checkpoint.container import Label, Skeleton
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.layouts import ArrayLayout, agree
from pario.checkpoint.packing import Packing, Unpacking
from pario.checkpoint.transfer import Extent, Move, check_space
from pario.checkpoint.types import Array
from pario.ranks import Ranks

#: Copies arrays where a copy is needed.
Copy = Callable[[Sequence[Given]], Sequence[Given]]


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

    layouts: Sequence[ArrayLayout]
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
    layouts: Sequence[ArrayLayout], sums_of: Sequence[Mapping[str, Sequence[slice]]]
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
        rest = [one for facts in self.facts if facts.name in found for one in found[facts.name]]
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


def make_master(
    everyones: Sequence[Sequence[Facts]],
    layouts: Sequence[ArrayLayout],
    skeleton: Skeleton,
    packed: frozenset[str],
) -> Master:
    """The knowledge of rank 0, from the facts of all ranks. ``packed``: the small arrays."""
    packings = [Packing(theirs, packed, rank) for rank, theirs in enumerate(everyones)]
    sums_of = [_sum_places(theirs) for theirs in everyones]
    unpacking = Unpacking(packings, _places_of(layouts, skeleton))
    return Master(layouts, skeleton, unpacking, sums_of)


def _places_of(layouts: Sequence[ArrayLayout], skeleton: Skeleton) -> dict[str, int]:
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
        masters.append(make_master(everyones, layouts, skeleton, packed))
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

    def __init__(
        self, layouts: Sequence[ArrayLayout], everyones: Sequence[Sequence[Facts]]
    ) -> None:
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
        self.master = make_master(self._everyones, self._layouts, skeleton, self.packed)
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
