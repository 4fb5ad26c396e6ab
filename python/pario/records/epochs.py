"""Batches of epoch after epoch, with the state of any place: the base of all loaders."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pario.errors import ParioError
from pario.launchers import TORCHRUN, launch_of
from pario.records.passes import Passes, Place
from pario.records.state import check_whole, read_state, write_state
from pario.records.stats import LoaderStats

if TYPE_CHECKING:
    from pario.records.adapters import Batches


class Epochs(ABC):
    """The batches of one rank; each iteration is an epoch, or the rest of one."""

    #: Records of an epoch, of all ranks.
    count: int
    stats: LoaderStats

    def __init__(self, place: Place) -> None:
        self.go_to(place)
        self._iterations = 0
        #: Of DataLoaders over torch(); None before its first call.
        self._passes: Passes | None = None

    @abstractmethod
    def __len__(self) -> int:
        """Batches of this rank in a whole epoch; TypeError if it is not known."""

    @abstractmethod
    def part(self, stride: int, offset: int) -> Iterator[Any]:
        """The share of one of ``stride`` workers: every ``stride``-th batch from ``offset`` on,
        counted from the current position.
        """

    @abstractmethod
    def place_after(self, place: Place, batches: int) -> Place:
        """The place after this rank's first ``batches`` batches that follow ``place``."""

    @abstractmethod
    def division(self) -> tuple[int, int, int, str]:
        """The division of an epoch: batch size, ranks, this rank, treatment of the remainder."""

    @abstractmethod
    def whole_order(self) -> list[Any]:
        """Names and numbers that determine the order, beside seed and epoch."""

    @abstractmethod
    def normalize(self, place: Place) -> Place:
        """The place; after the last batch of an epoch the beginning of the next one."""

    def __iter__(self) -> Iterator[Any]:
        self.go_to(self._next_place())
        self._iterations += 1
        mine = self._iterations
        for batch in self.part(1, 0):
            yield batch
            if self._iterations != mine:
                raise ParioError(
                    "an iteration over a Loader ends when another one begins, or a state is loaded:"
                    " expected one at a time"
                )
        self.go_to(Place(self.seed, self.epoch + 1, 0))

    def go_to(self, place: Place) -> None:
        """Sets seed, epoch and position, from which the next iteration reads."""
        self.seed, self.epoch, self.position, self.skip = place

    @property
    def place(self) -> Place:
        """The place behind the last batch returned."""
        return Place(self.seed, self.epoch, self.position, self.skip)

    def _next_place(self) -> Place:
        return self.normalize(self.place)

    def forever(self) -> Iterator[Any]:
        """Yields the batches of epoch after epoch, for Keras and
        ``tf.data.Dataset.from_generator(loader.forever, ...)``. Ends if an epoch has no batch for
        this rank.
        """
        while True:
            begin, batches = self._next_place().position, 0
            for batch in self:
                batches += 1
                yield batch
            if begin + batches == 0:
                return

    def torch(self) -> Batches:
        """The batches for ``DataLoader(loader.torch(), batch_size=None, num_workers=N)``.

        Each pass is the next epoch; worker processes share the batches and keep their order. Needs
        PyTorch.
        """
        from pario.records.adapters import Batches

        if self._passes is None:
            self._passes = Passes(self._next_place())
        return Batches(self, self._passes)

    def state_dict(self) -> dict[str, Any]:
        """The state after the last batch returned.

        Returns
        -------
        dict
            A few numbers and texts, fit for JSON; equal on all ranks after equally many batches.

        Raises
        ------
        ParioError
            Worker processes of a DataLoader read the batches, and have read ahead.
        """
        if self._passes and self._passes.read_by_workers():
            raise ParioError(
                "state of a Loader: worker processes of a DataLoader have read ahead: expected"
                " loader.torch().state_after(batches) or a StatefulDataLoader"
            )
        return self.state_of(self._next_place())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration, or pass of a DataLoader, begin at a state.

        Parameters
        ----------
        state : dict
            From ``state_dict()``; the number of ranks and the batch size may differ.

        Raises
        ------
        ParioError
            The state is damaged, or belongs to other records or another order. Nothing changes.
        """
        self._begin_at(self.place_of(state))

    def set_epoch(self, epoch: int) -> None:
        """Lets the next iteration, or pass of a DataLoader, be an epoch from its beginning.

        Does nothing if it is this epoch already, or the rest of it after ``load_state_dict``. So a
        loop may call it before each epoch, as that of PyTorch's DistributedSampler.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0 on.

        Raises
        ------
        ParioError
            It is no such number.
        """
        check_whole("Loader: epoch", epoch, 0, 2**32 - 1)
        places = [self._next_place(), *([self._passes.next_place()] if self._passes else [])]
        if any(place.epoch != epoch for place in places):
            self._begin_at(Place(self.seed, epoch, 0))

    def _begin_at(self, place: Place) -> None:
        """Lets the next iteration, or pass of a DataLoader, begin at a place."""
        self.go_to(place)
        self._iterations += 1
        if self._passes:
            self._passes.set_next(self._next_place())

    def state_of(self, place: Place) -> dict[str, Any]:
        """The state of a Loader at a place."""
        return write_state(place, self.count, self.whole_order())

    def place_of(self, state: dict[str, Any]) -> Place:
        """The place of a state; raises ParioError as ``load_state_dict``."""
        return read_state(state, self.count, self.whole_order())


def find_rank(rank: int | None, world: int | None) -> tuple[int, int]:
    """The number of this rank, and of all ranks: the arguments, else those of torch.distributed or
    jax.distributed if one is initialized, or of torchrun if it will be, else one rank."""
    if rank is None and world is None:
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank()), int(distributed.get_world_size())
        jax = sys.modules.get("jax")
        if jax and jax.distributed.is_initialized():
            return int(jax.process_index()), int(jax.process_count())
        launch = launch_of(os.environ)
        if launch.launcher == TORCHRUN:
            return launch.seat.rank, launch.seat.size
        if launch.seat.size > 1:
            warnings.warn(
                f"Loader: {launch.launcher} started {launch.seat.size} processes, each of which"
                " reads all batches: expected rank and world (0 and 1 if that is wanted)",
                RuntimeWarning,
                stacklevel=3,
            )
        return 0, 1
    world = check_whole("Loader: world", 1 if world is None else world, 1)
    if rank is None and world > 1:
        raise ParioError(f"Loader: world={world} without rank: expected the number of this rank")
    return check_whole("Loader: rank", rank or 0, 0, world - 1), world
