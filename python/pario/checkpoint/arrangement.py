"""Where the bytes of a checkpoint go. As long as all ranks give the same, the next one is arranged as the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from pario import wording
from pario.checkpoint import container, transfer
from pario.checkpoint.checksum import Tally
from pario.checkpoint.chunks import grid_of
from pario.checkpoint.container import Label, Skeleton
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.exchange import Held, Plan, Stored
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.given import REPLICATED, Facts, Given
from pario.checkpoint.layout import Layout, agree
from pario.checkpoint.packing import Packing, Unpacking, is_written, merged, small
from pario.checkpoint.room import check_room
from pario.checkpoint.transfer import Extent
from pario.checkpoint.types import Array
from pario.ranks import Ranks


@dataclass(frozen=True)
class Saving:
    """A checkpoint that is about to be saved. Only rank 0's label counts, and what it says of arrays."""

    path: str  # until it is complete
    label: Label
    described: Mapping[str, Mapping[str, object]]  # attributes of arrays
    nodes: int = 1  # that share its bytes until then


@dataclass(frozen=True)
class Parcel:
    """What a rank saves: small arrays, packed, and the other ones."""

    packed: bytes
    rest: Sequence[Given]
    tallies: Sequence[Sequence[Tally]]  # of the boxes of these


@dataclass(frozen=True)
class Written:
    """What a rank tells rank 0 when it has written what it writes itself."""

    packed: bytes  # what rank 0 writes for it
    sums: Array  # of the chunks of its boxes


@dataclass
class Arrangement:
    """How the arrays lie in the file, or the files. Only rank 0 knows all of it."""

    facts: list[Facts]  # of this rank
    extents: Mapping[str, Sequence[Extent]]  # of this rank's boxes of each array that is not packed
    plain: bool  # each rank writes its own large runs, without the others
    packing: Packing
    layouts: Sequence[Layout] = ()
    skeleton: Skeleton | None = None  # of the file that rank 0 makes
    unpacking: Unpacking | None = None
    sums_of: Sequence[Mapping[str, Sequence[slice]]] = ()  # by rank and array, for each box
    part: tuple[str, Skeleton] | None = None  # name and skeleton of the part that this rank makes
    joint: Plan | None = None  # where it is not plain: what the ranks of a node write together
    container: str = ""  # the name of rank 0's file

    @property
    def made_here(self) -> dict[str, int]:
        """The files that this rank makes, as extents name them, and their sizes."""
        made = {} if self.skeleton is None else {self.container: self.skeleton}
        return {name: skeleton.places.size for name, skeleton in (*made.items(), *([self.part] if self.part else []))}

    @property
    def metadata(self) -> int:
        """Bytes of the files that this rank makes, without elements of arrays."""
        made = [self.skeleton, self.part[1] if self.part else None]
        return sum(skeleton.places.metadata for skeleton in made if skeleton is not None)

    def held(self, rank: int) -> Held:
        """What this rank writes into the one file."""
        found: Held = {}
        for one in self.facts:
            if is_written(one, rank):
                for extent, box in zip(self.extents.get(one.name, ()), one.boxes, strict=False):
                    if box.size:
                        found.setdefault(Stored(extent.place, extent.box.begin, extent.box.shape, one.dtype.itemsize), []).append(box)
        return found

    @cached_property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(layout.nbytes for layout in self.layouts)

    def parcel(self, given: Sequence[Given], copy: Callable[[Sequence[Given]], Sequence[Given]]) -> Parcel:
        """What is given; ``copy`` makes the copy of arrays that are not packed."""
        packed = self.packing.pack(given)
        rest = copy([one for one in given if one.facts.name in self.extents])
        tallies = [[Tally(box, one.facts.shape, one.facts.dtype.itemsize) for box in one.facts.boxes] for one in rest]
        return Parcel(packed, rest, tallies)

    def written(self, parcel: Parcel) -> Written:
        """The report on a parcel. Computes the checksums that were not added up during writing."""
        rest = [
            tally.of(data)
            for one, tallies in zip(parcel.rest, parcel.tallies, strict=True)
            for tally, data in zip(tallies, one.data, strict=True)
        ]
        sums = merged(self.packing.sums(parcel.packed), self.packing.numbers, rest)
        return Written(parcel.packed[: self.packing.written], sums)

    def check_replicated(self, sums: Sequence[Array]) -> None:
        """Raises CheckpointError where ranks do not give the same as rank 0. ``sums``: by rank."""
        own = [theirs[places] for theirs, places in zip(sums, self._replicated, strict=True)]
        if all(np.array_equal(own[0], theirs) for theirs in own[1:]):
            return
        for name in (layout.name for layout in self.layouts if layout.kind == REPLICATED):
            found = [theirs[places[name][0]] for places, theirs in zip(self.sums_of, sums, strict=True)]
            others = [rank for rank, one in enumerate(found) if not np.array_equal(one, found[0])]
            if others:
                raise CheckpointError(f"array '{name}': not the same on rank {wording.ranks(others)} as on rank 0")

    @cached_property
    def _replicated(self) -> list[Array]:
        """For each rank its sums of the arrays that are the same on all ranks."""
        names = [layout.name for layout in self.layouts if layout.kind == REPLICATED]
        nothing = np.zeros(0, np.int64)
        return [
            np.concatenate([nothing, *(np.arange(own.start, own.stop) for own in (places[name][0] for name in names))])
            for places in self.sums_of
        ]

    def in_order(self, sums: Sequence[Array]) -> Array:
        """The ranks' sums in the order of the chunks in the file."""
        found: Array = np.concatenate([*sums, np.zeros(0, np.uint64)])[self._order]
        return found

    @cached_property
    def _order(self) -> Array:
        """For each sum in the file its number among those of all ranks, one after the other."""
        starts = np.cumsum([0, *(_count(places) for places in self.sums_of)]).tolist()
        order = [np.zeros(0, np.int64)]
        for layout in self.layouts:
            taken: Counter[int] = Counter()
            for block in layout.blocks:
                own = self.sums_of[block.rank][layout.name][taken[block.rank]]
                order.append(starts[block.rank] + np.arange(own.start, own.stop))
                taken[block.rank] += 1
        return np.concatenate(order)


