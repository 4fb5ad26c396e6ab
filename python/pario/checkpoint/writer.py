"""Saves checkpoints."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from pario.checkpoint import container, exchange, relay, transfer
from pario.checkpoint.arrangement import Arrangement, Parcel, Saving, Written, in_one_file
from pario.checkpoint.attributes import check_all
from pario.checkpoint.background import Pending, Snapshot, done
from pario.checkpoint.container import Label
from pario.checkpoint.draining import Draining
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.given import Given, Taker
from pario.checkpoint.identity import Identity
from pario.checkpoint.owner import Owner
from pario.checkpoint.packing import is_written
from pario.checkpoint.parts import check_files, groups, in_parts, part_number
from pario.checkpoint.ranks import ranks_of
from pario.checkpoint.room import check_room
from pario.checkpoint.stage import node_name
from pario.checkpoint.store import Store
from pario.interrupts import kept, postponed
from pario.paths import local_path
from pario.progress import Show, silent, told
from pario.ranks import PATIENCE, Ranks
from pario.version import version

#: Makes copies of what is given, where they are needed.
_Copy = Callable[[Sequence[Given]], Sequence[Given]]


@dataclass(frozen=True)
class _Task:
    """A checkpoint that is written."""

    label: Label
    arrangement: Arrangement
    parcel: Parcel
    made: bool  # whether rank 0's file is there

    def moves(self, rank: int, *, together: bool = False) -> dict[str, list[transfer.Move]]:
        """By file what a rank writes. ``together``: all ranks write to rank 0's file, even nothing."""
        arrangement = self.arrangement
        found: dict[str, list[transfer.Move]] = {"": []} if together else {}
        if arrangement.part is not None:
            found[arrangement.part[0]] = []
        for one, tallies in zip(self.parcel.rest, self.parcel.tallies, strict=True):
            if is_written(one.facts, rank):
                extents = arrangement.extents[one.facts.name]
                for extent, box, data, tally in zip(extents, one.facts.boxes, one.data, tallies, strict=True):
                    found.setdefault(extent.file, []).append(extent.move(box, data, tally))
        return found


