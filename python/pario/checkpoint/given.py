"""What a program gives to be saved: blocks of arrays, and what is said about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

import numpy as np

from pario.checkpoint import types
from pario.checkpoint.device import in_memory
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, Shape, whole

#: How the ranks' parts make up an array.
TILES, REPLICATED, PER_RANK = "blocks", "replicated", "per rank"
_NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True)  # frozen ones take four times as long to make, and there may be thousands in each save
class Saved:
    """Parts of an array that this rank has. Made by :func:`block`, :func:`blocks`, :func:`replicated` and :func:`per_rank`."""

    kind: str
    shape: Shape  # of the whole array
    parts: tuple[tuple[types.Array, Shape], ...]  # and where they begin
    dims: tuple[str, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)


def block(
    array: Any,
    shape: Sequence[int],
    offset: Sequence[int],
    *,
    dims: Sequence[str] = (),
    units: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Saved:
    """This rank's part of an array of ``shape``, which begins at ``offset``: any array without its ghost cells, as ``T[1:-1, 1:-1]``.

    The parts of all ranks must tile the array; they may be empty. ``dims`` names the axes.
    """
    return Saved(TILES, _numbers(shape), ((in_memory(array), _numbers(offset)),), tuple(dims), _described(units, attrs))


def blocks(
    parts: Iterable[tuple[Any, Sequence[int]]],
    shape: Sequence[int],
    *,
    dims: Sequence[str] = (),
    units: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Saved:
    """The same for a rank with several parts, as in block-cyclic decompositions, or none: ``(array, offset)`` of each."""
    held = tuple((in_memory(array), _numbers(offset)) for array, offset in parts)
    return Saved(TILES, _numbers(shape), held, tuple(dims), _described(units, attrs))


def replicated(array: Any, *, dims: Sequence[str] = (), units: str = "", attrs: Mapping[str, Any] | None = None) -> Saved:
    """An array, a number or a string that is the same on all ranks. It is checked that it is."""
    held = in_memory(array)
    return Saved(REPLICATED, held.shape, ((held, (0,) * held.ndim),), tuple(dims), _described(units, attrs))


def per_rank(array: Any, *, units: str = "", attrs: Mapping[str, Any] | None = None) -> Saved:
    """A number or an array of the same shape on each rank; it becomes an array with one more axis in front, the ranks."""
    held = in_memory(array)
    return Saved(PER_RANK, held.shape, ((held, ()),), (), _described(units, attrs))


def _numbers(values: Sequence[int]) -> Shape:
    try:
        return tuple(map(index, values))
    except TypeError:
        numbers = tuple(int(value) for value in values)  # others that are whole
    if any(number != value for number, value in zip(numbers, values, strict=True)):
        raise CheckpointError(f"{list(values)}: expected whole numbers, as shape or offset")
    return numbers


def _described(units: str, attrs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return _NOTHING if not attrs and not units else {**(attrs or {}), **({"units": units} if units else {})}


@dataclass(frozen=True)
class Facts:
    """What the other ranks must know of an array that a rank gives. Equal facts make equal files."""

    name: str
    kind: str
    dtype: types.Type
    note: str
    shape: Shape
    boxes: tuple[Box, ...]
    dims: tuple[str, ...]
    attrs: tuple[tuple[str, str], ...]  # as they are written; to compare


@dataclass(slots=True)
class Given:
    """An array that a rank gives: facts, and its bytes as they will be in the file, box by box."""

    facts: Facts
    data: tuple[types.Array, ...]
    attrs: Mapping[str, Any]


class Taker:
    """Takes what a rank's program gives. Facts that were found once are not looked for again while it gives the same shapes."""

    def __init__(self, rank: int, ranks: int) -> None:
        self._rank, self._ranks = rank, ranks
        self._known: dict[str, tuple[Any, Facts]] = {}

    def take(self, name: str, value: Any) -> Given:
        """What is given under a name; a plain array, number or string is replicated. Raises CheckpointError."""
        if not isinstance(name, str):
            raise CheckpointError(f"array {name!r}: expected a name, which is a string")
        saved = value if isinstance(value, Saved) else replicated(value)
        attrs = tuple(sorted((key, _spelt(attr)) for key, attr in saved.attrs.items())) if saved.attrs else ()
        form = (saved.kind, saved.shape, saved.dims, attrs, [(array.shape, array.dtype, offset) for array, offset in saved.parts])
        before, facts = self._known.get(name, (None, None))
        if facts is None or before != form:
            try:
                facts = _facts(name, saved, attrs, self._rank, self._ranks)
            except CheckpointError as error:
                raise CheckpointError(f"array '{name}': {error}") from error
            self._known[name] = form, facts
        lead = saved.kind == PER_RANK
        data = [types.to_stored(array[None] if lead else array, facts.dtype) for array, _ in saved.parts]
        return Given(facts, tuple(data), saved.attrs)


def _spelt(attr: Any) -> str:
    """Text that differs where the attribute does; numpy's leaves out digits, and elements."""
    return f"{attr.dtype.str}{attr.shape}{attr.tobytes().hex()}" if isinstance(attr, np.ndarray) else repr(attr)


def _facts(name: str, saved: Saved, attrs: tuple[tuple[str, str], ...], rank: int, ranks: int) -> Facts:
    if name.split("/")[0] == "pario" or {"", "."} & set(name.split("/")) or "\0" in name:
        raise CheckpointError(
            "such a name cannot be used: 'pario' is taken, and what stands between '/' is not empty, '.' or has a zero byte"
        )
    shape = (ranks, *saved.shape) if saved.kind == PER_RANK else saved.shape
    parts = [(array[None], (rank, *(0,) * array.ndim)) for array, _ in saved.parts] if saved.kind == PER_RANK else saved.parts
    dtypes = {array.dtype for array, _ in parts}
    if len(dtypes) > 1:
        raise CheckpointError(f"the parts of this rank have several types: {', '.join(sorted(map(str, dtypes)))}")
    if saved.dims and len(saved.dims) != len(shape):
        raise CheckpointError(f"{len(saved.dims)} names of axes are given, it has {len(shape)} axes")
    boxes = tuple(_box(array, offset, shape) for array, offset in parts)
    dtype = dtypes.pop() if dtypes else np.dtype("V1")
    return Facts(name, saved.kind, types.stored_type(dtype) if parts else dtype, types.note_of(dtype), shape, boxes, saved.dims, attrs)


def _box(array: types.Array, offset: Shape, shape: Shape) -> Box:
    if not len(offset) == array.ndim == len(shape):
        raise CheckpointError(f"the array has {len(shape)} axes, its part {array.ndim}, the part's offset {len(offset)}")
    box = Box(offset, array.shape)
    if box.size and box.meet(whole(shape)) != box:
        raise CheckpointError(f"the part {box} lies outside of the array {whole(shape)}")
    return box
