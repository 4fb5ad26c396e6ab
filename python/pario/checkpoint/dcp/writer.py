"""Saves PyTorch's distributed checkpoints."""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from torch import distributed
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import StorageWriter, WriteResult
from torch.futures import Future

from pario.checkpoint import writer
from pario.checkpoint.arrays import Saved, blocks
from pario.checkpoint.container import TREE
from pario.checkpoint.dcp.storage import Storage, tell_errors
from pario.checkpoint.dcp.values import Collected, Facts, tree_of
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape
from pario.checkpoint.remote import open_store
from pario.checkpoint.retention import Keep
from pario.checkpoint.tensors import attrs_of
from pario.interrupts import postpone_interrupt
from pario.ranks import PATIENCE, Ranks


class Writer(Storage[SavePlan], StorageWriter):  # type: ignore[misc]
    """Saves PyTorch's distributed checkpoints to a directory of pario's checkpoints.

    For ``storage_writer`` of ``dcp.save`` and ``dcp.async_save``, with any planner. The checkpoint
    is published when all ranks have written. Values that are not tensors are saved as JSON; those
    that JSON cannot hold exactly are saved by ``torch.save``.

    Parameters
    ----------
    path : path_like, optional
        Directory of the checkpoints, made where it is missing, or a URL, as for
        :class:`pario.checkpoint.Writer`. ``checkpoint_id`` of ``dcp.save`` replaces it. If its last
        part ends with a step, as in ``run/step-10``, it is the checkpoint of step 10 in ``run``.
    step : int, optional
        Step of the checkpoint; by default one more than the highest step in the directory.
    process_group : torch.distributed.ProcessGroup, optional
        The ``process_group`` of ``dcp.save``; the default group by default.
    no_dist : bool, optional
        The ``no_dist`` of ``dcp.save``: this process saves alone.
    attrs : mapping, optional
        Attributes of the checkpoint, as for :meth:`pario.checkpoint.Writer.save`, such as a metric.
    keep, files, durable, safetensors, compress, stage, stage_bytes, patience
        As for :class:`pario.checkpoint.Writer`. With ``stage``, ``dcp.save`` returns when the
        checkpoint is staged, and the directory stays locked until :meth:`close`.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> import torch.distributed.checkpoint as dcp
    >>> from pario.checkpoint.dcp import Reader, Writer
    >>> state = {"weight": torch.arange(4.0), "epoch": 3}
    >>> with tempfile.TemporaryDirectory() as path:
    ...     saved = dcp.save(state, storage_writer=Writer(path, keep=2), no_dist=True)
    ...     loaded = {"weight": torch.zeros(4), "epoch": 0}
    ...     dcp.load(loaded, storage_reader=Reader(path), no_dist=True)
    >>> loaded
    {'weight': tensor([0., 1., 2., 3.]), 'epoch': 3}
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        step: int | None = None,
        process_group: Any = None,
        no_dist: bool = False,
        attrs: Mapping[str, Any] | None = None,
        files: int | str = 1,
        keep: int | Keep | None = None,
        durable: bool = True,
        safetensors: bool | None = None,
        compress: str | None = None,
        stage: str | os.PathLike[str] | None = None,
        stage_bytes: int = 1 << 36,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(path, step, process_group, no_dist, patience)
        self._options: dict[str, Any] = {
            "files": files,
            "keep": keep,
            "durable": durable,
            "safetensors": safetensors,
            "compress": compress,
            "stage": stage,
            "stage_bytes": stage_bytes,
            "patience": patience,
        }
        self._attrs = dict(attrs or {})
        self._stays_open = stage is not None
        self._writer: writer.Writer | None = None
        self._directory: Path | str = ""
        self._last = -1

    def __getstate__(self) -> dict[str, Any]:
        # dcp.async_save with AsyncCheckpointerType.PROCESS sends a copy for each checkpoint.
        return {**vars(self), "_writer": None, "_stays_open": False, "_group": None}

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for staged checkpoints, and unlocks the directory. Collective.

        Raises
        ------
        CheckpointError
            The first error of a checkpoint that is being drained, on all ranks.
        """
        if self._writer is not None:
            held, self._writer = self._writer, None
            held.close()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Checks the way of saving."""
        if kwargs.get("use_collectives") is False:
            raise CheckpointError("use_collectives=False; the ranks save one checkpoint together")
        if is_coordinator and threading.current_thread() is not threading.main_thread():
            _warn_of_shared_group()

    @postpone_interrupt()
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes and publishes the checkpoint. Collective; raises CheckpointError on all ranks."""
        ranks = self._ranks()
        with tell_errors(ranks):
            return self._write_together(ranks, plan, planner)

    def _write_together(
        self, ranks: Ranks, plan: SavePlan, planner: SavePlanner
    ) -> Future[list[WriteResult]]:
        directory, step = self._place()
        collected = Collected()
        made: list[bytes] = []

        def decide(everyones: list[Facts]) -> tuple[int, dict[str, tuple[Shape, str]]]:
            made.append(json.dumps(tree_of(everyones)).encode())
            arrays: dict[str, tuple[Shape, str]] = {TREE: ((len(made[0]),), "uint8")}
            for facts in everyones:
                arrays.update(facts.arrays)
            return self._choose_step(directory, step), arrays

        step, known = ranks.together("dcp.save", lambda: collected.collect(plan, planner), decide)
        collected.parts[TREE] = [(np.frombuffer(one, np.uint8), (0,)) for one in made]
        arrays = {
            name: blocks(collected.parts.get(name, []), shape, attrs=attrs_of(kind))
            for name, (shape, kind) in known.items()
        }
        self._save(ranks, directory, step, arrays)
        done: Future[list[WriteResult]] = Future()
        done.set_result(
            [
                WriteResult(item.index, collected.sizes.get(item.index.fqn, 0), None)
                for item in plan.items
            ]
        )
        return done

    def _choose_step(self, directory: Path | str, step: int | None) -> int:
        """The step of the new checkpoint, on rank 0."""
        if step is None:
            step = max(self._last + 1, open_store(directory).next_step())
        self._last = step
        return step

    def _save(
        self, ranks: Ranks, directory: Path | str, step: int, arrays: Mapping[str, Saved]
    ) -> None:
        if self._writer is not None and self._directory != directory:
            self.close()
        if self._writer is None:
            self._writer = writer.Writer(ranks, directory, **self._options)
            self._directory = directory
        try:
            self._writer.save(step, arrays, self._attrs)
        except BaseException:
            held, self._writer = self._writer, None
            held.__exit__(CheckpointError, None, None)
            raise
        if not self._stays_open:
            self.close()

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Does nothing: :meth:`write_data` has published the checkpoint, with its metadata."""


def _warn_of_shared_group() -> None:
    """Warns if DCP saves in a thread by the default group, and this group is of gloo, which ends a
    program whose threads communicate by one group at the same time."""
    dcp = _find_communication()
    if dcp is None or not dcp.use_dist or dcp.group not in (None, distributed.group.WORLD):
        return
    if distributed.get_world_size() > 1 and distributed.get_backend() == "gloo":
        warnings.warn(
            "dcp.async_save communicates in a thread by the default process group: if the program"
            " communicates meanwhile, gloo ends it; expected process_group="
            "torch.distributed.new_group(backend='gloo') of async_save and of Writer",
            RuntimeWarning,
            stacklevel=2,
        )


def _find_communication() -> Any:
    """DCP's object for its collective calls, which it does not pass on: among the callers. None if
    it is not there."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if type(found := frame.f_locals.get("self")).__name__ == "_DistWrapper":
            return found
        frame = frame.f_back
    return None