class Writer:
    """Saves checkpoints to a directory. All methods are collective over the communicator; one Writer at a time writes to a directory.

    ``comm``: of mpi4py, or None for one process. ``files``: how many a checkpoint has: a number, "node" (one for each) or "rank"; where it
    is not 1, a checkpoint is a directory, with a master that shows them as one. ``keep``: how many checkpoints stay; None: all.
    ``durable``: a checkpoint is on the disk before it has its name. ``in_flight``: how many checkpoints are written in the background at
    most; each needs memory for a copy of this rank's arrays. ``stage``: a directory of each node, in memory or on a disk of it, where
    saving ends; a thread of each node brings it to ``path``. ``stage_bytes``: how much is staged at most, on all nodes together.
    ``patience``: seconds after which ranks that neither come nor get on are named in an error.
    """

    def __init__(
        self,
        comm: Any,
        path: str | os.PathLike[str],
        *,
        files: int | str = 1,
        keep: int | None = None,
        durable: bool = True,
        in_flight: int = 1,
        stage: str | os.PathLike[str] | None = None,
        stage_bytes: int = 1 << 36,
        patience: float = PATIENCE,
    ) -> None:
        for name, value in (("keep", keep), ("in_flight", in_flight), ("stage_bytes", stage_bytes)):
            if value is not None and value < 1:
                raise CheckpointError(f"{name}={value}; expected a number from 1 on")
        check_files(files)
        for place in (path, stage):
            local_path(place or "", CheckpointError)
        self._owner = Owner(f"the Writer of {path}")
        self._files, self._group_of = files, list[int]()
        self._ranks = ranks_of(comm, patience)
        self._in_background = self._ranks.again()
        self._snapshots, self._pending = [Snapshot(seen=self._ranks.size > 1) for _ in range(in_flight)], deque[Pending]()
        self._closed = False
        self._store, self._keep, self._durable = Store(path, in_parts=files != 1), keep, durable
        self._taker = Taker(self._ranks.rank, self._ranks.size)
        self._arrangement: Arrangement | None = None
        self._about: dict[str, Any] = {}
        self._draining: Draining | None = None
        try:
            with postponed():
                where = socket.gethostname(), node_name()
                self._ranks.together(f"checkpoint.Writer({path})", lambda: where, self._begin)
                if stage is not None:
                    self._draining = Draining(self._ranks, stage, self._store, self._publish, durable=durable, most=stage_bytes)
        except BaseException:
            self._release()
            raise
        #: Where the ranks write.
        self._place = self._draining.store if self._draining else self._store
        self._nodes = self._draining.nodes if self._draining else 1

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        if self._closed or not self._owner.is_here:
            return
        self._closed = True
        self._release()

    @postponed()
    def close(self) -> None:
        """Waits for what is written in the background, whatever becomes of it, and ends it."""
        if self._closed:
            return
        self._owner.require()
        self._closed = True
        failed: list[BaseException] = []
        try:
            while self._pending:
                with kept(failed):
                    self._settle(0)
        finally:
            self._release()
        if failed:
            raise failed[0]
        if self._draining:
            self._draining.free()
        self._in_background.free()
        self._ranks.free()

    def agree(self, what: str, work: Callable[[], Any]) -> Any:
        """What ``work`` returns here, when it has returned on all ranks; what it raises on one is an error on all. Collective."""
        self._check_open()
        return self._ranks.agree(what, work)

    @postponed()
    def save(self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any] | None = None) -> Path:
        """Saves what is given as the checkpoint of a step; returns its path when it is complete.

        ``arrays``: what :func:`block`, :func:`blocks`, :func:`replicated` and :func:`per_rank` make, by name. ``attrs``: rank 0's count.
        """
        self._check_open()
        if self._draining:
            self._save_on_stage(self._draining, step, arrays, attrs or {})
            return self._store.path(step)
        self._settle(0)
        task, ranks = self._begin_step(step, arrays, attrs or {}, lambda given: given), self._ranks
        with told(f"saving {self._store.path(step)}", here=ranks.rank == 0) as show:
            return self._conclude(ranks, task, lambda: self._write(ranks, task, show, by_mpi=not task.arrangement.plain))

    @postponed()
    def save_async(self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any] | None = None) -> Pending:
        """The same, but returns when the arrays are copied: the program may change them.

        Waits for older ones where ``in_flight`` are being written.
        """
        self._check_open()
        if self._draining:
            return self._save_on_stage(self._draining, step, arrays, attrs or {})
        self._settle(self._left(step))
        snapshot, ranks = self._snapshots[0], self._in_background
        task = self._begin_step(step, arrays, attrs or {}, snapshot.take)
        moves = self._shared(snapshot, task)
        self._snapshots.append(self._snapshots.pop(0))  # the others are in use, the oldest one's is next
        pending = Pending(
            step,
            lambda: self._write_for_node(ranks, task, moves),
            lambda written: self._conclude(ranks, task, written),
            self._pending[-1] if self._pending else None,
            alone=ranks.threads,
        )
        self._pending.append(pending)
        return pending

    def _left(self, step: int) -> int:
        """How many may be in flight beside a step: those that are not yet written, as far as there is memory. Collective."""
        most = min(len(self._pending), len(self._snapshots) - 1)
        if not most or any(pending.step == step for pending in self._pending):
            return 0
        ready: int = self._ranks.together(f"save(step {step})", lambda: done(self._pending), lambda counts: min(counts))
        return min(most, len(self._pending) - ready)

    def _check_open(self) -> None:
        self._owner.require()
        if self._closed:
            raise CheckpointError(f"{self._store.directory}: this Writer is closed")

    def _shared(self, snapshot: Snapshot, task: _Task) -> relay.Moves:
        """What this rank writes for its node of the copies of a task, which is found out once for an arrangement."""
        if snapshot.moves is None:
            part, ranks = task.arrangement.part, self._ranks
            made = [part[0]] if part else []
            with self._discarded_on_failure(task.label.step):
                snapshot.moves = relay.share(ranks, f"save(step {task.label.step})", snapshot.memory, task.moves(ranks.rank), made)
        return snapshot.moves

    def _save_on_stage(self, draining: Draining, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any]) -> Pending:
        """Returns when it is staged. Waits for older ones to be drained where the stage is full."""
        self._settle(draining.left(step, self._pending))
        ranks, task = self._ranks, self._begin_step(step, arrays, attrs, lambda given: given)
        with told(f"staging {self._store.path(step)}", here=ranks.rank == 0) as show:
            self._conclude(ranks, task, lambda: self._write(ranks, task, show))
        moves = task.moves(ranks.rank)
        previous = self._pending[-1] if self._pending else None
        self._pending.append(draining.start(task.label.identity, task.arrangement, moves, previous))
        return self._pending[-1]

    def _release(self) -> None:
        """Others may write there, when this rank has written what it began; the other ranks may be elsewhere: nothing collective."""
        for pending in self._pending:
            pending.join()
        self._store.release()
        if self._draining:
            self._draining.release()

    def _settle(self, left: int) -> None:
        """Waits until no more than so many are being written in the background; raises what went wrong with them."""
        while len(self._pending) > left:
            pending = self._pending.popleft()
            if not pending.told:
                pending.result()

    @property
    def _arranged(self) -> Arrangement:
        assert self._arrangement is not None
        return self._arrangement

    def _conclude(self, ranks: Ranks, task: _Task, write: Callable[[], Written]) -> Path:
        """The checkpoint is there when all ranks have written."""
        with self._discarded_on_failure(task.label.step):
            return ranks.together(f"the end of saving step {task.label.step}", write, lambda written: self._finish(task, written))

    def _begin(self, where: list[tuple[str, str]]) -> None:
        self._store.claim()
        self._group_of = groups(self._files, [node for _, node in where])
        self._about = {
            "pario": version(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "ranks": len(where),
            "hosts": sorted({host for host, _ in where}),
            "command": sys.argv,
            "git": _git_describe(),
        }

    @contextmanager
    def _discarded_on_failure(self, step: int) -> Iterator[None]:
        """Nothing of the step stays where the body raises something."""
        try:
            yield
        except BaseException as error:
            if self._draining:
                self._draining.discard(step)
            elif self._ranks.rank == 0:
                self._store.discard(step)
            if isinstance(error, OSError):
                raise CheckpointError(f"{self._place.part(step)}: {error.strerror or error}") from error
            raise

    def _begin_step(self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any], copy: _Copy) -> _Task:
        """Agrees on where everything goes. What is the same as before is copied first, so that ranks do not write while others copy."""
        given: list[Given] = []
        parcels: list[Parcel] = []

        def enter() -> bool:
            if not isinstance(step, int | np.integer) or step < 0:
                raise CheckpointError(f"step {step!r}; expected a number from 0 on")
            if self._ranks.rank == 0 or self._draining:
                self._place.clear_link(step)
            given.extend(self._taker.take(name, value) for name, value in arrays.items())
            same = self._arrangement is not None and self._arrangement.facts == [one.facts for one in given]
            if same:
                parcels.append(self._arranged.parcel(given, copy))
            return same

        def decide(same: list[bool]) -> tuple[Identity, bool]:
            own = self._store.next_identity(step)
            return own, all(same) and self._prepare(Label(step, attrs, self._about, own))

        own, again = self._ranks.together(f"save(step {step})", enter, decide)
        label = Label(step, attrs, self._about, own)
        if not again:
            self._arrange(label, given)
            with self._discarded_on_failure(step):
                parcels = [self._ranks.agree(f"save(step {step})", lambda: self._arranged.parcel(given, copy))]
        return _Task(label, self._arranged, parcels[0], made=not again or not self._arranged.plain)

    def _arrange(self, label: Label, given: Sequence[Given]) -> None:
        """The files are made."""
        self._place.settle()
        saving = Saving(str(self._place.part(label.step)), label, {one.facts.name: one.attrs for one in given}, self._nodes)
        arrange = in_one_file if self._files == 1 else partial(in_parts, self._group_of)
        self._arrangement = None
        for snapshot in self._snapshots:
            snapshot.forget()
        with self._discarded_on_failure(label.step):
            arrangement = arrange(self._ranks, saving, [one.facts for one in given])
            if not arrangement.plain and self._ranks.comm is not None:
                held, patience = arrangement.held(self._ranks.rank), self._ranks.patience
                arrangement.joint = exchange.plan(self._ranks.comm, held, writing=True, patience=patience)
        self._arrangement = arrangement

    def _prepare(self, label: Label) -> bool:
        """All ranks give the same as before: rank 0's file is made when it writes, or here where the others need it."""
        arrangement = self._arranged
        check_all(label.attrs)
        with self._discarded_on_failure(label.step):
            self._place.begin(label.step)
            self._check_room(label.step, arrangement.nbytes // self._nodes + arrangement.metadata)
            if not arrangement.plain:
                self._copy_container(arrangement, label)
        return True

    def _check_room(self, step: int, needed: int) -> None:
        """Waits for what is being removed only where its room is needed."""
        path = str(self._place.part(step))
        try:
            check_room(path, needed)
        except CheckpointError:
            self._place.settle()
            check_room(path, needed)

    def _copy_container(self, arrangement: Arrangement, label: Label) -> None:
        assert arrangement.skeleton is not None
        skeleton = container.relabel(arrangement.skeleton, label)
        container.write(str(self._place.container(label.step)), skeleton)

    def _write(self, ranks: Ranks, task: _Task, show: Show = silent, *, by_mpi: bool = False) -> Written:
        """Writes what this rank writes itself, or with the others of its node. ``by_mpi``: by MPI-IO where that is not enough."""
        part, arrangement, show = self._make_files(ranks, task), task.arrangement, ranks.moving(show)
        for name, moves in task.moves(ranks.rank, together=not arrangement.plain).items():
            path, durable = str(part / name), self._durable and not self._draining
            if arrangement.joint is not None:
                exchange.write(ranks.comm, arrangement.joint, path, moves, durable=durable, show=show)
            else:
                transfer.write(ranks.comm if by_mpi else None, path, moves, durable=durable, show=show)
        return arrangement.written(task.parcel)

    def _write_for_node(self, ranks: Ranks, task: _Task, moves: relay.Moves) -> Written:
        """Writes what this rank writes in the background."""
        part = self._make_files(ranks, task)
        show = ranks.moving() if ranks.threads else silent
        for name, by_rank in moves.items():
            exchange.write_for_all(str(part / name), by_rank, durable=self._durable, show=show)
        return task.arrangement.written(task.parcel)

    def _make_files(self, ranks: Ranks, task: _Task) -> Path:
        """Those that this rank makes, when what was removed takes no room any more. Returns where they are."""
        self._place.settle()
        part, arrangement = self._place.part(task.label.step), task.arrangement
        if ranks.rank == 0 and not task.made:
            self._copy_container(arrangement, task.label)
        if self._draining:
            self._place.begin(task.label.step)  # rank 0 has done it on its own node
        if arrangement.part is not None:
            name, skeleton = arrangement.part
            own = replace(task.label.identity, part=part_number(name))
            container.write(str(part / name), container.identified(skeleton, own))
        return part

    def _finish(self, task: _Task, written: Sequence[Written]) -> Path:
        """All others have written: rank 0 writes the rest, and the checkpoint gets its checksums and its name."""
        arrangement, step = task.arrangement, task.label.step
        assert arrangement.skeleton is not None
        sums = [one.sums for one in written]
        arrangement.check_replicated(sums)
        with transfer.opened(str(self._place.container(step)), os.O_RDWR) as file:
            if arrangement.unpacking is not None:
                arrangement.unpacking.write(file, [one.packed for one in written])
            transfer.write_all(file, arrangement.in_order(sums).astype("<u8").tobytes(), arrangement.skeleton.places.sums)
            if self._durable and not self._draining:
                os.fsync(file)
        return self._store.path(step) if self._draining else self._publish(self._store, step)

    def _publish(self, store: Store, step: int) -> Path:
        """Publishes a step and removes older ones.

        ``store``: the directory of the Writer, with the form of the checkpoint.
        """
        return store.publish(step, self._keep)


def _git_describe() -> str:
    """Which version of the program runs; nothing where git does not know."""
    place = Path(sys.argv[0]).resolve().parent if sys.argv and sys.argv[0] else Path.cwd()
    try:
        command = ["git", "-C", str(place), "describe", "--always", "--dirty"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
