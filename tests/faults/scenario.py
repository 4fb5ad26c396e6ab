"""A scenario of the fault and crash campaigns: an operation that promises all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pario.errors import ParioError

#: Texts, one for each broken promise.
Problems = Iterator[str]


@dataclass(frozen=True)
class Scenario:
    """One operation with its initial state and its promise.

    `check(root, done)` yields the problems of the files; `done`: the work reported success.
    `left`: the names that may exist after the next run; a name with a slash at its end permits
    everything beneath it.
    """

    name: str
    prepare: Callable[[Path], None]
    work: Callable[[Path], int | None]
    check: Callable[[Path, bool], Problems]
    left: frozenset[str]
    #: The directory beneath `root` in which calls fail; empty: all of `root`.
    faulted: str = ""
    #: Whether the result is on the disk when the work returns success.
    durable: bool = True
    #: Whether the operation promises anything for a crash of the node.
    survives_crashes: bool = True
    #: Runs before the work is repeated.
    clear: Callable[[Path], None] = lambda root: None

    def find_stale(self, root: Path) -> list[str]:
        """Lists the names that must not exist after the next run."""
        beneath = tuple(name for name in self.left if name.endswith("/"))
        return sorted(name for name in names_in(root) - self.left if not name.startswith(beneath))


def names_in(root: Path) -> set[str]:
    """Returns the paths of all files and links beneath a directory, relative to it."""
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def report_error(work: Callable[[], int | None]) -> int | None:
    """Turns an error of the API into a message and a status, as a command does."""
    try:
        return work()
    except (ParioError, OSError) as error:
        print(f"error: {error}")
        return 2


def require_success(status: int | None) -> None:
    """Fails unless a piece of work has succeeded."""
    assert not status, status
