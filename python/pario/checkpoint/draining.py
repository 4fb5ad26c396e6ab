"""Draining: the stages of all nodes are copied to the directory of the checkpoints."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pario.checkpoint.background import Pending, count_done
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity
from pario.checkpoint.plan import SavePlan
from pario.checkpoint.stage import Stage, Staged, Written, places, shares, written_ranges
from pario.checkpoint.store import Store
from pario.checkpoint.transfer import Move
from pario.checkpoint.types import Array
from pario.progress import Show, silent
from pario.ranks import Ranks, node_name


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
