"""The layout of arrays that the parts of all ranks form together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pario import wording
from pario.checkpoint import types
from pario.checkpoint.arrays import REPLICATED, Facts
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, Shape, first_flaw

#: Problems that an error names.
_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Block:
    """The part of an array that one rank saved."""

    rank: int
    box: Box


@dataclass(frozen=True)
class ArrayLayout:
    """An array of a checkpoint: its type, its axes, and the blocks of all ranks."""

    name: str
    dtype: types.Type
    note: str
    shape: Shape
    kind: str
    dims: tuple[str, ...]
    attrs: Mapping[str, Any]
    blocks: tuple[Block, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return Box(self.shape, self.shape).size * self.dtype.itemsize


def agree(
    ranks: Sequence[Sequence[Facts]], attrs: Mapping[str, Mapping[str, Any]]
) -> list[ArrayLayout]:
    """The layouts of all arrays, from the facts of all ranks. Pure; called by rank 0.

    ``attrs``: rank 0's attributes by array. Raises CheckpointError that names the first problems.
    """
    given: dict[str, dict[int, Facts]] = {}
    for rank, facts in enumerate(ranks):
        for fact in facts:
            given.setdefault(fact.name, {})[rank] = fact
    layouts, problems = [], []
    for name, by_rank in given.items():
        problem = _problem(by_rank, len(ranks))
        if problem:
            problems.append(f"array '{name}': {problem}")
        else:
            layouts.append(_layout(by_rank, attrs.get(name, {})))
    problems += [*_find_nested(given), *_find_misnamed(layouts)]
    if problems:
        rest = len(problems) - _MOST_PROBLEMS
        more = [f"and {rest} more"] if rest > 0 else []
        raise CheckpointError("; ".join([*problems[:_MOST_PROBLEMS], *more]))
    return layouts


def _problem(by_rank: dict[int, Facts], ranks: int) -> str:
    """The reason why an array cannot be saved; empty where it can."""
    if len(by_rank) < ranks:
        absent = wording.ranks(set(range(ranks)) - set(by_rank))
        return (
            f"given by rank {wording.ranks(by_rank)}, not by rank {absent}; a rank without a part"
            " of it gives an empty one"
        )
    first = next((facts for facts in by_rank.values() if facts.boxes), by_rank[0])
    for rank, facts in by_rank.items():
        for what, mine, others in (
            ("way of saving", facts.kind, first.kind),
            ("shape", facts.shape, first.shape),
            ("type", facts.dtype if facts.boxes else first.dtype, first.dtype),
            ("type", facts.note if facts.boxes else first.note, first.note),
        ):
            if mine != others:
                return f"{what} {mine} on rank {rank}, {others} on others"
    return "" if first.kind == REPLICATED else _flaw(by_rank, first.shape)


def _flaw(by_rank: dict[int, Facts], shape: Shape) -> str:
    owners = [(rank, box) for rank, facts in by_rank.items() for box in facts.boxes]
    flaw = first_flaw(shape, [box for _, box in owners])
    if flaw is None:
        return ""
    if not flaw.boxes:
        return f"no rank has {flaw.extent} of {list(shape)}"
    whose = " and ".join(
        f"rank {owners[number][0]} {owners[number][1]}" for number in flaw.boxes[:2]
    )
    return f"{flaw.extent} is given twice, by {whose}"


def _layout(by_rank: dict[int, Facts], attrs: Mapping[str, Any]) -> ArrayLayout:
    givers = {0: by_rank[0]} if by_rank[0].kind == REPLICATED else by_rank
    first = next((facts for facts in by_rank.values() if facts.boxes), by_rank[0])
    dims = by_rank[0].dims or _default_dims(first.shape)
    parts = tuple(Block(rank, box) for rank, facts in givers.items() for box in facts.boxes)
    return ArrayLayout(
        first.name, first.dtype, first.note, first.shape, first.kind, dims, attrs, parts
    )


def _default_dims(shape: Shape) -> tuple[str, ...]:
    """Names axes after their lengths, because arrays of one shape mostly share their axes."""
    names: list[str] = []
    for length in shape:
        same = sum(name.split("_")[0] == f"dim{length}" for name in names)
        names.append(f"dim{length}" + (f"_{same}" if same else ""))
    return tuple(names)


def _find_nested(names: Collection[str]) -> Iterator[str]:
    """Problems of arrays whose names are also groups of other arrays."""
    for name in names:
        above = [
            name[:at]
            for at, character in enumerate(name)
            if character == "/" and name[:at] in names
        ]
        if above:
            yield f"array '{name}' cannot be within array '{above[0]}'"


def _find_misnamed(layouts: Sequence[ArrayLayout]) -> list[str]:
    """Problems of axes: those of one name have one length, and only the array of an axis's
    coordinates has its name."""
    problems = []
    lengths: dict[str, tuple[int, str]] = {}
    for layout in layouts:
        for dim, length in zip(layout.dims, layout.shape, strict=True):
            known, other = lengths.setdefault(dim, (length, layout.name))
            if known != length:
                problems.append(
                    f"axis '{dim}' has {length} elements in array '{layout.name}', {known} in"
                    f" '{other}'"
                )
    problems += [
        f"array '{layout.name}' has the name of an axis, and is not along it alone"
        for layout in layouts
        if layout.name in lengths and layout.dims != (layout.name,)
    ]
    return problems
