"""The place of PyTorch's distributed checkpoints, and the ranks that save or load them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import distributed

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.torch_ranks import TorchRanks
from pario.paths import is_url
from pario.ranks import OneRank, Ranks

#: Names such as step-10, step_10, epoch=1-step=10.ckpt: the checkpoint of a step in the directory.
_STEP = re.compile(r"(?:.*[^a-z])?step[-_=]?(\d+)(?:\.\w+)?")
_Plan = TypeVar("_Plan")


def place_of(path: str | os.PathLike[str]) -> tuple[Path | str, int | None]:
    """The directory and the step of a checkpoint by its path or URL; a directory alone has no
    step."""
    if is_url(path):
        url = os.fspath(path).rstrip("/")
        base, _, name = url.rpartition("/")
        match = _STEP.fullmatch(name)
        return (base, int(match[1])) if match else (url, None)
    place = Path(path)
    match = _STEP.fullmatch(place.name)
    return (place.parent, int(match[1])) if match else (place, None)


@contextmanager
def tell_errors(ranks: Ranks) -> Iterator[None]:
    """Lets a rank with an error leave, so that no other one waits for it: PyTorch keeps the error
    until all ranks have come so far."""
    try:
        yield
    except BaseException as error:
        ranks.leave(error)
        raise


class Storage(Generic[_Plan]):
    """The place of checkpoints, and the ranks that save or load them."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        step: int | None,
        process_group: Any,
        no_dist: bool,
        patience: float,
    ) -> None:
        self._path, self._step, self._id = path, step, path
        self._group, self._no_dist, self._patience = process_group, no_dist, patience

    @property
    def checkpoint_id(self) -> str | os.PathLike[str] | None:
        """The path of the checkpoint, for the log messages of PyTorch."""
        return self._id

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Begins a save or a load; ``checkpoint_id`` replaces the path."""
        self._id = checkpoint_id or self._path
        if self._id is None:
            raise CheckpointError("no path is given; expected a directory of checkpoints")

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """True for local paths."""
        return "://" not in os.fspath(checkpoint_id)

    def prepare_local_plan(self, plan: _Plan) -> _Plan:
        """Returns the plan: the places in the file are planned when the data are moved."""
        return plan

    def prepare_global_plan(self, plans: list[_Plan]) -> list[_Plan]:
        """Returns the plans."""
        return plans

    def _place(self) -> tuple[Path | str, int | None]:
        directory, step = place_of(self._id or "")
        return directory, self._step if step is None else step

    def _ranks(self) -> Ranks:
        """The ranks of the process group; this process alone where there is none. Collective."""
        if self._no_dist or not (distributed.is_available() and distributed.is_initialized()):
            return OneRank()
        group = self._group or distributed.group.WORLD
        if distributed.get_world_size(group) == 1:
            return OneRank()
        # dcp.async_save saves in a thread, beside other collective calls of the program
        return TorchRanks(group, self._patience, purpose=f"/{type(self).__name__}")
