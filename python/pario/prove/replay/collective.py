"""Makes operations of the MPI-IO calls of a run, if the log holds all of them; else their POSIX
calls are played."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay import script as rows_of
from pario.prove.replay.script import OPERATION, Script, View
from pario.see.tables.model import EVENT_KINDS, IN_VIEW, LAYERS, Job

MPIIO = LAYERS.index("mpiio")
#: The number of the group that holds only the calling rank.
ALONE = 0xFFFFFFFF
_COLLECTIVE = 8
_TRANSFERS = [EVENT_KINDS.index(kind) for kind in ("read", "write")]
_PLAYED = (
    "open",
    "close",
    "set_view",
    "set_size",
    "preallocate",
    "get_size",
    "sync",
    "seek",
    "delete",
)


def method_of(function: str) -> str:
    """The name of an MPI function in mpi4py; empty if it is not played. Split calls are played as
    one call at their begin."""
    if not function.startswith("MPI_File_"):
        return ""
    name = function.removeprefix("MPI_File_").removesuffix("_c")
    if name.startswith(("read", "write", "iread", "iwrite")):
        return "" if name.endswith("_end") else name.removesuffix("_begin").capitalize()
    return name.capitalize() if name in _PLAYED else ""


def why_not(job: Job, rows: NDArray[Any]) -> str:
    """The reason why the MPI-IO calls among ``rows`` cannot be played as such; empty if they
    can."""
    events = job.events[rows]
    names = np.array(job.function_names or [""])[events["function"]]
    moves = np.isin(events["kind"], _TRANSFERS)
    if job.format == "darshan":
        return "a Darshan log does not mark collective calls"
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    shared = (np.char.find(names, "_shared") >= 0) | (np.char.find(names, "_ordered") >= 0)
    if np.any(moves & (events["offset"] < 0) & ~shared):
        return "the log lacks the offsets of some calls"
    noted: dict[tuple[int, int], int] = defaultdict(int)
    for view in job.views:
        if view.layout == "" or view.displacement < 0:
            return "a view has no short description in the log"
        noted[view.process, view.file] += 1
    set_here = events[(names == "MPI_File_set_view") & ((events["flags"] & 1) == 0)]
    pairs, counts = np.unique(
        np.stack([set_here["process"], set_here["file"]]), axis=1, return_counts=True
    )
    if any(noted[int(p), int(f)] != count for (p, f), count in zip(pairs.T, counts, strict=True)):
        return "the log lacks some views"
    if _open_twice(events):
        return "a process has a file open several times"
    return ""


def number_files(events: NDArray[Any]) -> NDArray[Any]:
    """A number of the process and the file of each event."""
    return np.asarray(events["process"].astype(np.int64) << 32 | events["file"])


def _open_twice(events: NDArray[Any]) -> bool:
    key = number_files(events)
    order = np.argsort(key, kind="stable")
    kind = events["kind"][order]
    done = (events["flags"][order] & 1) == 0
    change = (done & (kind == EVENT_KINDS.index("open"))).astype(int) - (
        done & (kind == EVENT_KINDS.index("close"))
    )
    level = np.cumsum(change)
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    level -= np.repeat(np.append(0, level)[first], np.diff(np.append(first, len(order))))
    return bool(np.any(level > 1))


def operations(
    job: Job, rows: NDArray[Any], lanes: NDArray[Any], script: Script
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Make operations of MPI-IO events, and add their names, views, slots and groups to the script;
    also returns the mask of the played ones."""
    events = job.events[rows]
    made = np.zeros(len(rows), OPERATION)
    methods = [method_of(name) for name in job.function_names]
    script.names = sorted({*methods} - {""})
    numbers = np.array([script.names.index(name) if name else -1 for name in methods])
    method = numbers[events["function"]]
    made["verb"], made["may_fail"] = rows_of.MPI, events["flags"] & 1
    made["other"], made["offset"], made["length"] = (
        np.maximum(method, 0),
        events["offset"],
        events["length"],
    )
    files, slot = np.unique(number_files(events), return_inverse=True)
    made["slot"] = slot + script.slots
    script.slots += len(files)
    _groups(events, lanes, made, script)
    for group in range(len(files)):
        _Views(job, script, made, events).follow(np.flatnonzero(slot == group))
    return made, np.asarray(method >= 0)


def _groups(events: NDArray[Any], lanes: NDArray[Any], made: NDArray[Any], script: Script) -> None:
    """Set ``length`` of each open to the number of the group of ranks that open together."""
    opens = np.flatnonzero(events["kind"] == EVENT_KINDS.index("open"))
    made["length"][opens] = ALONE
    together = opens[(events["flags"][opens] & _COLLECTIVE) != 0]
    for file in np.unique(events["file"][together]):
        of_file = together[events["file"][together] == file]
        made["length"][of_file] = group_number(
            script, tuple(sorted({int(lane) for lane in lanes[of_file]}))
        )


def group_number(script: Script, ranks: tuple[int, ...]) -> int:
    """The number of a group of ranks; a new group is added to the script."""
    if ranks not in script.groups:
        script.groups.append(ranks)
    return script.groups.index(ranks)


class _Views:
    """The calls of one process on one file; converts their offsets to those in its views."""

    def __init__(self, job: Job, script: Script, made: NDArray[Any], events: NDArray[Any]) -> None:
        self._job, self._script, self._made, self._events = job, script, made, events

    def follow(self, members: NDArray[Any]) -> None:
        names = np.array(self._job.function_names)[self._events["function"][members]]
        process, file = (
            int(self._events["process"][members[0]]),
            int(self._events["file"][members[0]]),
        )
        noted = iter(
            [view for view in self._job.views if (view.process, view.file) == (process, file)]
        )
        displacement = 0
        for call, name in zip(members.tolist(), names.tolist(), strict=True):
            if self._events["flags"][call] & 1:
                continue
            if name == "MPI_File_open":
                displacement = 0
            elif name == "MPI_File_set_view":
                view = next(noted)
                displacement = view.displacement
                self._made["offset"][call] = self._number(View(view.displacement, view.layout))
            elif (
                not self._events["flags"][call] & IN_VIEW
                and self._events["kind"][call] in _TRANSFERS
            ):
                self._made["offset"][call] -= displacement
        self._targets(members, names)

    def _targets(self, members: NDArray[Any], names: NDArray[Any]) -> None:
        """Set the target of each seek: the begin of the next call that uses the individual file
        pointer."""
        own = (np.char.find(names, "_at") < 0) & (self._events["offset"][members] >= 0)
        pointer = np.isin(self._events["kind"][members], _TRANSFERS) & own
        uses = members[pointer]
        seeks = members[names == "MPI_File_seek"]
        offsets = np.append(self._made["offset"][uses], 0)
        self._made["offset"][seeks] = offsets[np.searchsorted(uses, seeks, "right")]

    def _number(self, view: View) -> int:
        if view not in self._script.views:
            self._script.views.append(view)
        return self._script.views.index(view)
