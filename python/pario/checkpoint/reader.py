"""Loads checkpoints, on any number of ranks and in any decomposition."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint import exchange, transfer, types
from pario.checkpoint.checksum import checksum, chunk_sums
from pario.checkpoint.chunks import unproven
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.examine import damage, describe_damage, read_box
from pario.checkpoint.geometry import Box, Shape, divide, first_flaw, whole
from pario.checkpoint.header import Entry, Header, read_header
from pario.checkpoint.layout import Block
from pario.checkpoint.ranks import ranks_of
from pario.checkpoint.shared import read_shared, scratch_needed
from pario.checkpoint.store import Found, Store, document
from pario.interrupts import deferred, kept, postponed
from pario.paths import local_path
from pario.progress import Show, told
from pario.ranks import PATIENCE, Ranks

#: Ranks that may open a file at the same time without harm.
_MOST_OPENS = 256

#: Damages that an error names.
_MOST_DAMAGES = 5

#: Part of an array: where it begins, and its shape.
Part = tuple[Sequence[int], Sequence[int]]


@postponed()
def load(comm: Any, path: str | os.PathLike[str], *, step: int | None = None, verify: bool = True, patience: float = PATIENCE) -> State:
    """Opens the newest complete checkpoint of a directory, that of a step, or one of a path. Collective over ``comm`` (None: one process).

    Ones that cannot be read are named in a warning, and the next older one is taken. ``verify``:
    whether all bytes read are compared with their checksums.
    """
    ranks = ranks_of(comm, patience, kept=True)
    header, skipped = ranks.together(f"checkpoint.load({path})", lambda: None, lambda _: find(path, step))
    if ranks.rank == 0:
        for message in skipped:
            warnings.warn(message, stacklevel=2)
    return State(ranks, header, skipped, verify=verify)


def find(path: str | os.PathLike[str], step: int | None = None) -> tuple[Header, list[str]]:
    """The checkpoint to load, and what is to be said about those that are not."""
    local = local_path(path, CheckpointError)
    if document(local).is_file() or not local.is_dir():
        header = read_header(local)
        if step not in (None, header.step):
            raise CheckpointError(f"{path} is of step {header.step}, not of step {step}")
        return header, []
    store = Store(path)
    found = [one for one in store.complete() if step is None or one.step == step]
    skipped = [text for text in [store.read_manifest()[1]] if text] if step is None else []
    if step is None:
        skipped += [f"{store.directory / one.name}: listed, but not there" for one in store.missing()]
    unknown = (document(one.path) for one in found if not one.generation)
    skipped += [f"{path}: {store.damaged[path]}; its order is unknown" for path in unknown if path in store.damaged]
    skipped += [f"{one.path}: not finished; it is skipped" for one in _newer(store.torn(), found) if step in (None, one.step)]
    for one in reversed(found):
        try:
            return read_header(one.path), skipped
        except CheckpointError as error:
            skipped.append(f"{error}; it is skipped")
    which = "no complete checkpoint" if step is None else f"no complete checkpoint of step {step}"
    raise CheckpointError("; ".join([f"{path}: {which}", *skipped]))


def _newer(torn: Sequence[Found], complete: Sequence[Found]) -> list[Found]:
    """The unfinished checkpoints that are newer than all complete ones, or may be."""
    newest = max((one.generation for one in complete), default=0)
    return [one for one in torn if not one.generation or one.generation > newest]


@dataclass(frozen=True)
class _Request:
    """What a rank wants of an array."""

    name: str
    boxes: tuple[Box, ...]
    shared: bool  # all ranks want all of it


@dataclass(frozen=True)
class _Asked:
    """What a rank wants of all arrays."""

    wanted: Sequence[_Request]
    files: Sequence[str]  # that it reads parts of arrays from
    large: bool  # in large runs


@dataclass(frozen=True)
class _Agreed:
    """How the ranks read."""

    tiling: Mapping[str, bool]  # whether the parts of all ranks tile an array
    boxes: Mapping[str, Sequence[Box]]  # of the arrays that they do not tile, the parts of all ranks
    together: Sequence[str] | None  # files read by MPI-IO; None: each rank reads its large runs


class State(Mapping[str, types.Array]):
    """A checkpoint that was opened. Reading is collective: all ranks read the same arrays, each its own part."""

    def __init__(self, ranks: Ranks, header: Header, skipped: Sequence[str] = (), *, verify: bool = True) -> None:
        self._ranks, self._header, self._verify = ranks, header, verify
        self.step, self.attrs, self.about, self.path = header.step, dict(header.attrs), dict(header.about), Path(header.path)
        #: What was not taken, and why.
        self.skipped = list(skipped)

    def __iter__(self) -> Iterator[str]:
        return iter(self._header.entries)

    def __len__(self) -> int:
        return len(self._header.entries)

    def __contains__(self, name: object) -> bool:
        return name in self._header.entries

    def __getitem__(self, name: str) -> types.Array:
        self._entry(name)
        return self.read(name)

    def shape(self, name: str) -> Shape:
        """Of the whole array."""
        return self._entry(name).layout.shape

    def dtype(self, name: str) -> types.Type:
        """Of an array as it is read."""
        layout = self._entry(name).layout
        return types.noted(layout.note, layout.dtype) if layout.note else layout.dtype

    def dims(self, name: str) -> tuple[str, ...]:
        """Names of the axes."""
        return self._entry(name).layout.dims

    def array_attrs(self, name: str) -> dict[str, Any]:
        """Attributes of an array."""
        return dict(self._entry(name).layout.attrs)

    def blocks(self, name: str) -> tuple[Block, ...]:
        """Who saved which part of it."""
        return self._entry(name).layout.blocks

    def mine(self, name: str) -> Part:
        """This rank's part: the one that it saved, where as many ranks saved one block each; else an even share."""
        blocks, ranks = self.blocks(name), self._ranks
        same = [block.rank for block in blocks] == list(range(ranks.size))
        box = blocks[ranks.rank].box if same else divide(self.shape(name), ranks.size, ranks.rank)
        return box.begin, box.shape

    def read(
        self, name: str, offset: Sequence[int] | None = None, shape: Sequence[int] | None = None, *, out: types.Array | None = None
    ) -> types.Array:
        """A part of an array, other ones on other ranks, or all of it. ``out``: an array that takes it, as ``T[1:-1, 1:-1]``; after an
        error it may hold anything.
        """
        part = None if offset is None else (offset, shape if shape is not None else out.shape if out is not None else ())
        return self.read_many({name: part}, {} if out is None else {name: out})[name]

    def read_many(self, parts: Mapping[str, Part | None], out: Mapping[str, types.Array] | None = None) -> dict[str, types.Array]:
        """Parts of several arrays at once; None: all of an array. ``out``: arrays that take them."""
        several = {name: None if part is None else [part] for name, part in parts.items()}
        found = self.read_pieces(several, {name: [taker] for name, taker in (out or {}).items()})
        return {name: arrays[0] for name, arrays in found.items()}

    @postponed()
    def read_pieces(
        self, parts: Mapping[str, Sequence[Part] | None], out: Mapping[str, Sequence[types.Array]] | None = None
    ) -> dict[str, list[types.Array]]:
        """The same where a rank wants several parts of an array, or none."""
        takers = out or {}
        wanted: list[_Request] = []
        read: dict[str, list[types.Array]] = {}
        scratch: list[types.Array] = []
        moves: dict[str, list[transfer.Move]] = {}

        def ask() -> _Asked:
            wanted.extend(self._request(name, part) for name, part in parts.items())
            for request in wanted:  # here, where it may fail without leaving other ranks waiting
                read[request.name] = self._rooms(request, takers.get(request.name))
                for file, move in self._moves(request, read[request.name]):
                    moves.setdefault(file, []).append(move)
            shared = [request.name for request in wanted if self._is_shared(request)]
            scratch.append(np.empty(max((scratch_needed(self._entry(name)) for name in shared), default=0), np.uint8))
            boxes = ((move.stored, move.box, move.data.dtype.itemsize) for some in moves.values() for move in some)
            return _Asked(wanted, list(moves), transfer.are_large(boxes))

        agreed = self._ranks.together(f"reading {self.path}", ask, self._judge)

        def work() -> list[int | None]:
            with told(f"loading {self.path}", here=self._ranks.rank == 0) as show:
                failed: list[BaseException] = []  # raised at the end: other ranks wait for this one in the calls until then
                with deferred(failed):
                    self._read(wanted, read, scratch[0], moves, agreed.together, self._ranks.moving(show), failed)
                if failed:
                    raise failed[0]
            show = self._ranks.moving()
            return [self._check(request, read[request.name], agreed, show) for request in wanted]

        damaged = self._ranks.together(f"reading {self.path}", work, lambda sums: self._damaged(wanted, sums))
        if damaged:
            self._ranks.together(f"reading {self.path}", lambda: self._where(damaged), lambda found: self._tell(damaged, found))
        return {
            name: [self._given(name, data, taker) for data, taker in zip(some, takers.get(name) or repeat(None), strict=False)]
            for name, some in read.items()
        }

    def _rooms(self, request: _Request, takers: Sequence[types.Array] | None) -> list[types.Array]:
        """What the bytes are read into: what shall take them, where that can."""
        if takers is None:
            layout = self._entry(request.name).layout
            return [np.empty(box.shape, layout.dtype) for box in request.boxes]
        return [self._room(request.name, box, taker) for box, taker in zip(request.boxes, takers, strict=True)]

    def _room(self, name: str, box: Box, taker: types.Array) -> types.Array:
        layout = self._entry(name).layout
        if taker.shape != box.shape:
            raise CheckpointError(f"array '{name}': the part has shape {list(box.shape)}, what shall take it {list(taker.shape)}")
        if taker.dtype == layout.dtype and not layout.note and taker.flags.c_contiguous:
            return taker
        return np.empty(box.shape, layout.dtype)

    def _given(self, name: str, data: types.Array, taker: types.Array | None) -> types.Array:
        """What was read, as it was before it was saved; in what shall take it, where there is such."""
        if data is taker:
            return data
        found = types.from_stored(data, self._entry(name).layout.note)
        if taker is None:
            return found
        taker[...] = found
        return taker

    def _entry(self, name: str) -> Entry:
        try:
            return self._header.entries[name]
        except KeyError:
            raise KeyError(f"{self.path} has no array '{name}'; it has {', '.join(self) or 'none'}") from None

    def _request(self, name: str, parts: Sequence[Part] | None) -> _Request:
        if name not in self:
            raise CheckpointError(f"{self.path} has no array '{name}'; it has {', '.join(self) or 'none'}")
        if parts is None:
            return _Request(name, (whole(self.shape(name)),), shared=True)
        return _Request(name, tuple(self._box(name, part) for part in parts), shared=False)

    def _box(self, name: str, part: Part) -> Box:
        shape, box = self.shape(name), Box(*(tuple(int(number) for number in numbers) for numbers in part))
        if not len(box.begin) == len(box.shape) == len(shape):
            raise CheckpointError(f"array '{name}' has {len(shape)} axes; a part of {len(box.begin)} and {len(box.shape)} was asked for")
        if (box.size and box.meet(whole(shape)) != box) or min((*box.begin, *box.shape), default=0) < 0:
            raise CheckpointError(f"array '{name}': {box} lies outside of it: {whole(shape)}")
        return box

    def _is_shared(self, request: _Request) -> bool:
        """Whether the ranks read an array together and exchange what they have."""
        return request.shared and self._ranks.comm is not None and self._entry(request.name).extents is not None

    def _moves(self, request: _Request, read: Sequence[types.Array]) -> Iterator[tuple[str, transfer.Move]]:
        """What this rank reads by itself, or each rank its part of, and from which file."""
        entry = self._entry(request.name)
        if entry.extents is not None and not self._is_shared(request):
            for box, data in zip(request.boxes, read, strict=True):
                for file, moves in entry.moves(box, data).items():
                    yield from ((file, move) for move in moves)

    def _judge(self, everyones: list[_Asked]) -> _Agreed:
        """Decides how the ranks read. Raises CheckpointError where they read different arrays."""
        names = [[request.name for request in asked.wanted] for asked in everyones]
        for rank, theirs in enumerate(names):
            if theirs != names[0]:
                raise CheckpointError(
                    f"rank {rank} reads {', '.join(theirs)}, rank 0 {', '.join(names[0])}: all ranks read the same arrays"
                )
        tiling: dict[str, bool] = {}
        boxes: dict[str, list[Box]] = {}
        for requests in zip(*(asked.wanted for asked in everyones), strict=True):
            if any(request.shared != requests[0].shared for request in requests):
                raise CheckpointError(f"array '{requests[0].name}': some ranks read all of it, others parts; say the part on all ranks")
            shape = self.shape(requests[0].name)
            parts = [box for request in requests for box in request.boxes]
            tiling[requests[0].name] = requests[0].shared or first_flaw(shape, parts) is None
            if not tiling[requests[0].name]:
                boxes[requests[0].name] = parts
        opens = Counter(file for asked in everyones for file in asked.files)
        few = max(opens.values(), default=0) <= _MOST_OPENS
        together = None if few and all(asked.large for asked in everyones) else sorted(opens)
        return _Agreed(tiling, boxes, together)

    def _read(
        self,
        wanted: Sequence[_Request],
        read: Mapping[str, list[types.Array]],
        scratch: types.Array,
        moves: Mapping[str, Sequence[transfer.Move]],
        together: Sequence[str] | None,
        show: Show,
        failed: list[BaseException],
    ) -> None:
        """Every rank makes the same collective calls, whatever fails."""
        for request in wanted:
            entry = self._entry(request.name)
            if entry.extents is None:
                with kept(failed):
                    read[request.name][:] = [read_box(self._header, entry, box) for box in request.boxes]
            elif self._is_shared(request):
                read_shared(self._ranks, self._header, entry, read[request.name][0], scratch, failed, show)
        for file in moves if together is None else together:
            with kept(failed):
                if together is None or self._ranks.comm is None:
                    transfer.read(None, self._header.file(file), moves.get(file, ()), show=show)
                else:
                    path, patience = self._header.file(file), self._ranks.patience
                    exchange.read(self._ranks.comm, path, moves.get(file, ()), patience=patience, show=show)

    def _check(self, request: _Request, read: Sequence[types.Array], agreed: _Agreed, show: Show) -> int | None:
        """The sum of this rank's parts, where those of all ranks together can be checked; else
        checks the chunks of the parts.
        """
        entry = self._entry(request.name)
        shape = entry.layout.shape
        if not self._verify or entry.sum is None:
            return None
        if request.shared:
            size = read[0].size
            share = divide((size,), self._ranks.size, self._ranks.rank)
            return checksum(read[0].reshape(-1)[share.within(whole((size,)))], share, (size,))
        if agreed.tiling[request.name]:
            return sum(checksum(data, box, shape) for box, data in zip(request.boxes, read, strict=True))
        for box, data in zip(request.boxes, read, strict=True):
            self._check_contained(entry, box, data)
        if entry.chunk_bytes:
            self._check_unproven(entry, agreed.boxes[request.name], show)
        return None

    def _check_contained(self, entry: Entry, box: Box, data: types.Array) -> None:
        """Checks the chunks all of whose elements are in a part."""
        for number in entry.blocks_in(box):
            grid = entry.grid(number)
            if (some := grid.contained(box)) is None:
                continue
            inner = grid.around(some)
            first, sums = chunk_sums(data[inner.within(box)], inner, grid, entry.layout.shape)
            found = entry.sums_of(number).copy()
            chunks = np.arange(grid.count).reshape(grid.counts)[some].reshape(-1)
            found[chunks] = sums[chunks - first]
            self._raise_damage(entry, number, found)

    def _check_unproven(self, entry: Entry, boxes: Sequence[Box], show: Show) -> None:
        """Reads and checks this rank's share of the chunks that the ranks read in part, but that no
        rank read as a whole.
        """
        touched = sorted({number for box in boxes for number in entry.blocks_in(box)})
        for number in touched[self._ranks.rank :: self._ranks.size]:
            grid, found = entry.grid(number), entry.sums_of(number).copy()
            for chunk, box in unproven(grid, boxes):
                data = read_box(self._header, entry, box)
                found[chunk] = chunk_sums(data, box, grid, entry.layout.shape)[1][0]
                show(chunk, grid.count)
            self._raise_damage(entry, number, found)

    def _raise_damage(self, entry: Entry, number: int, found: types.Array) -> None:
        for text in describe_damage(entry, number, found):
            raise CheckpointError(f"{self.path}: {text}")

    def _damaged(self, wanted: Sequence[_Request], sums: list[list[int | None]]) -> list[str]:
        """The arrays that are not what was saved."""
        found = []
        for request, parts in zip(wanted, zip(*sums, strict=True), strict=True):
            known = [part for part in parts if part is not None]
            if len(known) == len(parts) and sum(known) % (1 << 64) != self._entry(request.name).sum:
                found.append(request.name)
        return found

    def _where(self, damaged: Sequence[str]) -> list[str]:
        """What is wrong with this rank's share of the blocks."""
        blocks = [(name, number) for name in damaged for number in range(len(self._entry(name).layout.blocks))]
        mine = blocks[self._ranks.rank :: self._ranks.size]
        return [text for name, number in mine for text in damage(self._header, self._entry(name), number)]

    def _tell(self, damaged: Sequence[str], found: Sequence[Sequence[str]]) -> None:
        texts = [text for some in found for text in some] or [f"array '{name}': what was read is not what was saved" for name in damaged]
        more = [f"and {len(texts) - _MOST_DAMAGES} more"] if len(texts) > _MOST_DAMAGES else []
        raise CheckpointError(f"{self.path}: {'; '.join([*texts[:_MOST_DAMAGES], *more])}; load(step=...) takes an older one")
