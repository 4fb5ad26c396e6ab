"""Files, records, file systems, layouts and hints of a job from its process logs."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario import _native
from pario.see.tables.layouts import parse_layout
from pario.see.tables.model import (
    COUNTERS,
    FILESYSTEM,
    LAYERS,
    RECORD_COLUMNS,
    FileView,
    Hint,
    Job,
    Layout,
)
from pario.see.tables.own.view import View
from pario.see.tables.rows import Names, new_files, new_records

_STREAM_KINDS = (stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK)
#: The counters whose sum is 0 in a record without calls.
_CALLS = (*(calls for _, calls, _ in _native.op_table()), "failed")


def add_files(job: Job, views: Sequence[View]) -> list[NDArray[np.int32]]:
    """Fill files, records, filesystems, layouts and hints; return the file of each record of each
    process (-1: none)."""
    filesystems = _Filesystems(views)
    paths = [_paths(view) for view in views]
    ambiguous = _ambiguous_paths(views, paths, filesystems)
    names = Names()
    of_record = [
        _number(view, view_paths, ambiguous, filesystems, names, job)
        for view, view_paths in zip(views, paths, strict=True)
    ]
    job.paths = names.list
    job.files = new_files(len(names.list))
    job.files["path"] = np.arange(len(names.list))
    for view, files in zip(views, of_record, strict=True):
        _describe(job, view, files, filesystems)
    job.records = np.concatenate(
        [_records(view, files) for view, files in zip(views, of_record, strict=True)]
    )
    job.filesystems = filesystems.table()
    _add_layouts(job, views, of_record)
    _add_hints(job, views, of_record)
    _add_views(job, views, of_record)
    return of_record


def _paths(view: View) -> list[str | None]:
    """Return the path of each record; None for a missing record, and for a folded record without
    calls."""
    records = view.log.records
    counted = [name for name in _CALLS if name in view.log.schema.units]
    calls = sum((records[name] for name in counted), np.zeros(len(records), "u8"))
    unused = (records["folded"] != 0) & (calls == 0)
    return [
        None if skip else view.log.string(address)
        for address, skip in zip(records["path"].tolist(), unused.tolist(), strict=True)
    ]


class _Filesystems:
    """The file systems of all processes; equal ones share a row."""

    def __init__(self, views: Sequence[View]) -> None:
        self._rows: list[tuple[str, str, int, bool, int]] = []
        self._numbers: dict[tuple[str, str, int, bool, int], int] = {}
        self._of_note: dict[tuple[int, int], int] = {}
        several = len({view.machine for view in views}) > 1
        for view in views:
            for note in view.log.notes_of("filesystem"):
                network = bool(note.get("network"))
                host = view.host if several and not network else -1
                key = (
                    str(note.get("type", "")),
                    str(note.get("mount", "")),
                    integer(note.get("block")),
                    network,
                    host,
                )
                if key not in self._numbers:
                    self._numbers[key] = len(self._rows)
                    self._rows.append(key)
                self._of_note[view.row, integer(note.get("id"))] = self._numbers[key]

    def of(self, view: View, note: int) -> int:
        return self._of_note.get((view.row, note), -1)

    def is_local(self, view: View, note: int) -> bool:
        """Tell whether the file system is known and not shared between hosts."""
        row = self.of(view, note)
        return row >= 0 and not self._rows[row][3]

    def table(self) -> NDArray[Any]:
        return np.array(self._rows, FILESYSTEM)


def integer(value: Any) -> int:
    """Return a number of a note; 0 for any other value."""
    return value if isinstance(value, int) and abs(value) < 2**62 else 0


def _is_stream(kind: int) -> bool:
    return stat.S_IFMT(kind) in _STREAM_KINDS


def _local_paths(
    view: View, paths: Sequence[str | None], filesystems: _Filesystems
) -> Iterator[str]:
    for record, path in zip(view.log.records, paths, strict=True):
        if (
            path is not None
            and not _is_stream(int(record["kind"]))
            and filesystems.is_local(view, int(record["filesystem"]))
        ):
            yield path


def _ambiguous_paths(
    views: Sequence[View], paths: Sequence[Sequence[str | None]], filesystems: _Filesystems
) -> set[str]:
    """Return the paths that several machines have on file systems of their own, and that are
    different files."""
    if len({view.machine for view in views}) == 1:
        return set()
    machines: dict[str, set[str]] = defaultdict(set)
    for view, view_paths in zip(views, paths, strict=True):
        for path in _local_paths(view, view_paths, filesystems):
            machines[path].add(view.machine)
    return {path for path, where in machines.items() if len(where) > 1}


def _number(
    view: View,
    paths: Sequence[str | None],
    ambiguous: set[str],
    filesystems: _Filesystems,
    names: Names,
    job: Job,
) -> NDArray[np.int32]:
    local = set(_local_paths(view, paths, filesystems)) & ambiguous if ambiguous else set()
    host = job.hosts[view.host]
    numbers = (
        -1 if path is None else names.number(f"{host}:{path}" if path in local else path)
        for path in paths
    )
    return np.fromiter(numbers, np.int32, len(paths))


def _describe(job: Job, view: View, files: NDArray[np.int32], filesystems: _Filesystems) -> None:
    known = files >= 0
    records, rows = view.log.records[known], files[known]
    job.files["folded"][rows] = records["folded"] != 0
    kinds = records["kind"].astype(np.int64) & stat.S_IFMT(0xFFFF)
    job.files["stream"][rows] |= np.isin(kinds, _STREAM_KINDS)
    notes = records["filesystem"]
    numbers = {int(note): filesystems.of(view, int(note)) for note in np.unique(notes)}
    found = np.array([numbers[int(note)] for note in notes], np.int32)
    job.files["filesystem"][rows[found >= 0]] = found[found >= 0]


def _records(view: View, files: NDArray[np.int32]) -> NDArray[Any]:
    """Return the records of one process as rows of the table model."""
    known = files >= 0
    source = view.log.records[known]
    units = view.log.schema.units
    rows = new_records(len(source))
    rows["process"] = view.row
    rows["file"] = files[known]
    rows["layer"] = _layer_numbers(view)[np.minimum(source["layer"], len(view.log.schema.layers))]
    for name in units.keys() & RECORD_COLUMNS.keys():
        rows[name] = _convert(view, source[name], name)
    for counter in COUNTERS:
        if counter.use == "size":
            direction, _, size_class = counter.name.split("_")
            counts = view.counts(source[counter.name], counter.name)
            rows[f"{direction}_sizes"][:, int(size_class)] = counts
    return rows


def _layer_numbers(view: View) -> NDArray[np.uint8]:
    """Return the numbers of the log's layers in LAYERS; one more for unknown layers."""
    return np.array(
        [LAYERS.index(name) if name in LAYERS else 255 for name in view.log.schema.layers] + [255],
        np.uint8,
    )


