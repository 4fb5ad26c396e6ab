"""What was staged is brought to where it belongs, by the ranks that lead their nodes."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pario.checkpoint.arrangement import Arrangement
from pario.checkpoint.background import Pending, done
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity
from pario.checkpoint.stage import Stage, Staged, Written, judge, node_name, places, shares, written_by
from pario.checkpoint.store import Store
from pario.checkpoint.transfer import Move
from pario.checkpoint.types import Array
from pario.progress import Show, silent
from pario.ranks import Ranks


class Draining:
    """Between the stages of all nodes and a store. ``publish``: gives a step of the store its name. ``most``: bytes that are staged.

    Making one drains what another Writer has left. All methods but :meth:`release` are collective.
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
        self._stage, self._leads, self.nodes = Stage(directory, store, place), place.leads, place.nodes
        self._arrangement: Arrangement | None = None
        self._share: Mapping[str, Array] = {}  # what this node drains of such an arrangement
        self._size, self._sizes = 0, dict[int, int]()  # of it, and of what is staged; on rank 0
        self._undrained, self._changing = list[int](), threading.Lock()  # steps that stay where they are staged
        try:
            for left in ranks.together(what, lambda: self._stage.claim() if self._leads else [], self._judge):
                self._end(ranks, left.step, lambda left=left: self._copy_left(left), left)  # type: ignore[misc]
            if self._leads:
                self._stage.clear()
        except BaseException:
            self.release()
            raise

    @property
    def store(self) -> Store:
        """Where this node writes."""
        return self._stage.store

    def release(self) -> None:
        """Another Writer may have the stage."""
        self._stage.store.release()

    def free(self) -> None:
        """Gives back what was taken of the ranks."""
        self._in_background.free()

    def discard(self, step: int) -> None:
        """What was staged of a step, and cannot be finished, goes."""
        if self._leads:
            self._stage.store.discard(step)

    def left(self, step: int, pending: Sequence[Pending]) -> int:
        """How many of those that are staged may stay while another one is: none that is drained, or could not be."""
        if any(one.step == step for one in pending):
            return 0
        steps = [one.step for one in pending]
        left, dropped = self._ranks.together(f"save(step {step})", lambda: done(pending), lambda ready: self._fitting(steps, min(ready)))
        self._drop(dropped)
        return left

    def _fitting(self, steps: Sequence[int], ready: int) -> tuple[int, list[int]]:
        """And which of those that could not be drained have to make room. ``ready``: how many of the oldest are drained."""
        with self._changing:
            undrained = list(self._undrained)
        count = next((count for count in range(len(undrained)) if self._fits(undrained[count:])), len(undrained))
        kept, dropped = undrained[count:], undrained[:count]
        for step in dropped:
            warnings.warn(f"{self._store.directory}: step {step} could not be drained, and its room is needed; it is removed", stacklevel=2)
        going = [one for one in steps[ready:] if one not in undrained]
        first = next((count for count in range(len(going)) if self._fits([*kept, *going[count:]])), len(going))
        return len(steps) - (steps.index(going[first - 1]) + 1 if first else ready), dropped

    def _fits(self, steps: Sequence[int]) -> bool:
        """Whether one more may be staged beside these, as large as the one before."""
        return sum(self._sizes[step] for step in steps) + self._size <= self._most

    def _drop(self, steps: Sequence[int]) -> None:
        """What could not be drained, and is no longer needed where it is staged."""
        with self._changing:
            for step in [one for one in self._undrained if one in steps]:
                self._undrained.remove(step)
                if self._leads:
                    self._stage.remove(step)

    def start(
        self,
        own: Identity,
        arrangement: Arrangement,
        moves: Mapping[str, Sequence[Move]],
        previous: Pending | None,
    ) -> Pending:
        """Drains in the background a step that all ranks have staged.

        ``moves``: by file the writes of this rank.
        """
        step = own.step
        if self._arrangement is not arrangement:
            self._share = self._shared(step, arrangement, moves)
            self._arrangement = arrangement
        with self._changing:
            self._undrained = [one for one in self._undrained if one != step]
        try:
            self._ranks.agree(f"staging step {step}", lambda: self._stage.keep(own, self._share) if self._leads else None)
        except BaseException:
            self.discard(step)
            if self._leads:
                self._stage.remove(step)
            raise
        self._sizes[step] = self._size
        ranks = self._in_background
        show = ranks.moving() if ranks.threads else silent
        return Pending(step, lambda: self._copy(step, show), lambda copied: self._end(ranks, step, copied), previous, alone=ranks.threads)

    def _shared(self, step: int, arrangement: Arrangement, moves: Mapping[str, Sequence[Move]]) -> Mapping[str, Array]:
        """Which bytes of the files this node drains."""

        def share(everyones: list[tuple[int, Written]]) -> list[dict[str, Array]]:
            self._size = sum(size for _, theirs in everyones for size in theirs.made.values())
            if self._size > self._most:
                raise CheckpointError(f"step {step} has {self._size} bytes; the stage takes {self._most}")
            nodes = [node for node, _ in everyones]
            found = shares([theirs for _, theirs in everyones], nodes)
            return [found[node] for node in nodes]

        ranges = {name: written_by(some) for name, some in moves.items()} if self.nodes > 1 else {}
        mine = Written(ranges, arrangement.made_here)
        try:
            return self._ranks.deal(f"staging step {step}", lambda: (self._stage.place.node, mine), share)
        except BaseException:
            self.discard(step)
            raise

    def _copy(self, step: int, show: Show = silent) -> None:
        self._store.settle()
        if self._leads:
            self._stage.drain(step, self._store, durable=self._durable, show=show)

    def _copy_left(self, left: Staged) -> None:
        """This node may have nothing of it, or of that step only what another save has left."""
        staged = self._stage.staged(left.step) if self._leads else None
        if staged is not None and staged.save == left.save:
            self._copy(left.step, self._ranks.moving())

    def _end(self, ranks: Ranks, step: int, copied: Callable[[], Any], left: Staged | None = None) -> Path:
        """All nodes have copied what they have of a step. What cannot be finished stays where it is staged, for the next Writer.
        ``left``: by another one.
        """
        store = self._store if left is None else self._store.of_form(left.in_parts)
        try:
            path = ranks.together(f"the end of draining step {step}", copied, lambda _: self._finish(store, step, left))
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
            self._drop(list(self._undrained))  # they are older
        return path

    def _finish(self, store: Store, step: int, left: Staged | None) -> Path:
        """Publishes a step with the generation that it got when it was staged."""
        if left is None and self._stage.staged(step) is None:
            raise CheckpointError(f"{self._stage.store.path(step)}: the staged files are gone")
        return self._publish(store, step)

    def _judge(self, left: Sequence[Sequence[Staged]]) -> list[Staged]:
        complete = self._store.complete()
        last = max([self._store.last_published, *(found.generation for found in complete)])
        drained, said = judge(left, last, {found.save for found in complete})
        for text in said:
            warnings.warn(f"{self._store.directory}: {text}", stacklevel=2)
        return drained
