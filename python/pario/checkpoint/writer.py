"""The Writer: saves checkpoints of all ranks, at once or in the background."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pario.checkpoint import container, exchange, relay, transfer
from pario.checkpoint.arrays import Converter, Given
from pario.checkpoint.attributes import check_attrs
from pario.checkpoint.background import Owner, Pending, Snapshot, count_done
from pario.checkpoint.compression import check_compress
from pario.checkpoint.container import Label
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.identity import Identity
from pario.checkpoint.parts import check_files, groups, part_number, plan_parts
from pario.checkpoint.plan import (
    Copy,
    RankData,
    RankResult,
    SavePlan,
    SaveRequest,
    plan_compressed,
    plan_one_file,
)
from pario.checkpoint.ranks import ranks_of
from pario.checkpoint.retention import Keep, Retention, rules_of
from pario.checkpoint.stage import Draining
from pario.checkpoint.store import Store
from pario.checkpoint.transfer import check_space
from pario.copying import write_all
from pario.interrupts import check, keep_error, postpone_interrupt
from pario.paths import local_path
from pario.progress import Show, show_long_work, silent
from pario.ranks import PATIENCE, Ranks, node_name
from pario.version import version


@dataclass(frozen=True)
class _Task:
    """A checkpoint that is being written."""

    label: Label
    plan: SavePlan
    data: RankData
    made: bool  # rank 0's file exists
    joint: bool  # the ranks may write rank 0's file together


def _no_copy(given: Sequence[Given]) -> Sequence[Given]:
    return given


class Writer:
    """Saves checkpoints of distributed arrays to a directory.

    All methods are collective over the communicator. One Writer at a time writes to a directory. A
    Writer is a context manager, which closes it.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, torch.distributed.ProcessGroup, or None
        The ranks that save together; None for one process alone.
    path : path_like
        Local directory of the checkpoints; made where it is missing.
    files : int, "node" or "rank", optional
        Files of a checkpoint: a number, one for each node, or one for each rank. Unless it is 1, a
        checkpoint is a directory, with a master file that presents all files as one.
    keep : int or Keep, optional
        Number of newest checkpoints that stay, or rules (:class:`Keep`); None keeps all. A
        checkpoint that a :class:`State` reads stays until a later save.
    durable : bool, optional
        Flushes a checkpoint to the disk before it gets its name.
    in_flight : int, optional
        Most checkpoints that :meth:`save_async` writes at the same time; each needs memory for a
        copy of this rank's arrays.
    safetensors : bool, optional
        Makes files that are safetensors files, too, for programs that read tensors; with
        ``files=1``.
    compress : "zstd", optional
        Compresses arrays of 1 MiB and more, in chunks, which HDF5 programs read by the filter zstd
        (32015); with ``files=1``. The compressed arrays of a rank are in its memory until they are
        written.
    stage : path_like, optional
        A directory in memory or on a disk of each node, where saves end; a thread of each node
        copies the files to ``path``.
    stage_bytes : int, optional
        Most bytes staged at the same time, on all nodes together.
    patience : float, optional
        Seconds after which ranks that neither arrive nor make progress are named in an error.

    Raises
    ------
    CheckpointError
        If a parameter is invalid, the directory cannot be made, or another Writer uses it; on all
        ranks.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> T = np.zeros((6, 8))
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with checkpoint.Writer(None, path, keep=2) as writer:
    ...         saved = writer.save(10, {"T": checkpoint.block(T, (6, 8), (0, 0))}, {"dt": 0.1})
    ...     state = checkpoint.load(None, path)
    ...     saved.name, state.step, state["T"].shape
    ('step-00000010.h5', 10, (6, 8))
    """

    @postpone_interrupt()
    def __init__(
        self,
        comm: Any,
        path: str | os.PathLike[str],
        *,
        files: int | str = 1,
        keep: int | Keep | None = None,
        durable: bool = True,
        in_flight: int = 1,
        safetensors: bool = False,
        compress: str | None = None,
        stage: str | os.PathLike[str] | None = None,
        stage_bytes: int = 1 << 36,
        patience: float = PATIENCE,
    ) -> None:
        for name, value in (("in_flight", in_flight), ("stage_bytes", stage_bytes)):
            if value < 1:
                raise CheckpointError(f"{name}={value}; expected a number from 1 on")
        check_files(files)
        if safetensors and files != 1:
            raise CheckpointError(f"safetensors=True, files={files!r}; expected files=1")
        check_compress(compress, files, safetensors=safetensors)
        for place in (path, stage):
            local_path(place or "", CheckpointError)
        self._owner = Owner(f"the Writer of {path}")
        self._files, self._group_of = files, list[int]()
        self._safetensors, self._compress = safetensors, compress is not None
        self._given, self._ranks = comm, ranks_of(comm, patience)
        self._in_background = self._ranks.again()
        self._snapshots = [Snapshot(shared=self._ranks.size > 1) for _ in range(in_flight)]
        self._pending = deque[Pending]()
        self._closed = False
        self._store = Store(path, in_parts=files != 1, durable=durable)
        self._durable = durable
        self._retention = Retention(rules_of(keep))
        self._converter = Converter(self._ranks.rank, self._ranks.size)
        self._plan: SavePlan | None = None
        self._about: dict[str, Any] = {}
        self._draining: Draining | None = None
        try:
            self._open(path, stage, stage_bytes)
            check()
        except BaseException as error:
            self._leave(error)
            raise
        #: The store where the ranks write.
        self._target = self._draining.store if self._draining else self._store
        self._nodes = self._draining.nodes if self._draining else 1

    def _open(
        self,
        path: str | os.PathLike[str],
        stage: str | os.PathLike[str] | None,
        stage_bytes: int,
    ) -> None:
        where = socket.gethostname(), node_name()
        self._ranks.together(f"checkpoint.Writer({path})", lambda: where, self._begin)
        if stage is not None:
            self._draining = Draining(
                self._ranks,
                stage,
                self._store,
                self._publish,
                durable=self._durable,
                most=stage_bytes,
            )

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        if kind is None:
            self.close()
        if self._closed or not self._owner.is_here:
            return
        self._closed = True
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        """Ends this rank's part after an error. Reports it to the other ranks, which would wait
        for this one, unless they have the same error or the ranks are not those of this Writer."""
        if error and self._ranks is not self._given and not isinstance(error, CheckpointError):
            with suppress(Exception):  # another rank has died
                self._ranks.leave(error)
        self._release()

    @postpone_interrupt()
    def close(self) -> None:
        """Waits for all checkpoints in the background, and unlocks the directory. Collective.

        Raises
        ------
        CheckpointError
            The first error of a checkpoint that :meth:`Pending.result` has not raised, on all
            ranks; the others are completed all the same.
        """
        if self._closed:
            return
        self._owner.require()
        self._closed = True
        failed: list[BaseException] = []
        try:
            while self._pending:
                with keep_error(failed):
                    self._await_pending(0)
        finally:
            self._release()
        if failed:
            raise failed[0]

    def agree(self, what: str, work: Callable[[], Any]) -> Any:
        """Runs a function on all ranks; an error of one rank is raised on all. Collective.

        Parameters
        ----------
        what : str
            Name of the work in errors; equal on all ranks.
        work : callable
            Called without arguments.

        Returns
        -------
        object
            The result of ``work`` on this rank.

        Raises
        ------
        CheckpointError
            If ``work`` raises an exception on another rank. Its own exception is raised as it is.

        Examples
        --------
        >>> import tempfile
        >>> from pario import checkpoint
        >>> with tempfile.TemporaryDirectory() as path, checkpoint.Writer(None, path) as writer:
        ...     writer.agree("reading the mesh", lambda: 42)
        42
        """
        self._check_open()
        return self._ranks.agree(what, work)

    @postpone_interrupt()
    def save(
        self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
    ) -> Path:
        """Saves arrays as the checkpoint of a step. Collective.

        It replaces another checkpoint of this step. With ``stage``, it returns when the checkpoint
        is staged.

        Parameters
        ----------
        step : int
            Number from 0 on.
        arrays : mapping of str to object
            Arrays by name, made by :func:`block`, :func:`blocks`, :func:`replicated` and
            :func:`per_rank`; plain arrays, numbers and strings are replicated. All ranks give the
            same names. A name with ``/`` puts the array into a group.
        attrs : mapping, optional
            Attributes of the checkpoint: numbers, strings, arrays up to 64,000 bytes, lists and
            dictionaries. Rank 0's count.

        Returns
        -------
        pathlib.Path
            The complete checkpoint.

        Raises
        ------
        CheckpointError
            If parts do not tile an array, a type cannot be saved, space is missing, or writing
            fails on a rank; on all ranks. Earlier checkpoints stay.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from pario import checkpoint
        >>> with tempfile.TemporaryDirectory() as path, checkpoint.Writer(None, path) as writer:
        ...     writer.save(1, {"mesh/x": np.arange(5.0), "name": "run 7"}, {"time": 0.5}).name
        'step-00000001.h5'
        """
        self._check_open()
        if self._draining:
            self._save_on_stage(self._draining, step, arrays, attrs or {})
            return self._store.path(step)
        self._await_pending(0)
        task, ranks = self._begin_step(step, arrays, attrs or {}, _no_copy), self._ranks
        with show_long_work(f"saving {self._store.path(step)}", here=ranks.rank == 0) as show:
            return self._conclude(ranks, task, lambda: self._write(ranks, task, show))

    @postpone_interrupt()
    def save_async(
        self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
    ) -> Pending:
        """As :meth:`save`, but returns when the arrays are copied. Collective.

        The program may change the arrays then. Waits for older checkpoints while ``in_flight`` are
        being written.

        Parameters
        ----------
        step, arrays, attrs
            As for :meth:`save`.

        Returns
        -------
        Pending
            The checkpoint in the background.

        Raises
        ------
        CheckpointError
            As :meth:`save`; errors of writing are raised by :meth:`Pending.result`, or by the next
            call of the Writer. MemoryError if there is no memory for the copy.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from pario import checkpoint
        >>> T = np.zeros(1000)
        >>> with tempfile.TemporaryDirectory() as path, checkpoint.Writer(None, path) as writer:
        ...     pending = writer.save_async(1, {"T": T})
        ...     T += 1
        ...     pending.result().name
        'step-00000001.h5'
        """
        self._check_open()
        if self._draining:
            return self._save_on_stage(self._draining, step, arrays, attrs or {})
        self._await_pending(self._keep_at_most(step))
        snapshot, ranks = self._snapshots[0], self._in_background
        task = self._begin_step(step, arrays, attrs or {}, snapshot.copy)
        moves = self._share_moves(snapshot, task)
        self._snapshots.append(self._snapshots.pop(0))  # the oldest one is next
        pending = Pending(
            step,
            lambda: self._write_for_node(ranks, task, moves),
            lambda written: self._conclude(ranks, task, written),
            self._pending[-1] if self._pending else None,
            alone=ranks.threads,
        )
        self._pending.append(pending)
        return pending

    def _keep_at_most(self, step: int) -> int:
        """The number of unfinished checkpoints that may stay while one more is saved. Collective.

        Memory limits it; written ones do not count.
        """
        most = min(len(self._pending), len(self._snapshots) - 1)
        if not most or any(pending.step == step for pending in self._pending):
            return 0
        ready: int = self._ranks.together(
            f"save(step {step})", lambda: count_done(self._pending), lambda counts: min(counts)
        )
        return min(most, len(self._pending) - ready)

    def _check_open(self) -> None:
        self._owner.require()
        if self._closed:
            raise CheckpointError(f"{self._store.directory}: this Writer is closed")

    def _share_moves(self, snapshot: Snapshot, task: _Task) -> relay.Moves:
        """The writes of this rank from the copies of its node; computed once for a plan. With
        compressed arrays a rank writes its own."""
        if self._compress:
            moves = task.plan.moves(task.data, self._ranks.rank, all_ranks=False)
            return {name: [mine] for name, mine in moves.items()}
        if snapshot.moves is None:
            step, ranks = task.label.step, self._ranks
            made = [task.plan.part[0]] if task.plan.part else []
            moves = task.plan.moves(task.data, ranks.rank, all_ranks=False)
            what = f"save(step {step})"
            with self._discarded_on_failure(step):
                snapshot.moves = relay.share(ranks, what, snapshot.memory, moves, made)
        return snapshot.moves

    def _save_on_stage(
        self, draining: Draining, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any]
    ) -> Pending:
        """Stages a checkpoint. Waits for older ones to be drained while the stage is full."""
        self._await_pending(draining.keep_at_most(step, self._pending))
        ranks, task = self._ranks, self._begin_step(step, arrays, attrs, _no_copy)
        with show_long_work(f"staging {self._store.path(step)}", here=ranks.rank == 0) as show:
            self._conclude(ranks, task, lambda: self._write(ranks, task, show))
        moves = task.plan.moves(task.data, ranks.rank, all_ranks=False)
        previous = self._pending[-1] if self._pending else None
        self._pending.append(draining.start(task.label.identity, task.plan, moves, previous))
        task.plan.free_frames()
        return self._pending[-1]

    def _release(self) -> None:
        """Finishes this rank's writes and unlocks the directory. Not collective: other ranks may
        have failed."""
        for pending in self._pending:
            pending.join()
        self._store.release()
        if self._draining:
            self._draining.release()

    def _await_pending(self, left: int) -> None:
        """Waits until at most ``left`` checkpoints are in the background; raises their errors."""
        while len(self._pending) > left:
            pending = self._pending.popleft()
            if not pending.reported:
                pending.result()

    def _conclude(self, ranks: Ranks, task: _Task, write: Callable[[], RankResult]) -> Path:
        """Completes a checkpoint when all ranks have written."""
        with self._discarded_on_failure(task.label.step):
            return ranks.together(
                f"the end of saving step {task.label.step}",
                write,
                lambda results: self._finish(task, results),
            )

    def _begin(self, where: list[tuple[str, str]]) -> None:
        """Locks the directory, on rank 0. ``where``: host and node of each rank."""
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
        """Removes the unfinished step where the body raises an error."""
        try:
            yield
        except BaseException as error:
            if self._draining:
                self._draining.discard(step)
            elif self._ranks.rank == 0:
                self._store.discard(step)
            if isinstance(error, OSError):
                reason = error.strerror or error
                raise CheckpointError(f"{self._target.part(step)}: {reason}") from error
            raise

    def _begin_step(
        self, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any], copy: Copy
    ) -> _Task:
        """Plans a save and collects this rank's data. With a known plan the data is collected
        first, so that no rank writes while others copy."""
        given: list[Given] = []
        data: list[RankData] = []

        def enter() -> tuple[bool, bool]:
            if not isinstance(step, int | np.integer) or step < 0:
                raise CheckpointError(f"step {step!r}; expected a number from 0 on")
            if self._ranks.rank == 0 or self._draining:
                self._target.clear_link(step)
            given.extend(self._converter.convert(name, value) for name, value in arrays.items())
            plan = self._plan
            same = plan is not None and plan.facts == [one.facts for one in given]
            if plan is not None and same:
                data.append(plan.collect(given, copy))
            return same, self._ranks.can_open_files

        def decide(everyones: list[tuple[bool, bool]]) -> tuple[Identity, bool, bool]:
            self._retention.check_attrs(attrs)
            own = self._store.next_identity(step)
            same, joint = (all(answers) for answers in zip(*everyones, strict=True))
            again = self._plan is not None and same
            if again:
                self._prepare(Label(step, attrs, self._about, own))
            return own, again, joint

        own, again, joint = self._ranks.together(f"save(step {step})", enter, decide)
        label = Label(step, attrs, self._about, own)
        if again:
            assert self._plan is not None
            return _Task(label, self._plan, data[0], not self._plan.independent, joint)
        plan, collected = self._make_plan(label, given, copy)
        return _Task(label, plan, collected, True, joint)

    def _make_plan(
        self, label: Label, given: Sequence[Given], copy: Copy
    ) -> tuple[SavePlan, RankData]:
        """Plans a save of new arrays, makes its files, and collects this rank's data."""
        self._target.await_removal()
        request = SaveRequest(
            str(self._target.part(label.step)),
            label,
            {one.facts.name: one.attrs for one in given},
            self._nodes,
            self._safetensors,
        )
        facts = [one.facts for one in given]
        self._plan = None
        for snapshot in self._snapshots:
            snapshot.forget()
        with self._discarded_on_failure(label.step):
            if self._compress:
                plan = plan_compressed(self._ranks, request, given)
            elif self._files == 1:
                plan = plan_one_file(self._ranks, request, facts)
            else:
                plan = plan_parts(self._group_of, self._ranks, request, facts)
            data = self._ranks.agree(f"save(step {label.step})", lambda: plan.collect(given, copy))
        if not self._compress:  # frames have other places in each save
            self._plan = plan
        return plan, data

    def _prepare(self, label: Label) -> None:
        """Prepares a save with a known plan, on rank 0: checks the space, and makes its file where
        other ranks need it."""
        assert self._plan is not None
        check_attrs(label.attrs)
        with self._discarded_on_failure(label.step):
            self._target.begin(label.step)
            self._check_space(label.step, self._plan.space_needed(self._nodes))
            if not self._plan.independent:
                self._make_container(self._plan, label)

    def _check_space(self, step: int, needed: int) -> None:
        """Checks the space; waits for removals only where their space is needed."""
        path = str(self._target.part(step))
        try:
            check_space(path, needed)
        except CheckpointError:
            self._target.await_removal()
            check_space(path, needed)

    def _make_container(self, plan: SavePlan, label: Label) -> None:
        assert plan.master is not None
        skeleton = container.relabel(plan.master.skeleton, label)
        container.write(str(self._target.container(label.step)), skeleton)

    def _write(self, ranks: Ranks, task: _Task, show: Show = silent) -> RankResult:
        """Writes this rank's data: alone, or together with other ranks where some have short
        runs."""
        part, plan, show = self._make_files(ranks, task), task.plan, ranks.moving(show)
        alone = plan.independent or not task.joint
        for name, moves in plan.moves(task.data, ranks.rank, all_ranks=not alone).items():
            path, durable = str(part / name), self._durable and not self._draining
            if alone:
                transfer.write(path, moves, durable=durable, show=show)
            else:
                node = bool(self._draining)  # whose stage has a file of its own
                exchange.write(ranks, path, moves, durable=durable, node=node, show=show)
        return plan.result(task.data)

    def _write_for_node(self, ranks: Ranks, task: _Task, moves: relay.Moves) -> RankResult:
        """Writes this rank's share of its node's copies, in the background."""
        part = self._make_files(ranks, task)
        show = ranks.moving() if ranks.threads else silent
        for name, by_rank in moves.items():
            exchange.write_for_all(str(part / name), by_rank, durable=self._durable, show=show)
        return task.plan.result(task.data)

    def _make_files(self, ranks: Ranks, task: _Task) -> Path:
        """Makes this rank's files when removals are complete. Returns their directory."""
        self._target.await_removal()
        part, plan = self._target.part(task.label.step), task.plan
        if ranks.rank == 0 and not task.made:
            self._make_container(plan, task.label)
        if self._draining:
            self._target.begin(task.label.step)  # rank 0 has done it on its own node only
        if plan.part is not None:
            name, skeleton = plan.part
            own = replace(task.label.identity, part=part_number(name))
            container.write(str(part / name), replace(skeleton, identity=own))
        return part

    def _finish(self, task: _Task, results: Sequence[RankResult]) -> Path:
        """Writes packed arrays and checksums, and publishes the checkpoint, on rank 0."""
        master, step = task.plan.master, task.label.step
        assert master is not None
        sums = [one.sums for one in results]
        master.check_replicated(sums)
        with transfer.open_file(str(self._target.container(step)), os.O_RDWR) as file:
            master.unpacking.write(file, [one.packed for one in results])
            write_all(file, master.skeleton.places.sums, master.order_sums(sums))
            if self._durable and not self._draining:
                os.fsync(file)
        return self._store.path(step) if self._draining else self._publish(self._store, step)

    def _publish(self, store: Store, step: int) -> Path:
        """Publishes a step of ``store``, and removes those that no rule keeps."""
        return store.publish(step, self._retention.select_removable)


def _git_describe() -> str:
    """The version of the running program; empty where git does not know it."""
    place = Path(sys.argv[0]).resolve().parent if sys.argv and sys.argv[0] else Path.cwd()
    command = ["git", "-C", str(place), "describe", "--always", "--dirty"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        return done.stdout.strip()
    return ""
