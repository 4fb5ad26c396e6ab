"""Checkpoints in parts: a directory with a part for each group of ranks and a master that presents
them as one file by virtual datasets. In a part each block is a dataset of its own, and so one run
of bytes in any decomposition. Replicated and small arrays are in the master."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint import container
from pario.checkpoint.arrays import REPLICATED, Facts
from pario.checkpoint.container import Places, Skeleton
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import whole
from pario.checkpoint.layouts import ArrayLayout, agree
from pario.checkpoint.packing import Packing
from pario.checkpoint.plan import Master, SavePlan, SaveRequest, make_master
from pario.checkpoint.store import MASTER
from pario.checkpoint.transfer import Extent, check_space
from pario.checkpoint.types import Array
from pario.ranks import Ranks

#: Values of ``files`` beside numbers: one part for each node, or for each rank.
NODE, RANK = "node", "rank"


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
_Task = tuple[str, Sequence[ArrayLayout] | None, frozenset[str]]
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
    extents = ranks.deal(what, make, lambda places: plans[0].makemake_master(request, places))
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
        layouts: Sequence[ArrayLayout],
        everyones: Sequence[Sequence[Facts]],
    ) -> None:
        self._everyones, self._layouts, self._group_of = everyones, layouts, group_of
        self.master: Master | None = None
        self._packed = container.small_arrays(layouts)
        self._leaders = [group_of.index(group) for group in range(max(group_of) + 1)]
        self._blocks: list[list[tuple[ArrayLayout, int]]] = [
            [] for _ in self._leaders
        ]  # of each part
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

    def makemake_master(
        self, request: SaveRequest, made: Sequence[Places | None]
    ) -> list[dict[str, list[Extent]]]:
        """Makes the master. Returns for each rank the extents of its boxes. ``made``: the places in
        the parts, from the ranks that made them."""
        parts = [places for leader in self._leaders if (places := made[leader]) is not None]
        extents = self._extents(parts)
        sizes = [(_part_name(group), places.size) for group, places in enumerate(parts)]
        described = np.frombuffer(json.dumps(sizes).encode(), np.uint8)
        tables = {"parts": described, "places": self._places_table(extents)}

        def array(file: Any, layout: ArrayLayout) -> Any:
            return (
                _add_virtual(file, layout, extents[layout.name])
                if self._is_divided(layout)
                else container.add_array(file, layout)
            )

        skeleton = container.create(self._layouts, request.label, array, tables)
        self.master = make_master(self._everyones, self._layouts, skeleton, self._packed)
        metadata = sum(places.metadata for places in (*parts, skeleton.places))
        check_space(request.path, self.master.nbytes + metadata)
        container.write(str(Path(request.path) / MASTER), skeleton)
        return self._by_rank(extents, skeleton.places.arrays)

    def _is_divided(self, layout: ArrayLayout) -> bool:
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


def _dataset(layout: ArrayLayout, number: int) -> ArrayLayout:
    """A block as a dataset of its part."""
    shape = layout.blocks[number].box.shape
    name = f"{layout.name}/{number}"
    return replace(layout, name=name, shape=shape, dims=(), attrs={}, blocks=())


def _add_virtual(file: Any, layout: ArrayLayout, extents: Sequence[Extent | None]) -> Any:
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