def _convert(view: View, values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of records in the units of the table model."""
    match view.log.schema.units[name]:
        case "ticks":
            return view.time.durations(values)
        case "time":
            return view.time.moments(values)
        case "count" | "bytes":
            return view.counts(values, name)
    return values


def file_of(files: NDArray[np.int32], note: dict[str, Any]) -> int:
    """Return the file of the record that a note names, -1: none. ``files`` has the file of each
    record of the process."""
    record = note.get("record")
    return int(files[record]) if isinstance(record, int) and 0 <= record < len(files) else -1


def notes_on_files(
    views: Sequence[View], of_record: Sequence[NDArray[np.int32]], kind: str
) -> Iterator[tuple[View, int, dict[str, Any]]]:
    """Yield the notes of one kind of all processes, each with its process and its file (-1:
    none)."""
    for view, files in zip(views, of_record, strict=True):
        for note in view.log.notes_of(kind):
            yield view, file_of(files, note), note


def _add_layouts(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    numbers: dict[Layout, int] = {}
    for _, file, note in notes_on_files(views, of_record, "layout"):
        if file < 0:
            continue
        try:
            layout = parse_layout(str(note.get("kind")), bytes.fromhex(str(note.get("value"))))
        except ValueError as error:
            job.messages.append(f"{job.path(file)}: layout not understood: {error}")
            continue
        job.files["layout"][file] = numbers.setdefault(layout, len(numbers))
    job.layouts = list(numbers)


def _add_hints(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    for view, file, note in notes_on_files(views, of_record, "hint"):
        when, hints = note.get("when"), note.get("hints")
        if file >= 0 and (when == "requested" or when == "effective") and isinstance(hints, dict):
            job.hints += [
                Hint(file, view.row, str(key), str(value), when) for key, value in hints.items()
            ]


def _add_views(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    for view, file, note in notes_on_files(views, of_record, "view"):
        if file >= 0:
            displacement = integer(note.get("displacement"))
            job.views.append(FileView(view.row, file, displacement, str(note.get("layout", ""))))