def _count(places: Mapping[str, Sequence[slice]]) -> int:
    return max((own.stop for some in places.values() for own in some), default=0)


def in_one_file(ranks: Ranks, saving: Saving, facts: list[Facts]) -> Arrangement:
    """Rank 0 makes the file. Collective."""
    made: list[Arrangement] = []

    def make(everyones: list[list[Facts]]) -> tuple[dict[str, int], frozenset[str], bool]:
        layouts = agree(everyones, saving.described)
        skeleton = container.create(layouts, saving.label)
        needed = sum(layout.nbytes for layout in layouts) // saving.nodes + skeleton.places.metadata
        check_room(saving.path, needed)
        container.write(saving.path, skeleton)
        places = {layout.name: place for layout, place in zip(layouts, skeleton.places.arrays, strict=True)}
        packed = small(layouts)
        plain = all(transfer.are_large(_divided(facts, packed)) for facts in everyones)
        packings = [Packing(theirs, packed, rank) for rank, theirs in enumerate(everyones)]
        unpacking = Unpacking(packings, places)
        sums_of = [places_of_sums(facts) for facts in everyones]
        made.append(Arrangement(facts, {}, plain, packings[0], layouts, skeleton, unpacking, sums_of))
        return {name: place for name, place in places.items() if name not in packed}, packed, plain

    places, packed, plain = ranks.together(f"save(step {saving.label.step})", lambda: facts, make)
    arrangement = made[0] if made else Arrangement(facts, {}, plain, Packing(facts, packed, ranks.rank))
    rest = [one for one in facts if one.name not in packed]
    arrangement.extents = {one.name: [Extent("", places[one.name], whole(one.shape))] * len(one.boxes) for one in rest}
    return arrangement


def _divided(facts: Sequence[Facts], packed: frozenset[str]) -> Iterator[tuple[Box, Box, int]]:
    rest = [one for one in facts if one.kind != REPLICATED and one.name not in packed]
    return ((whole(one.shape), box, one.dtype.itemsize) for one in rest for box in one.boxes)


def places_of_sums(facts: Sequence[Facts]) -> dict[str, list[slice]]:
    """Which of a rank's sums are those of the boxes of each array."""
    found: dict[str, list[slice]] = {}
    at = 0
    for one in facts:
        counts = [grid_of(box, one.dtype.itemsize).count for box in one.boxes]
        ends = np.cumsum([at, *counts]).tolist()
        found[one.name] = [slice(begin, end) for begin, end in pairwise(ends)]
        at = ends[-1]
    return found
