"""Staging: saves end in memory or on disks of the nodes; a thread of each node drains them.

The files of a node's stage have the bytes that its ranks wrote, at the offsets of the checkpoint's
files. A note beside them lists those bytes, so that the next Writer drains the steps that a killed
one has left.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint.background import Pending, count_done
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import runs, strides
from pario.checkpoint.identity import Identity
from pario.checkpoint.plan import SavePlan
from pario.checkpoint.store import MASTER, Store
from pario.checkpoint.transfer import Move, flush, open_file
from pario.checkpoint.types import Array
from pario.copying import write_all
from pario.progress import Show, silent
from pario.ranks import Ranks, node_name

#: Bytes that are drained together.
_PIECE = 1 << 26

#: An offset beyond the end of all files.
END = 1 << 62
_NONE = np.empty((0, 2), np.int64)


@dataclass(frozen=True)
class Place:
    """The place of a rank: its node, and whether it leads the node."""

    node: int
    nodes: int
    leads: bool


@dataclass(frozen=True)
class Staged:
    """The part of a checkpoint in a node's stage."""

    step: int
    save: str  # of the identity: the same on all nodes
    node: int
    nodes: int  # with parts of it
    ranges: Mapping[str, Sequence[tuple[int, int]]]  # bytes of each file that this node drains
    generation: int = 0  # 0: of an earlier pario without generations

    @property
    def in_parts(self) -> bool:
        """True if the checkpoint has several files."""
        return "" not in self.ranges


@dataclass(frozen=True)
class Written:
    """The bytes that a rank writes of a checkpoint to its stage."""

    ranges: Mapping[str, Array]  # by file, rows of begin and end
    made: Mapping[str, int]  # files that this rank makes, and their sizes


