"""The Writer: saves checkpoints of all ranks, at once or in the background."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pario.checkpoint.arrays import Given
from pario.checkpoint.background import Owner, Pending, Snapshot, count_done
from pario.checkpoint.compression import check_compress
from pario.checkpoint.draining import Draining
from pario.checkpoint.errors import CheckpointError, require_positive
from pario.checkpoint.parts import check_files
from pario.checkpoint.ranks import ranks_of
from pario.checkpoint.remote import RemoteStore, check_options, open_store
from pario.checkpoint.retention import Keep, Retention, rules_of
from pario.checkpoint.saving import Form, Saving
from pario.interrupts import check, keep_error, postpone_interrupt
from pario.paths import is_url, local_path
from pario.progress import show_long_work
from pario.ranks import PATIENCE, node_name


def _forget_moves(snapshots: Sequence[Snapshot]) -> None:
    for snapshot in snapshots:
        snapshot.forget()


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
        Local directory of the checkpoints, made where it is missing; or a URL of an object store
        (``s3://bucket/run``), to which each checkpoint is uploaded when it is complete.
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
        ``files=1``. By default states of :func:`save_state_dict` are, unless ``files`` or
        ``compress`` forbids it.
    compress : "zstd", optional
        Compresses arrays of 1 MiB and more, in chunks, which HDF5 programs read by the filter zstd
        (32015); with ``files=1``. The compressed arrays of a rank are in its memory until they are
        written.
    stage : path_like, optional
        A directory in memory or on a disk of each node, where saves end; a thread of each node
        copies the files to ``path``. Of a URL: the directory in which files are made, which all
        ranks see; by default ``TMPDIR``.
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
        safetensors: bool | None = None,
        compress: str | None = None,
        stage: str | os.PathLike[str] | None = None,
        stage_bytes: int = 1 << 36,
        patience: float = PATIENCE,
    ) -> None:
        for name, value in (("in_flight", in_flight), ("stage_bytes", stage_bytes)):
            require_positive(name, value)
        check_files(files)
        if safetensors and files != 1:
            raise CheckpointError(f"safetensors=True, files={files!r}; expected files=1")
        check_compress(compress, files, safetensors=bool(safetensors))
        url = os.fspath(path) if is_url(path) else ""
        for place in ("" if url else path, stage):
            local_path(place or "", CheckpointError)
        self._owner = Owner(f"the Writer of {path}")
        self._given, self._ranks = comm, ranks_of(comm, patience)
        self._in_background = self._ranks.again()
        self._snapshots = [Snapshot(shared=self._ranks.size > 1) for _ in range(in_flight)]
        self._pending = deque[Pending]()
        self._closed = False
        self._store = open_store(path, stage, in_parts=files != 1, durable=durable)
        if url:
            check_options(url, files, keep)
            stage, durable = None, False
        form = Form(files, safetensors, compress is not None, durable)
        self._saving = Saving(
            self._ranks,
            self._store,
            form,
            Retention(rules_of(keep)),
            partial(_forget_moves, self._snapshots),
        )
        self._draining: Draining | None = None
        try:
            self._open(path, stage, stage_bytes, durable)
            check()
        except BaseException as error:
            self._leave(error)
            raise

    def _open(
        self,
        path: str | os.PathLike[str],
        stage: str | os.PathLike[str] | None,
        stage_bytes: int,
        durable: bool,
    ) -> None:
        where, what = (socket.gethostname(), node_name()), f"checkpoint.Writer({path})"
        mark, store = self._ranks.together(what, lambda: where, self._begin), self._store
        if isinstance(store, RemoteStore):
            self._ranks.agree(what, lambda: store.require_mark(mark))
        if stage is not None:
            self._draining = Draining(
                self._ranks,
                stage,
                self._store,
                self._saving.publish,
                durable=durable,
                most=stage_bytes,
            )
            self._saving.save_on_stage(self._draining)

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
            The complete checkpoint; of a URL, its name there.

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
        saving, ranks = self._saving, self._ranks
        task = saving.begin(step, arrays, attrs or {}, _no_copy)
        with show_long_work(f"saving {self._store.path(step)}", here=ranks.rank == 0) as show:
            return saving.conclude(ranks, task, lambda: saving.write(ranks, task, show))

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
        snapshot, saving, ranks = self._snapshots[0], self._saving, self._in_background
        task = saving.begin(step, arrays, attrs or {}, snapshot.copy)
        moves = saving.share_moves(snapshot, task)
        self._snapshots.append(self._snapshots.pop(0))  # the oldest one is next
        pending = Pending(
            step,
            lambda: saving.write_copies(ranks, task, moves),
            lambda written: saving.conclude(ranks, task, written),
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

    def _save_on_stage(
        self, draining: Draining, step: int, arrays: Mapping[str, Any], attrs: Mapping[str, Any]
    ) -> Pending:
        """Stages a checkpoint. Waits for older ones to be drained while the stage is full."""
        self._await_pending(draining.keep_at_most(step, self._pending))
        saving, ranks = self._saving, self._ranks
        task = saving.begin(step, arrays, attrs, _no_copy)
        with show_long_work(f"staging {self._store.path(step)}", here=ranks.rank == 0) as show:
            saving.conclude(ranks, task, lambda: saving.write(ranks, task, show))
        moves = task.plan.moves(task.data, ranks.rank, all_ranks=False)
        previous = self._pending[-1] if self._pending else None
        self._pending.append(draining.start(task.label.identity, task.plan, moves, previous))
        task.plan.free_frames()
        return self._pending[-1]

    def _begin(self, where: list[tuple[str, str]]) -> str:
        """Locks the directory, on rank 0. ``where``: host and node of each rank. Returns the mark
        of a stage."""
        self._store.claim()
        self._saving.remember_ranks(where)
        return self._store.mark() if isinstance(self._store, RemoteStore) else ""

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
