"""What each process of a replay does: plain arrays, kept in a directory from which the processes
read them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: One operation; the same as replay::Operation (src/instruments/replay/replay.hpp), where verbs.def
#: says what a verb uses.
OPERATION = np.dtype(
    [
        ("offset", "i8"),
        ("length", "i8"),
        ("pause", "u8"),  # nanoseconds before it
        ("path", "u4"),
        ("slot", "u4"),
        ("other", "u4"),
        ("verb", "u2"),
        ("may_fail", "u2"),  # 1: it failed when it was recorded
    ]
)

#: Verbs from here on are done in Python (pario.prove.replay.collective, pario.prove.replay.player);
#: below, src/instruments/replay does them.
NOT_NATIVE = 1000
#: wait: until the processes in list number `path` have ended. end: this process has ended; `other`
#: is its row. barrier: of the ranks of group number `path`. mpi: the call named number `other`, on
#: slot `slot`.
WAIT, END, BARRIER, MPI = range(NOT_NATIVE, NOT_NATIVE + 4)


@dataclass(frozen=True)
class FileMade:
    """A file that is there before the replay begins."""

    path: int  # index into Script.paths
    size: int


@dataclass(frozen=True)
class View:
    """A view of a file: from `displacement` on it is tiled with a layout in the notation of
    src/core/pattern."""

    displacement: int
    layout: str


@dataclass
class Script:
    """A replay. Paths are those of the run; below the scratch directory they are the same."""

    seats: list[NDArray[Any]]  # the operations of each process of the replay
    paths: list[str]
    files: list[FileMade]
    ranks: int  # 0: no MPI is needed
    groups: list[tuple[int, ...]] = field(default_factory=list)  # ranks that do something together
    waits: list[list[int]] = field(default_factory=list)
    directories: list[int] = field(default_factory=list)  # paths
    names: list[str] = field(default_factory=list)  # of MPI-IO calls
    views: list[View] = field(default_factory=list)
    slots: int = 0
    mpiio: str = ""  # how MPI-IO calls are played, in words; empty: there are none
    left_out: dict[str, int] = field(default_factory=dict)  # calls that are not played, by function

    @property
    def calls(self) -> int:
        """Operations of all processes."""
        return sum(len(seat) for seat in self.seats)


def save(script: Script, directory: Path, root: Path, log: Path) -> None:
    """Writes what the processes need into a directory; ``root`` is what their paths lie below,
    ``log`` where logs go."""
    for seat, operations in enumerate(script.seats):
        np.save(directory / f"{seat}.npy", operations)
    about = {
        "paths": [str(below(root, path)) for path in script.paths],
        "slots": script.slots,
        "seats": len(script.seats),
        "ranks": script.ranks,
        "groups": script.groups,
        "waits": script.waits,
        "names": script.names,
        "views": [asdict(view) for view in script.views],
        "shared": [str(root), str(log.absolute())],
    }
    (directory / "script.json").write_text(json.dumps(about))


def load(directory: Path, seat: int) -> tuple[Mapping[str, Any], NDArray[Any]]:
    """What :func:`save` wrote, for one process."""
    about: dict[str, Any] = json.loads((directory / "script.json").read_text())
    return about, np.load(directory / f"{seat}.npy", mmap_mode="r")


def below(root: Path, path: str) -> Path:
    """Where a file of the run lies in a replay: never outside of ``root``, whatever its name."""
    return root / os.path.normpath(f"/{path}").lstrip("/")


def counted(calls: Iterable[str]) -> dict[str, int]:
    """How often each is there, the most frequent first."""
    names, counts = np.unique(np.array(list(calls), object).astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(names[i]): int(counts[i]) for i in order}
