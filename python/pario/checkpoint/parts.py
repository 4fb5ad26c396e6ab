"""A checkpoint in parts: a directory with a file for each group of ranks, and a master that shows them as one by virtual datasets.

What a rank has of an array is a dataset of its own in the part of its group, so that it is written in one run whatever the decomposition.
What is the same on all ranks, and what is small, is in the master.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint import container
from pario.checkpoint.arrangement import Arrangement, Saving, places_of_sums
from pario.checkpoint.container import Places, Skeleton
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import whole
from pario.checkpoint.given import REPLICATED, Facts
from pario.checkpoint.layout import Layout, agree
from pario.checkpoint.packing import Packing, Unpacking, small
from pario.checkpoint.room import check_room
from pario.checkpoint.store import MASTER
from pario.checkpoint.transfer import Extent
from pario.checkpoint.types import Array
from pario.ranks import Ranks

#: How many files: a number, or one for each of these.
NODE, RANK = "node", "rank"

#: The name of a rank's part; where it is the one to make it what is in it; the names of arrays that are packed.
_Task = tuple[str, Sequence[Layout] | None, frozenset[str]]
#: Where the blocks of each array are, those in the master left out, in the order of its blocks.
_Extents = Mapping[str, Sequence[Extent | None]]


def check_files(files: int | str) -> None:
    """Raises CheckpointError where it says no number of files."""
    if files not in (NODE, RANK) and (not isinstance(files, int) or files < 1):
        raise CheckpointError(f"files={files!r}; expected a number from 1 on, '{NODE}' or '{RANK}'")


def groups(files: int | str, nodes: Sequence[str]) -> list[int]:
    """The number of the part that each rank writes to; ``nodes`` are those of the ranks. There are no more parts than ranks."""
    if files == NODE:
        numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
        return [numbers[node] for node in nodes]
    count = len(nodes) if files == RANK else min(int(files), len(nodes))
    return [rank * count // len(nodes) for rank in range(len(nodes))]


def in_parts(group_of: Sequence[int], ranks: Ranks, saving: Saving, facts: list[Facts]) -> Arrangement:
    """The first rank of each group makes its part, then rank 0 the master. Collective; ``group_of`` the ranks, only rank 0 knows."""
    what = f"save(step {saving.label.step})"
    plans: list[_Plan] = []
    made: list[Skeleton] = []

    def plan(everyones: list[list[Facts]]) -> list[_Task]:
        plans.append(_Plan(group_of, saving, everyones))
        return plans[0].tasks()

    def make() -> Places | None:
        if layouts is None:
            return None
        made.append(container.create_plain(layouts, saving.label.identity))
        return made[0].places

    part, layouts, packed = ranks.deal(what, lambda: facts, plan)
    extents = ranks.deal(what, make, lambda places: plans[0].make_master(saving, places))
    packing = Packing(facts, packed, ranks.rank)
    arrangement = Arrangement(facts, extents, True, packing, part=(part, made[0]) if made else None, container=MASTER)
    if plans:
        arrangement.layouts, arrangement.skeleton, arrangement.unpacking = plans[0].layouts, plans[0].skeleton, plans[0].unpacking()
        arrangement.sums_of = [places_of_sums(theirs) for theirs in plans[0].everyones]
    return arrangement


class _Plan:
    """What rank 0 knows: which block goes to which part."""

    def __init__(self, group_of: Sequence[int], saving: Saving, everyones: list[list[Facts]]) -> None:
        self.everyones, self.layouts = everyones, agree(everyones, saving.described)
        self.skeleton: Skeleton | None = None
        self._packed = small(self.layouts)
        self._group_of = group_of
        self._leaders = [group_of.index(group) for group in range(max(group_of) + 1)]
        self._blocks: list[list[tuple[Layout, int]]] = [[] for _ in self._leaders]  # of each part: arrays, and numbers of their blocks
        for layout in filter(self._is_divided, self.layouts):
            for number, block in enumerate(layout.blocks):
                if block.box.size:
                    self._blocks[group_of[block.rank]].append((layout, number))
        Path(saving.path).mkdir(exist_ok=True)

    def tasks(self) -> list[_Task]:
        """Of each rank."""
        return [
            (_name(group), [_dataset(*one) for one in self._blocks[group]] if self._leaders[group] == rank else None, self._packed)
            for rank, group in enumerate(self._group_of)
        ]

    def make_master(self, saving: Saving, made: list[Places | None]) -> list[dict[str, list[Extent]]]:
        """For each rank where its boxes go. ``made``: the places in the parts, from the ranks that made them."""
        extents = self._extents([made[leader] for leader in self._leaders])
        sizes = [places.size for leader in self._leaders if (places := made[leader]) is not None]
        tables = {"parts": _described(sizes), "places": self._table(extents)}

        def array(file: Any, layout: Layout) -> Any:
            return _add_virtual(file, layout, extents[layout.name]) if self._is_divided(layout) else container.add_array(file, layout)

        self.skeleton = container.create(self.layouts, saving.label, array, tables)
        parts = sum(places.metadata for leader in self._leaders if (places := made[leader]))
        needed = sum(layout.nbytes for layout in self.layouts) + parts
        check_room(saving.path, needed + self.skeleton.places.metadata)
        container.write(str(Path(saving.path) / MASTER), self.skeleton)
        return self._by_rank(extents, self.skeleton.places.arrays)

    def unpacking(self) -> Unpacking:
        """What rank 0 writes into the master for all."""
        assert self.skeleton is not None
        places = {layout.name: place for layout, place in zip(self.layouts, self.skeleton.places.arrays, strict=True)}
        return Unpacking([Packing(theirs, self._packed, rank) for rank, theirs in enumerate(self.everyones)], places)

    def _is_divided(self, layout: Layout) -> bool:
        """Whether its blocks are in the parts. HDF5 has no virtual datasets without axes."""
        return layout.name not in self._packed and layout.kind != REPLICATED and bool(layout.shape) and layout.nbytes > 0

    def _extents(self, places: Sequence[Places | None]) -> _Extents:
        found: dict[str, list[Extent | None]] = {layout.name: [None] * len(layout.blocks) for layout in self.layouts}
        for group, (blocks, theirs) in enumerate(zip(self._blocks, places, strict=True)):
            assert theirs is not None
            for (layout, number), place in zip(blocks, theirs.arrays, strict=True):
                found[layout.name][number] = Extent(_name(group), place, layout.blocks[number].box)
        return found

    def _table(self, extents: _Extents) -> Array:
        """For each block the number of its part, or -1, and its place there."""
        rows = [
            (self._group_of[block.rank], extent.place) if extent else (-1, 0)
            for layout in self.layouts
            for block, extent in zip(layout.blocks, extents[layout.name], strict=True)
        ]
        return np.array(rows, "<i8").reshape(len(rows), 2)

    def _by_rank(self, extents: _Extents, places: Sequence[int]) -> list[dict[str, list[Extent]]]:
        rest = [(layout, place) for layout, place in zip(self.layouts, places, strict=True) if layout.name not in self._packed]
        found: list[dict[str, list[Extent]]] = [{layout.name: [] for layout, _ in rest} for _ in self._group_of]
        for layout, place in rest:
            for block, extent in zip(layout.blocks, extents[layout.name], strict=True):
                found[block.rank][layout.name].append(extent or Extent(MASTER, place, whole(layout.shape)))
        return found


def _name(group: int) -> str:
    return f"part-{group:05d}.h5"


def part_number(name: str) -> int:
    """The number of the part with this file name."""
    return int(name.removeprefix("part-").removesuffix(".h5"))


def _dataset(layout: Layout, number: int) -> Layout:
    """A block as an array of its part."""
    return replace(layout, name=f"{layout.name}/{number}", shape=layout.blocks[number].box.shape, dims=(), attrs={}, blocks=())


def _add_virtual(file: Any, layout: Layout, extents: Sequence[Extent | None]) -> Any:
    """An array that is made of datasets of the parts. What is missing there is no number where there is such."""
    from h5py import h5p, h5s

    made = h5p.create(h5p.DATASET_CREATE)
    if layout.dtype.kind in "fc":
        made.set_fill_value(np.array(np.nan, layout.dtype))
    space = h5s.create_simple(layout.shape)
    for number, extent in enumerate(extents):
        if extent is not None:
            space.select_hyperslab(extent.box.begin, extent.box.shape)
            made.set_virtual(space, extent.file.encode(), f"{layout.name}/{number}".encode(), h5s.create_simple(extent.box.shape))
    return hdf5.add(file, layout.name, layout.shape, container.element_type(layout), made)


def _described(sizes: Sequence[int]) -> Array:
    """Names and sizes of the parts, as text."""
    text = json.dumps([(_name(group), size) for group, size in enumerate(sizes)])
    return np.frombuffer(text.encode(), np.uint8)
