"""The script of a replay: the operations of each process as plain arrays, in a directory from which
the processes read them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: One operation; the same as replay::Operation (src/instruments/replay/replay.hpp). verbs.def lists
#: the fields that each verb uses.
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

#: The first verb that Python plays (pario.prove.replay.player, pario.prove.replay.ranks);
#: src/instruments/replay plays those below.
NOT_NATIVE = 1000
#: wait: until the processes in list number `path` have ended. end: the process of row `other` has
#: ended. barrier: of the ranks of group number `path`. mpi: the call with name number `other`, on
#: slot `slot`.
WAIT, END, BARRIER, MPI = range(NOT_NATIVE, NOT_NATIVE + 4)
#: The verbs whose `path` is not the number of a path.
NOT_OF_FILES = (WAIT, END, BARRIER)


#: The ways in which MPI-IO calls are played; the reason follows the second one.
AS_MPIIO, AS_POSIX = "as MPI-IO calls", "as POSIX calls: "


@dataclass(frozen=True)
class FileMade:
    """A file that exists before the replay begins."""

    path: int  # index into Script.paths
    size: int
    #: Ranges [begin, end) with bytes, in order; the rest is a hole. None: the whole file.
    pieces: tuple[tuple[int, int], ...] | None = None

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges with bytes."""
        return ((0, self.size),) if self.pieces is None else self.pieces

    @property
    def stored(self) -> int:
        """The bytes that are not in a hole."""
        return sum(end - begin for begin, end in self.ranges)


@dataclass(frozen=True)
class View:
    """A view of a file: a layout in the notation of src/core/pattern, repeated from `displacement`
    on."""

    displacement: int
    layout: str


@dataclass
class Script:
    """A replay. Paths are those of the run; the scratch directory holds the same paths."""

    seats: list[NDArray[Any]]  # the operations of each process of the replay
    paths: list[str]
    files: list[FileMade]
    ranks: int  # 0: no MPI is needed
    groups: list[tuple[int, ...]] = field(default_factory=list)  # ranks with common calls
    waits: list[list[int]] = field(default_factory=list)
    directories: list[int] = field(default_factory=list)  # paths
    names: list[str] = field(default_factory=list)  # of MPI-IO calls
    views: list[View] = field(default_factory=list)
    slots: int = 0
    mpiio: str = ""  # the way in which MPI-IO calls are played, in words; empty: none
    left_out: dict[str, int] = field(default_factory=dict)  # calls that are not played, by function
    written: int = 0  # bytes that its calls take from the space of the file system, at most
    seconds: float = 0.0  # of its calls in the run, in the process that spent most in them
    whole_seconds: float = inf  # the same of all calls that a replay of the whole run makes
    share: float = 1.0  # of the run's operations that it holds; below 1: only the beginning

    @property
    def plays_mpiio(self) -> bool:
        """True if it plays MPI-IO calls as such, not as the POSIX calls beneath them."""
        return self.mpiio == AS_MPIIO

    @property
    def size(self) -> int:
        """The bytes of the files that exist before the replay."""
        return sum(made.stored for made in self.files)

    @property
    def calls(self) -> int:
        """The number of operations of all processes."""
        return sum(len(seat) for seat in self.seats)


def save(script: Script, directory: Path, root: Path, log: Path) -> None:
    """Write a script into a directory, for its processes. ``root``: the directory of their paths;
    ``log``: the directory of their logs."""
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
    """Read the script and the operations of one seat, which :func:`save` wrote."""
    about: dict[str, Any] = json.loads((directory / "script.json").read_text())
    return about, np.load(directory / f"{seat}.npy", mmap_mode="r")


def below(root: Path, path: str) -> Path:
    """The path of a file of the run in a replay; never outside of ``root``."""
    return root / os.path.normpath(f"/{path}").lstrip("/")


def count_calls(calls: Iterable[str]) -> dict[str, int]:
    """Count the occurrences of each name, the most frequent first."""
    names, counts = np.unique(np.array(list(calls), object).astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(names[i]): int(counts[i]) for i in order}
