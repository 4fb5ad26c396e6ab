"""Where the bytes of a checkpoint go. As long as all ranks give the same, the next one is arranged as the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pario import wording
from pario.checkpoint import container, transfer
from pario.checkpoint.checksum import Tally
from pario.checkpoint.container import Label, Skeleton
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.exchange import Held, Plan, Stored
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.given import REPLICATED, Facts, Given
from pario.checkpoint.layout import Layout, agree
from pario.checkpoint.packing import Packing, Unpacking, is_written, merged, small
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
    sums: Array  # of its boxes


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
    firsts: Sequence[Mapping[str, int]] = ()  # for each rank, which of its sums is the first of an array
    part: tuple[str, Skeleton] | None = None  # name and skeleton of the part that this rank makes
    joint: Plan | None = None  # where it is not plain: what the ranks of a node write together
    container: str = ""  # the name of rank 0's file

    @property
    def made_here(self) -> dict[str, int]:
        """The files that this rank makes, as extents name them, and their sizes."""
        made = {} if self.skeleton is None else {self.container: self.skeleton}
        return {name: skeleton.places.size for name, skeleton in (*made.items(), *([self.part] if self.part else []))}

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
        return Parcel(packed, rest, [[Tally(box, one.facts.shape) for box in one.facts.boxes] for one in rest])

    def written(self, parcel: Parcel) -> Written:
        """What is to be told of a parcel. Computes its checksums, where that was not done while it was written."""
        rest = [
            tally.of(data)
            for one, tallies in zip(parcel.rest, parcel.tallies, strict=True)
            for tally, data in zip(tallies, one.data, strict=True)
        ]
        sums = merged(self.packing.sums(parcel.packed), self.packing.numbers, rest)
        return Written(parcel.packed[: self.packing.written], sums)

    def check_replicated(self, sums: Sequence[Array]) -> None:
        """Raises CheckpointError where ranks give something else than rank 0, by the sums of what each gives."""
        for name in (layout.name for layout in self.layouts if layout.kind == REPLICATED):
            found = [theirs[first[name]] for first, theirs in zip(self.firsts, sums, strict=True)]
            others = [rank for rank, one in enumerate(found) if one != found[0]]
            if others:
                raise CheckpointError(f"array '{name}': not the same on rank {wording.ranks(others)} as on rank 0")

    def in_order(self, sums: Sequence[Array]) -> Array:
        """The ranks' sums in the order of the blocks in the file."""
        starts = np.cumsum([0, *map(len, sums)])
        ranks, numbers = self._blocks
        found: Array = np.concatenate(sums)[starts[ranks] + numbers]
        return found

    @cached_property
    def _blocks(self) -> tuple[list[int], list[int]]:
        """For each block in the file its rank, and the number of its sum among those of the rank."""
        ranks, numbers = [], []
        for layout in self.layouts:
            taken: Counter[int] = Counter()
            for block in layout.blocks:
                ranks.append(block.rank)
                numbers.append(self.firsts[block.rank][layout.name] + taken[block.rank])
                taken[block.rank] += 1
        return ranks, numbers


def in_one_file(ranks: Ranks, saving: Saving, facts: list[Facts]) -> Arrangement:
    """Rank 0 makes the file. Collective."""
    made: list[Arrangement] = []

    def make(everyones: list[list[Facts]]) -> tuple[dict[str, int], frozenset[str], bool]:
        layouts = agree(everyones, saving.described)
        container.check_room(saving.path, sum(layout.nbytes for layout in layouts) // saving.nodes)
        skeleton = container.create(saving.path, layouts, saving.label)
        places = {layout.name: place for layout, place in zip(layouts, skeleton.places.arrays, strict=True)}
        packed = small(layouts)
        plain = all(transfer.are_large(_divided(facts, packed)) for facts in everyones)
        packings = [Packing(theirs, packed, rank) for rank, theirs in enumerate(everyones)]
        unpacking = Unpacking(packings, places)
        made.append(Arrangement(facts, {}, plain, packings[0], layouts, skeleton, unpacking, [firsts(facts) for facts in everyones]))
        return {name: place for name, place in places.items() if name not in packed}, packed, plain

    places, packed, plain = ranks.together(f"save(step {saving.label.step})", lambda: facts, make)
    arrangement = made[0] if made else Arrangement(facts, {}, plain, Packing(facts, packed, ranks.rank))
    rest = [one for one in facts if one.name not in packed]
    arrangement.extents = {one.name: [Extent("", places[one.name], whole(one.shape))] * len(one.boxes) for one in rest}
    return arrangement


def _divided(facts: Sequence[Facts], packed: frozenset[str]) -> Iterator[tuple[Box, Box, int]]:
    rest = [one for one in facts if one.kind != REPLICATED and one.name not in packed]
    return ((whole(one.shape), box, one.dtype.itemsize) for one in rest for box in one.boxes)


def firsts(facts: Sequence[Facts]) -> dict[str, int]:
    """Which of a rank's sums is the first of an array."""
    counts = np.cumsum([0, *(len(one.boxes) for one in facts)]).tolist()
    return {one.name: first for one, first in zip(facts, counts, strict=False)}
