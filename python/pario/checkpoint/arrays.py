"""Arrays as the ranks give them to be saved, and the layout that their parts form together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from operator import index
from typing import Any

import numpy as np

from pario.checkpoint import types
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, Shape, whole
from pario.checkpoint.lazy import Lazy

#: Kinds of arrays, by the relation of the ranks' parts to the array.
TILES, REPLICATED, PER_RANK = "blocks", "replicated", "per rank"
_NO_ATTRS: Mapping[str, Any] = {}
#: DLPack devices with memory that the host can read: CPU, and memory pinned or managed by CUDA and
#: ROCm.
_HOST = frozenset((1, 3, 11, 13))


@dataclass(slots=True)  # a frozen class takes four times as long to make; there may be thousands
class Saved:
    """The parts of an array on this rank.

    Made by :func:`block`, :func:`blocks`, :func:`replicated` and :func:`per_rank`.
    """

    kind: str
    shape: Shape  # of the whole array
    parts: tuple[tuple[types.Array, Shape], ...]  # arrays, and their offsets
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
    """Gives this rank's part of a distributed array to :meth:`Writer.save`.

    Not collective. The parts of all ranks must tile the array; they may be empty.

    Parameters
    ----------
    array : array_like
        This rank's elements without ghost cells, such as ``T[1:-1, 1:-1]``. Any strides; numpy,
        PyTorch, CuPy, JAX, or any array with DLPack.
    shape : sequence of int
        Elements of the whole array along each axis.
    offset : sequence of int
        Index of the part's first element along each axis.
    dims : sequence of str, optional
        Names of the axes.
    units : str, optional
        Saved as attribute ``units``.
    attrs : mapping, optional
        Attributes of the array; those of rank 0 count.

    Returns
    -------
    Saved
        A reference to the array, which is not copied.

    Raises
    ------
    CheckpointError
        If ``shape`` or ``offset`` are not whole numbers, or an accelerator's memory cannot be
        copied. Parts that do not tile are an error of :meth:`Writer.save`, on all ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> part = checkpoint.block(np.zeros((50, 60)), (100, 60), (50, 0), dims=("y", "x"), units="K")
    >>> part.shape
    (100, 60)
    """
    return Saved(
        TILES,
        _numbers(shape),
        ((in_memory(array), _numbers(offset)),),
        tuple(dims),
        _all_attrs(units, attrs),
    )


def blocks(
    parts: Iterable[tuple[Any, Sequence[int]]],
    shape: Sequence[int],
    *,
    dims: Sequence[str] = (),
    units: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Saved:
    """Gives several parts of a distributed array, as in block-cyclic decompositions, or none.

    Not collective. The parts of all ranks must tile the array.

    Parameters
    ----------
    parts : iterable of (array_like, sequence of int)
        Arrays and their offsets, in elements of the whole array; empty for a rank without a part.
    shape : sequence of int
        Elements of the whole array along each axis.
    dims, units, attrs
        As for :func:`block`.

    Returns
    -------
    Saved
        References to the arrays.

    Raises
    ------
    CheckpointError
        As for :func:`block`.

    Examples
    --------
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> rows = [(np.zeros((1, 8)), (0, 0)), (np.ones((1, 8)), (2, 0))]
    >>> checkpoint.blocks(rows, (4, 8)).shape
    (4, 8)
    """
    held = tuple((in_memory(array), _numbers(offset)) for array, offset in parts)
    return Saved(TILES, _numbers(shape), held, tuple(dims), _all_attrs(units, attrs))


def replicated(
    array: Any, *, dims: Sequence[str] = (), units: str = "", attrs: Mapping[str, Any] | None = None
) -> Saved:
    """Gives an array, a number or a string that is equal on all ranks; it is saved once.

    Not collective; :meth:`Writer.save` compares the checksums of all ranks.

    Parameters
    ----------
    array : array_like
        The whole array.
    dims, units, attrs
        As for :func:`block`.

    Returns
    -------
    Saved
        A reference to the array.

    Raises
    ------
    CheckpointError
        If an accelerator's memory cannot be copied. Different values are an error of
        :meth:`Writer.save`, on all ranks.

    Examples
    --------
    >>> from pario import checkpoint
    >>> checkpoint.replicated([0.5, 1.5, 2.5], dims=("x",), units="m").shape
    (3,)
    """
    held = in_memory(array)
    return Saved(
        REPLICATED, held.shape, ((held, (0,) * held.ndim),), tuple(dims), _all_attrs(units, attrs)
    )


def per_rank(array: Any, *, units: str = "", attrs: Mapping[str, Any] | None = None) -> Saved:
    """Gives a number or an array of the same shape on each rank, with different values.

    Not collective. The saved array has one more axis in front: the ranks.

    Parameters
    ----------
    array : array_like
        This rank's values; shape ``S`` is saved as ``(ranks, *S)``.
    units, attrs
        As for :func:`block`.

    Returns
    -------
    Saved
        A reference to the array.

    Raises
    ------
    CheckpointError
        If an accelerator's memory cannot be copied.

    Examples
    --------
    >>> from pario import checkpoint
    >>> checkpoint.per_rank(7).kind
    'per rank'
    """
    held = in_memory(array)
    return Saved(PER_RANK, held.shape, ((held, ()),), (), _all_attrs(units, attrs))


def _numbers(values: Sequence[int]) -> Shape:
    try:
        return tuple(map(index, values))
    except TypeError:
        numbers = tuple(int(value) for value in values)  # floats with integral values
    if any(number != value for number, value in zip(numbers, values, strict=True)):
        raise CheckpointError(f"{list(values)}: expected whole numbers, as shape or offset")
    return numbers


def _all_attrs(units: str, attrs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not attrs and not units:
        return _NO_ATTRS
    return {**(attrs or {}), **({"units": units} if units else {})}


def in_memory(array: Any) -> types.Array:
    """An array in the host's memory; copied only from accelerators.

    Raises CheckpointError where no installed package can copy it, or where elements are masked.
    """
    if type(array) is np.ndarray or isinstance(array, Lazy):
        return array  # type: ignore[return-value] # a Lazy has the members that Saved uses
    if hasattr(array, "detach"):  # a tensor of PyTorch
        return np.asarray(array.detach().cpu())
    if hasattr(array, "__cuda_array_interface__"):
        return np.asarray(
            array.get() if hasattr(array, "get") else _copy_to_host(array, "asarray", "as_tensor")
        )
    if hasattr(array, "__array__") or not hasattr(array, "__dlpack__"):
        return np.asarray(types.require_unmasked(array))
    if array.__dlpack_device__()[0] in _HOST:
        return np.from_dlpack(array)
    return np.asarray(_copy_to_host(array, "from_dlpack", "from_dlpack"))


def _copy_to_host(array: Any, by_cupy: str, by_torch: str) -> Any:
    """Copies an accelerator's array by CuPy or PyTorch, whichever is installed."""
    for module, convert, fetch in (("cupy", by_cupy, "get"), ("torch", by_torch, "cpu")):
        try:
            found = import_module(module)
        except ImportError:
            continue
        where = {"device": "cuda"} if convert == "as_tensor" else {}
        return getattr(getattr(found, convert)(array, **where), fetch)()
    raise CheckpointError(
        f"{type(array).__name__} is in the memory of an accelerator; to copy it, CuPy or PyTorch is"
        " needed"
    )


