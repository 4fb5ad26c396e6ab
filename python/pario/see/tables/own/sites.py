"""Call sites of a job from its process logs: sums of calls by stack, function and file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario import wording
from pario.see.tables.model import EVENT_KINDS, LAYERS, SITE, Frame, Job
from pario.see.tables.own.blocks import Block
from pario.see.tables.own.schema import UNKNOWN
from pario.see.tables.own.view import View
from pario.see.tables.rows import Names, make_lookup
from pario.see.tables.scripts import script_of

_ROW = np.dtype(
    [
        ("stack", "<u4"),
        ("file", "<u4"),
        ("function", "<u4"),
        ("unused", "<u4"),
        ("calls", "<u8"),
        ("ticks", "<u8"),
        ("bytes", "<u8"),
    ]
)
_COMMUNICATION = 255
_POSIX, _MPIIO = LAYERS.index("posix"), LAYERS.index("mpiio")
_INTERPRETER = re.compile(r"(?:lib)?python[\d.]*[a-z]*(?:\.so[\d.]*)?")


@dataclass(frozen=True)
class _Module:
    path: str
    build_id: str


def add_sites(job: Job, views: Sequence[View], files: Sequence[NDArray[np.int32]]) -> None:
    """Fill sites and stacks. ``files`` maps the records of each process to the files of the job."""
    names, stacks = Names(), _Stacks(job)
    for name in job.function_names:
        names.number(name)
    tables = [
        _sites_of(view, block, names, stacks.numbers(view), its_files)
        for view, its_files in zip(views, files, strict=True)
        for block in view.log.sites
    ]
    job.function_names = names.list
    job.sites = _sum_alike(np.concatenate([np.zeros(0, SITE), *tables]))
    lost = count_without_stack(job)
    lost += sum(view.log.process.get("sites_lost", 0) for view in views)
    if lost:
        job.messages.append(
            f"{wording.count(lost)} calls have no line of the program (more call stacks than the"
            " limit, or a stack that cannot be read)"
        )


def count_without_stack(job: Job) -> int:
    """Return the calls without a stack, without those on files of MPI-IO below MPI-IO: a thread of
    pario's makes them, or of the MPI library, in no function of the program."""

    def number(rows: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(rows["process"] * np.int64(len(job.files) + 1) + rows["file"])

    sites = job.sites[job.sites["stack"] < 0]
    of_mpiio = number(job.records[job.records["layer"] == _MPIIO])
    inner = (sites["layer"] == _POSIX) & np.isin(number(sites), of_mpiio)
    return int(sites["calls"][~inner].sum())


class _Stacks:
    """The stacks of all processes; equal ones share a number."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._known: dict[tuple[Frame, ...], int] = {}

    def numbers(self, view: View) -> NDArray[np.int32]:
        """Return the number in the job for each number of a process; -1 as last element."""
        modules, script = _modules_of(view), _script_of(view)
        of_number: dict[int, int] = {}
        for note in view.log.notes_of("stack"):
            try:
                frames = (*_frames(note, modules), *script)
                of_number[int(note["number"])] = self._number(frames)
            except (KeyError, TypeError, ValueError):
                view.log.remarks.damages.append("a stack note is damaged")
        return make_lookup(of_number)

    def _number(self, frames: tuple[Frame, ...]) -> int:
        if frames not in self._known:
            self._known[frames] = len(self._job.stacks)
            self._job.stacks.append(frames)
        return self._known[frames]


def _modules_of(view: View) -> dict[int, _Module]:
    found = {}
    for note in view.log.notes_of("module"):
        try:
            found[int(note["number"])] = _Module(str(note["path"]), str(note["build_id"]))
        except (KeyError, TypeError, ValueError):
            view.log.remarks.damages.append("a module note is damaged")
    return found


def _script_of(view: View) -> tuple[Frame, ...]:
    """Return the outermost frame of a process that runs a script of Perl or similar, whose lines
    are not known."""
    words = view.log.process_note.get("argv")
    script = script_of([str(word) for word in words]) if isinstance(words, list) else ""
    return (Frame(file=script),) if script else ()


def _frames(note: dict[str, Any], modules: dict[int, _Module]) -> tuple[Frame, ...]:
    """Return the frames of a stack: the native ones, then those of Python, of which the
    interpreter's own native frames are a part."""
    native = [_native_frame(str(text), modules) for text in note["frames"]]
    python = [
        Frame(function=str(function), file=str(file), line=int(line))
        for file, function, line in note.get("python", ())
    ]
    if python:
        native = [frame for frame in native if not _is_interpreter(frame.module)]
    return (*native, *python)


def _native_frame(text: str, modules: dict[int, _Module]) -> Frame:
    """Return the frame of ``module:address``; the address is that of the call, not of the
    return."""
    number, _, address = text.partition(":")
    module = modules.get(int(number), _Module("", ""))
    return Frame(module.path, max(int(address, 16) - 1, 0), module.build_id)


def _is_interpreter(module: str) -> bool:
    return _INTERPRETER.fullmatch(module.rpartition("/")[2]) is not None


def _sites_of(
    view: View, block: Block, names: Names, stacks: NDArray[np.int32], files: NDArray[np.int32]
) -> NDArray[Any]:
    count = min(block.count, block.available // _ROW.itemsize)
    rows = np.frombuffer(view.log.data, _ROW, count, block.at)
    rows = rows[rows["calls"] > 0]
    known = [*view.log.schema.functions, UNKNOWN]
    functions = np.minimum(rows["function"], len(known) - 1)
    table = np.zeros(len(rows), SITE)
    table["process"] = view.row
    table["stack"] = _look_up(stacks, rows["stack"])
    table["file"] = _look_up(np.append(files, np.int32(-1)), rows["file"])
    for number in np.unique(functions).tolist():
        function, its = known[number], functions == number
        is_io = function.category in LAYERS
        table["name"][its] = names.number(function.name)
        table["layer"][its] = LAYERS.index(function.category) if is_io else _COMMUNICATION
        op = function.op if is_io else "communicate"
        table["kind"][its] = EVENT_KINDS.index(op if op in EVENT_KINDS else "other")
    for name in ("calls", "bytes"):
        table[name] = view.counts(rows[name], f"{name} of call sites")
    table["seconds"] = view.time.durations(rows["ticks"])
    return table


def _look_up(table: NDArray[np.int32], numbers: NDArray[Any]) -> NDArray[np.int32]:
    """Return the elements of a table; its last one for numbers beyond it."""
    return np.asarray(table[np.minimum(numbers, len(table) - 1).astype(np.int64)])


def _sum_alike(table: NDArray[Any]) -> NDArray[Any]:
    """Return the table with one row for the rows of several threads with the same key."""
    keys = ["process", "stack", "name", "kind", "layer", "file"]
    if not len(table):
        return table
    _, first, place = np.unique(table[keys], return_index=True, return_inverse=True)
    summed = table[first].copy()
    for name in ("calls", "seconds", "bytes"):
        summed[name] = 0
        np.add.at(summed[name], place.ravel(), table[name])
    return summed
