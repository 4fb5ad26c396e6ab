"""Things that belong to the process that made them: a forked child has copies, with which it would undo its parent's work."""

from __future__ import annotations

import os

from pario.checkpoint.errors import CheckpointError


class Owner:
    """The process that made a thing. ``thing``: as it is named in errors."""

    def __init__(self, thing: str) -> None:
        self._process, self._thing = os.getpid(), thing

    @property
    def is_here(self) -> bool:
        """True in this process."""
        return os.getpid() == self._process

    def require(self) -> None:
        """Raises CheckpointError in a forked child."""
        if not self.is_here:
            here = f"process {os.getpid()} was forked from it, or from a child of it"
            raise CheckpointError(f"{self._thing} belongs to process {self._process}; {here}, and needs a Writer of its own")