@dataclass(frozen=True)
class Facts:
    """The facts about a rank's array that other ranks need. Equal facts make equal files."""

    name: str
    kind: str
    dtype: types.Type  # in the file
    note: str
    shape: Shape
    boxes: tuple[Box, ...]
    dims: tuple[str, ...]
    attrs: tuple[tuple[str, str], ...]  # as text, for comparison only


def is_written(facts: Facts, rank: int) -> bool:
    """True if a rank's boxes are written, and not equal ones of rank 0."""
    return facts.kind != REPLICATED or rank == 0


@dataclass(slots=True)
class Given:
    """An array given by this rank: its facts, and for each box its elements as in the file."""

    facts: Facts
    data: tuple[types.Array, ...]
    attrs: Mapping[str, Any]


class Converter:
    """Converts a program's arrays to :class:`Given`, and keeps their facts.

    Facts are computed again only where shape, type, offset or attributes of an array change.
    """

    def __init__(self, rank: int, ranks: int) -> None:
        self._rank, self._ranks = rank, ranks
        self._known: dict[str, tuple[Any, Facts]] = {}

    def convert(self, name: str, value: Any) -> Given:
        """Converts a value; a plain array, number or string is replicated. Raises
        CheckpointError."""
        if not isinstance(name, str):
            raise CheckpointError(f"array {name!r}: expected a name, which is a string")
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise CheckpointError(f"array {name!r}: expected a name that is UTF-8") from error
        try:
            saved = value if isinstance(value, Saved) else replicated(value)
        except CheckpointError as error:
            raise CheckpointError(f"array '{name}': {error}") from error
        attrs: tuple[tuple[str, str], ...] = ()
        if saved.attrs:
            attrs = tuple(sorted((key, _spell(attr)) for key, attr in saved.attrs.items()))
        if len(saved.parts) == 1:  # the frequent case where there are many arrays
            ((array, offset),) = saved.parts
            parts: Any = (array.shape, array.dtype, offset)
        else:
            parts = [(array.shape, array.dtype, offset) for array, offset in saved.parts]
        form = (saved.kind, saved.shape, saved.dims, attrs, parts)
        before, facts = self._known.get(name, (None, None))
        if facts is None or before != form:
            try:
                facts = _facts(name, saved, attrs, self._rank, self._ranks)
            except CheckpointError as error:
                raise CheckpointError(f"array '{name}': {error}") from error
            self._known[name] = form, facts
        if len(saved.parts) == 1 and type(array) is np.ndarray and array.dtype is facts.dtype:
            return Given(facts, (array[None] if saved.kind == PER_RANK else array,), saved.attrs)
        lead = saved.kind == PER_RANK
        data = [_to_stored(array[None] if lead else array, facts.dtype) for array, _ in saved.parts]
        return Given(facts, tuple(data), saved.attrs)


