"""Values that are made once for a communicator of mpi4py, and freed with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Made = TypeVar("_Made")


class Attached(Generic[_Made]):
    """Keeps a value as an attribute of each communicator. ``make`` may be collective."""

    def __init__(
        self, make: Callable[[Any], _Made], free: Callable[[_Made], None] = lambda made: None
    ) -> None:
        self._make, self._free = make, free
        self._key: int | None = None

    def of(self, comm: Any) -> _Made:
        """The value of a communicator. Collective the first time."""
        from mpi4py import MPI

        if self._key is None:
            self._key = MPI.Comm.Create_keyval(delete_fn=lambda comm, key, made: self._free(made))
        made: _Made | None = comm.Get_attr(self._key)
        if made is None:
            made = self._make(comm)
            comm.Set_attr(self._key, made)
        return made