def places(names: Sequence[str]) -> list[Place]:
    """The places of all ranks, from the names of their nodes."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [
        Place(numbers[name], len(numbers), names.index(name) == rank)
        for rank, name in enumerate(names)
    ]


class Stage:
    """This node's stage for the checkpoints of one directory.

    All ranks of the node write to its files; the leader calls the methods.
    """

    def __init__(self, directory: str | os.PathLike[str], target: Store, place: Place) -> None:
        there = Path(os.path.realpath(target.directory))  # the same for every name of it
        key = hashlib.blake2b(os.fsencode(there), digest_size=6).hexdigest()
        own = Path(directory) / f"{there.name}-{key}"
        self.store = Store(own, in_parts=target.in_parts, has_manifest=False, durable=False)
        self.place = place

    def claim(self) -> list[Staged]:
        """Locks the stage. Returns the steps that another Writer has left."""
        self.store.claim()
        found = [self.read_note(found.step) for found in self.store.complete()]
        return [staged for staged in found if staged is not None]

    def keep(self, own: Identity, ranges: Mapping[str, Array]) -> None:
        """Keeps a step that all ranks have written until it is drained, even by another process.

        ``ranges``: by file the bytes of this node; may end beyond the file. Collective over the
        leaders. Raises OSError or CheckpointError.
        """
        place, step = self.place, own.step
        self.store.begin(step)
        all_ranges = {MASTER if self.store.in_parts else "": _NONE, **ranges}  # marks the step
        rows = {
            name: self._in_file(self.store.file(self.store.part(step), name), theirs)
            for name, theirs in all_ranges.items()
        }
        staged = Staged(step, own.save, place.node, place.nodes, rows, own.generation)
        note = self._note(step)
        note.unlink(missing_ok=True)  # a note never describes other files than its own
        self.store.publish(step)
        note.write_text(json.dumps(asdict(staged)))

    @staticmethod
    def _in_file(path: Path, ranges: Array) -> list[tuple[int, int]]:
        """The ranges within a file, which is made if no rank of this node has written to it."""
        with open_file(str(path), os.O_WRONLY | os.O_CREAT) as file:
            found: list[tuple[int, int]] = np.minimum(ranges, os.fstat(file).st_size).tolist()
        return found

    def read_note(self, step: int) -> Staged | None:
        """The note about a step; None if there is none."""
        try:
            note = json.loads(self._note(step).read_text())
            note.pop("saved", None)  # the time, of an earlier pario without generations
            return Staged(**note)
        except (OSError, ValueError, TypeError):
            return None

    def drain(self, step: int, target: Store, *, durable: bool, show: Show = silent) -> None:
        """Copies this node's bytes of a step to the same offsets of a store's unfinished files."""
        staged = self.read_note(step)
        if staged is None:
            raise CheckpointError(f"{self.store.path(step)}: the staged files were removed")
        source, target = self.store.of_form(staged.in_parts), target.of_form(staged.in_parts)
        target.begin(step)
        for name, ranges in staged.ranges.items():
            _copy(
                source.file(source.path(step), name),
                target.file(target.part(step), name),
                ranges,
                durable=durable,
                show=show,
            )

    def remove(self, step: int) -> None:
        """Removes a drained or refused step."""
        self._note(step).unlink(missing_ok=True)  # a step without note is removed by clear()
        self.store.drop(step)

    def clear(self) -> None:
        """Removes all steps."""
        for found in self.store.complete():
            self.remove(found.step)

    def _note(self, step: int) -> Path:
        return self.store.path(step).with_suffix(".json")


def judge(
    left: Sequence[Sequence[Staged]], last: int, published: Collection[str]
) -> tuple[list[Staged], list[str]]:
    """Selects the steps to drain of those that other Writers have left on the nodes. Pure.

    ``last``: the highest published generation; ``published``: the saves of the directory. Returns
    the note of the first node of each selected step, in order, and the messages about all.
    """
    saves: dict[str, list[Staged]] = {}
    for staged in (staged for theirs in left for staged in theirs):
        saves.setdefault(staged.save, []).append(staged)
    drained, messages = [], []
    for parts in sorted(saves.values(), key=lambda parts: parts[0].generation):
        first = min(parts, key=lambda one: one.node)
        step, absent = first.step, set(range(first.nodes)) - {one.node for one in parts}
        if absent:
            messages.append(
                f"step {step} was left in the stage, and {len(absent)} of {parts[0].nodes} nodes"
                " are not here; it is removed"
            )
        elif first.generation > last or not last:
            drained.append(first)
            messages.append(f"step {step} was left in the stage; it is drained")
        elif first.save not in published:
            messages.append(
                f"step {step} was left in the stage, and a newer one was saved since; it is removed"
            )
    return drained, messages


def written_ranges(moves: Sequence[Move]) -> Array:
    """The ranges of a file that moves fill: rows of begin and end, in order."""
    found = [_NONE]
    for move in moves:
        if move.box.size:
            element = move.data.dtype.itemsize
            begins, _, length = runs(
                move.box, move.stored, element, strides(move.box.shape, element)
            )
            found.append(np.column_stack([begins + move.place, begins + move.place + length]))
    return join_ranges(np.concatenate(found))


def join_ranges(ranges: Array) -> Array:
    """Sorts ranges that do not overlap, and joins adjacent ones."""
    full = ranges[ranges[:, 1] > ranges[:, 0]]
    full = full[np.argsort(full[:, 0])]
    if not len(full):
        return full
    first = np.flatnonzero(np.append(True, full[1:, 0] > full[:-1, 1]))
    last = np.append(first[1:] - 1, len(full) - 1)
    return np.column_stack([full[first, 0], full[last, 1]])


def shares(written: Sequence[Written], nodes: Sequence[int]) -> list[dict[str, Array]]:
    """The bytes of each file that each node drains. Pure.

    ``written``: of each rank; ``nodes``: the node of each rank. The maker of a file also drains the
    bytes that no rank writes.
    """
    found: list[dict[str, Array]] = [{} for _ in range(max(nodes) + 1)]
    makers = {
        name: node for theirs, node in zip(written, nodes, strict=True) for name in theirs.made
    }
    for name, maker in makers.items():
        by_node: dict[int, list[Array]] = {maker: []}
        for theirs, node in zip(written, nodes, strict=True):
            if name in theirs.ranges:
                by_node.setdefault(node, []).append(theirs.ranges[name])
        for node, ranges in by_node.items():
            found[node][name] = join_ranges(np.concatenate([_NONE, *ranges]))
        others = join_ranges(
            np.concatenate([_NONE, *(found[node][name] for node in by_node if node != maker)])
        )
        gaps = np.concatenate([[0], others.reshape(-1), [END]]).reshape(-1, 2)
        found[maker][name] = join_ranges(gaps)
    return found


def _copy(
    source: Path, target: Path, ranges: Sequence[tuple[int, int]], *, durable: bool, show: Show
) -> None:
    content = np.memmap(source, np.uint8, "r").data if ranges else memoryview(b"")
    with open_file(str(target), os.O_WRONLY | os.O_CREAT) as file:
        for begin, end in _pieces(ranges):
            write_all(file, begin, content[begin:end])
            show(end, len(content))
        if durable:
            flush(file, show)


def _pieces(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for begin, end in ranges:
        for at in range(begin, end, _PIECE):
            yield at, min(end, at + _PIECE)


class Draining:
    """Drains the stages of all nodes to a store.

    ``publish`` publishes a step of the store. ``most``: bytes staged at most. The constructor
    drains the steps that another Writer has left. All methods but :meth:`release` are collective.
    """

    def __init__(
        self,
        ranks: Ranks,
        directory: str | os.PathLike[str],
        store: Store,
        publish: Callable[[Store, int], Path],
        *,
        durable: bool,
        most: int,
    ) -> None:
        self._ranks, self._in_background = ranks, ranks.again()
        self._store, self._publish, self._durable, self._most = store, publish, durable, most
        what = f"the stages of {store.directory}"
        place = ranks.deal(what, node_name, places)
        self._stage, self._leads = Stage(directory, store, place), place.leads
        self.nodes = place.nodes
        self._plan: SavePlan | None = None
        self._share: Mapping[str, Array] = {}  # the bytes of the plan that this node drains
        self._size, self._sizes = 0, dict[int, int]()  # of the plan; of staged steps; on rank 0
        #: Steps that could not be drained and stay staged.
        self._undrained, self._changing = list[int](), threading.Lock()
        try:
            for left in ranks.together(
                what, lambda: self._stage.claim() if self._leads else [], self._judge
            ):
                self._end(ranks, left.step, partial(self._copy_left, left), left)
            if self._leads:
                self._stage.clear()
        except BaseException:
            self.release()
            raise

    @property
    def store(self) -> Store:
        """The store where this node's ranks write."""
        return self._stage.store

    def release(self) -> None:
        """Unlocks the stage."""
        self._stage.store.release()

    def discard(self, step: int) -> None:
        """Removes an unfinished step from the stage."""
        if self._leads:
            self._stage.store.discard(step)

    def keep_at_most(self, step: int, pending: Sequence[Pending]) -> int:
        """The number of staged steps that may stay while ``step`` is staged. Drained and undrained
        ones are not among them."""
        if any(one.step == step for one in pending):
            return 0
        steps = [one.step for one in pending]
        left, dropped = self._ranks.together(
            f"save(step {step})",
            lambda: count_done(pending),
            lambda ready: self._fit(steps, min(ready)),
        )
        self._drop(dropped)
        return left

    def _fit(self, steps: Sequence[int], ready: int) -> tuple[int, list[int]]:
        """The number of steps that may stay, and the undrained steps that must go.

        ``ready``: the number of oldest steps that are drained.
        """
        with self._changing:
            undrained = list(self._undrained)
        count = next(
            (count for count in range(len(undrained)) if self._fits(undrained[count:])),
            len(undrained),
        )
        kept, dropped = undrained[count:], undrained[:count]
        for step in dropped:
            warnings.warn(
                f"{self._store.directory}: step {step} could not be drained, and its room is"
                " needed; it is removed",
                stacklevel=2,
            )
        going = [one for one in steps[ready:] if one not in undrained]
        first = next(
            (count for count in range(len(going)) if self._fits([*kept, *going[count:]])),
            len(going),
        )
        return len(steps) - (steps.index(going[first - 1]) + 1 if first else ready), dropped

    def _fits(self, steps: Sequence[int]) -> bool:
        """True if one more step, of the last one's size, can be staged beside these."""
        return sum(self._sizes[step] for step in steps) + self._size <= self._most

    def _drop(self, steps: Sequence[int]) -> None:
        """Removes undrained steps from the stage."""
        with self._changing:
            for step in [one for one in self._undrained if one in steps]:
                self._undrained.remove(step)
                if self._leads:
                    self._stage.remove(step)

    def start(
        self,
        own: Identity,
        plan: SavePlan,
        moves: Mapping[str, Sequence[Move]],
        previous: Pending | None,
    ) -> Pending:
        """Drains in the background a step that all ranks have staged. ``moves``: the writes of this
        rank, by file."""
        step = own.step
        if self._plan is not plan:
            self._share = self._divide(step, plan, moves)
            self._plan = plan
        with self._changing:
            self._undrained = [one for one in self._undrained if one != step]
        try:
            self._ranks.agree(
                f"staging step {step}",
                lambda: self._stage.keep(own, self._share) if self._leads else None,
            )
        except BaseException:
            self.discard(step)
            if self._leads:
                self._stage.remove(step)
            raise
        self._sizes[step] = self._size
        ranks = self._in_background
        show = ranks.moving() if ranks.threads else silent
        return Pending(
            step,
            lambda: self._copy(step, show),
            lambda copied: self._end(ranks, step, copied),
            previous,
            alone=ranks.threads,
        )

    def _divide(
        self, step: int, plan: SavePlan, moves: Mapping[str, Sequence[Move]]
    ) -> Mapping[str, Array]:
        """The bytes of the files that this node drains."""

        def share(everyones: list[tuple[int, Written]]) -> list[dict[str, Array]]:
            self._size = sum(size for _, theirs in everyones for size in theirs.made.values())
            if self._size > self._most:
                raise CheckpointError(
                    f"step {step} has {self._size} bytes; the stage takes {self._most}"
                )
            nodes = [node for node, _ in everyones]
            found = shares([theirs for _, theirs in everyones], nodes)
            return [found[node] for node in nodes]

        ranges = (
            {name: written_ranges(some) for name, some in moves.items()} if self.nodes > 1 else {}
        )
        mine = Written(ranges, plan.file_sizes)
        try:
            return self._ranks.deal(
                f"staging step {step}", lambda: (self._stage.place.node, mine), share
            )
        except BaseException:
            self.discard(step)
            raise

    def _copy(self, step: int, show: Show = silent) -> None:
        self._store.await_removal()
        if self._leads:
            self._stage.drain(step, self._store, durable=self._durable, show=show)

    def _copy_left(self, left: Staged) -> None:
        """Drains a step of another Writer. This node may have nothing of that save."""
        staged = self._stage.read_note(left.step) if self._leads else None
        if staged is not None and staged.save == left.save:
            self._copy(left.step, self._ranks.moving())

    def _end(
        self, ranks: Ranks, step: int, copied: Callable[[], Any], left: Staged | None = None
    ) -> Path:
        """Publishes a step that all nodes have copied. After an error it stays staged, for the next
        Writer. ``left``: the note of another Writer's step."""
        store = self._store if left is None else self._store.of_form(left.in_parts)
        try:
            path = ranks.together(
                f"the end of draining step {step}",
                copied,
                lambda _: self._finish(store, step, left),
            )
        except BaseException:
            if ranks.rank == 0:
                with suppress(OSError):
                    store.discard(step)
            if left is None:
                with self._changing:
                    self._undrained.append(step)
            raise
        if left is None:
            if self._leads:
                self._stage.remove(step)
            self._drop(list(self._undrained))  # older steps
        return path

    def _finish(self, store: Store, step: int, left: Staged | None) -> Path:
        """Publishes a step with the generation of its staging."""
        if left is None and self._stage.read_note(step) is None:
            raise CheckpointError(f"{self._stage.store.path(step)}: the staged files were removed")
        return self._publish(store, step)

    def _judge(self, left: Sequence[Sequence[Staged]]) -> list[Staged]:
        complete = self._store.complete()
        last = max([self._store.last_published, *(found.generation for found in complete)])
        drained, messages = judge(left, last, {found.save for found in complete})
        for text in messages:
            warnings.warn(f"{self._store.directory}: {text}", stacklevel=2)
        return drained