def _to_stored(array: Any, stored: types.Type) -> Any:
    if isinstance(array, Lazy):
        return array.convert(stored, lambda read: types.to_stored(read, stored))
    return types.to_stored(array, stored)


def _spell(attr: Any) -> str:
    """Text that differs for different attributes; numpy's omits digits and elements."""
    return (
        f"{attr.dtype.str}{attr.shape}{attr.tobytes().hex()}"
        if isinstance(attr, np.ndarray)
        else repr(attr)
    )


def _facts(
    name: str, saved: Saved, attrs: tuple[tuple[str, str], ...], rank: int, ranks: int
) -> Facts:
    if name.split("/")[0] == "pario" or {"", "."} & set(name.split("/")) or "\0" in name:
        raise CheckpointError(
            "such a name cannot be used: 'pario' is reserved, and a part between '/' must not be"
            " empty or '.', or contain a zero byte"
        )
    shape, parts = saved.shape, saved.parts
    if saved.kind == PER_RANK:
        shape = (ranks, *shape)
        parts = tuple((array[None], (rank, *(0,) * array.ndim)) for array, _ in parts)
    dtypes = {array.dtype for array, _ in parts}
    if len(dtypes) > 1:
        raise CheckpointError(
            f"the parts of this rank have several types: {', '.join(sorted(map(str, dtypes)))}"
        )
    if saved.dims and len(saved.dims) != len(shape):
        raise CheckpointError(
            f"{len(saved.dims)} names of axes are given, it has {len(shape)} axes"
        )
    boxes = tuple(_box(array, offset, shape) for array, offset in parts)
    dtype = dtypes.pop() if dtypes else np.dtype("V1")
    stored = types.stored_type(dtype) if parts else dtype
    return Facts(name, saved.kind, stored, types.note_of(dtype), shape, boxes, saved.dims, attrs)


def _box(array: types.Array, offset: Shape, shape: Shape) -> Box:
    if not len(offset) == array.ndim == len(shape):
        raise CheckpointError(
            f"the array has {len(shape)} axes, its part {array.ndim}, the part's offset"
            f" {len(offset)}"
        )
    box = Box(offset, array.shape)
    if box.size and box.meet(whole(shape)) != box:
        raise CheckpointError(f"the part {box} lies outside of the array {whole(shape)}")
    return box
