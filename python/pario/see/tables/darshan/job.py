"""A job from its Darshan logs: usually one log; a program without MPI leaves one per process."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.filesystems import is_network
from pario.see.tables.darshan import communication, libraries
from pario.see.tables.darshan.counters import LIBRARY_LAYERS, MODULE_LAYERS, to_rows
from pario.see.tables.darshan.identity import require_one_run, user_of
from pario.see.tables.darshan.log import Heat, Log, Module, Segments, Stripes
from pario.see.tables.model import (
    EVENT,
    EVENT_KINDS,
    FILESYSTEM,
    FUNCTION,
    LAYERS,
    RECORD,
    ByteBins,
    Job,
    Layout,
    Unseen,
)
from pario.see.tables.rows import MOMENTS, Names, new_files, new_processes, sort_events

_DXT = {
    "DXT_POSIX": ("posix", "read", "write"),
    "DXT_MPIIO": ("mpiio", "MPI_File_read", "MPI_File_write"),
}
_DXT_VERSIONS = {"DXT_POSIX": (1,), "DXT_MPIIO": (1, 2)}  # versions with segments of four fields
_USED = {*MODULE_LAYERS, *LIBRARY_LAYERS, *_DXT, communication.APMPI, "LUSTRE", "HEATMAP"}
_WITHOUT_IO = {"BG/Q", "APXC", "APSS", "NULL"}  # modules that count no calls
#: Modules without which the verdict is the same.
_DETAILS = {*LIBRARY_LAYERS, *_DXT, communication.APMPI, "LUSTRE", "HEATMAP"}
_LIBRARIES = {"hdf5": "HDF5", "pnetcdf": "PnetCDF"}
_STREAMS = {"<STDIN>", "<STDOUT>", "<STDERR>"}
_ALL_NESTED = 0.9  # of the POSIX time: clocks of two layers differ
_INITIALISED = 0x10  # LCME_FL_INIT
#: Layers of the records of HEATMAP, by the ends of their names.
_HEAT_LAYERS = {"POSIX": "posix", "STDIO": "stdio", "MPIIO": "mpiio"}
_DAOS_NESTING = "DAOS calls on objects count as made by DFS (Darshan does not separate them)"
_MPIIO_NESTING = (
    "POSIX calls on files that MPI-IO opened count as made by MPI-IO (Darshan does not separate"
    " them)"
)


def collect(source: str, paths: Sequence[Path]) -> Job:
    """Return the job of Darshan logs. Raises ReadError for another file, for damage in a part on
    which all others depend, and for logs of different jobs."""
    with ExitStack() as stack:
        logs = [stack.enter_context(Log(path)) for path in paths]
        require_one_run(logs)
        return _Reader(Job(source=source, format="darshan"), logs).read()


@dataclass(frozen=True)
class _Traced:
    """Segments of one rank, file and direction, in Darshan's form: converting them only at the end
    halves the memory."""

    process: int
    file: int
    layer: int
    kind: int
    function: int
    later: float  # seconds from the start of the job to that of the log
    rows: NDArray[Any]

    def fill(self, events: NDArray[Any]) -> None:
        """Fill rows of EVENT with the segments."""
        for name in ("process", "file", "layer", "kind", "function"):
            events[name] = getattr(self, name)
        events["count"] = 1
        events["offset"], events["length"] = self.rows["offset"], self.rows["length"]
        events["start"], events["end"] = (
            self.rows["start"] + self.later,
            self.rows["end"] + self.later,
        )
        events["duration"] = self.rows["end"] - self.rows["start"]


class _Reader:
    """Fills a Job from open logs; process rows of a log begin at ``first[log]``."""

    def __init__(self, job: Job, logs: Sequence[Log]) -> None:
        self.job = job
        self.logs = logs
        self.paths = Names()
        self.hosts = Names()
        self.records: list[NDArray[Any]] = [np.zeros(0, RECORD)]
        self.traced: list[_Traced] = []
        self.layout_of: dict[int, Layout] = {}
        self.has_mpi = False  # a module of MPI communication was read
        self.daos: set[int] = set()  # files and objects of DAOS
        self.functions: list[NDArray[Any]] = [np.zeros(0, FUNCTION)]
        self.types: dict[str, str] = {}
        self.file_of: dict[int, int] = {}  # the file of each dataset or variable
        sizes = [max(log.job["nprocs"], 1) for log in logs]
        self.first = dict(zip(logs, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        self.starts = {
            log: log.job["start_time_sec"] + log.job["start_time_nsec"] / 1e9 for log in logs
        }

    def read(self) -> Job:
        self._describe()
        for log in self.logs:
            self.types |= log.mounts
            self._read_modules(log)
        self._finish_files()
        self.job.records = np.concatenate(self.records)
        self.job.functions = np.concatenate(self.functions)
        self.job.hosts = self.hosts.list
        self._mark_nested()
        libraries.add_inner(self.job.records, self.file_of, len(self.job.files))
        self._finish_events()
        self._note_what_is_known()
        return self.job

    def _describe(self) -> None:
        job, logs = self.job, self.logs
        job.start = min(self.starts.values())
        job.wall = max(self.starts[log] + log.job["run_time"] for log in logs) - job.start
        job.command = logs[0].command
        job.ranks = max(log.job["nprocs"] for log in logs)
        metadata = logs[0].job
        job.metadata = {
            "uid": metadata["uid"],
            "user": user_of(logs[0]),
            "jobid": metadata["jobid"],
            "log_version": metadata["log_ver"],
            **metadata["metadata"],
        }
        job.programs = [_program(log.command) for log in logs]
        job.processes = np.concatenate(
            [self._processes(log, number) for number, log in enumerate(logs)]
        )
        jobs = sorted({log.job["jobid"] for log in logs})
        if len(jobs) > 1:
            job.messages.append(
                f"logs of {len(jobs)} job ids ({', '.join(map(str, jobs[:5]))}) are shown as"
                " one job"
            )

    def _processes(self, log: Log, program: int) -> NDArray[Any]:
        count = max(log.job["nprocs"], 1)
        rows = new_processes(count)
        if count > 1 or "MPI-IO" in log.modules:
            rows["rank"] = np.arange(count)
        rows["host"] = -1
        rows["exe"] = program
        rows["start"] = self.starts[log] - self.job.start
        rows["end"] = rows["seen"] = rows["start"] + log.job["run_time"]
        rows["end_kind"] = 1
        return rows

    def _read_modules(self, log: Log) -> None:
        unused = sorted(log.modules.keys() - _USED)
        if unused:
            self._say(log, f"not used: module{'s' if len(unused) > 1 else ''} {', '.join(unused)}")
        for name in unused:
            if name not in _WITHOUT_IO:
                self._miss(f"module {name} of Darshan cannot be read")
        for module in log.modules.values():
            if module.name not in _USED:
                continue
            count = self._read_module(log, module)
            if module.partial:
                self._say(
                    log,
                    f"module {module.name} is partial: Darshan's memory was full after {count}"
                    " records, further files or calls are missing",
                )
                if module.name not in _DETAILS:
                    self._miss(f"Darshan had no more memory for module {module.name}")
            if count == 0 and module.name not in _DETAILS:
                self._miss(f"module {module.name} of Darshan cannot be read")
            if count == 0:
                self._say(
                    log,
                    f"module {module.name} (version {module.version}) has {module.length} bytes but"
                    " gave no record",
                )
        for error in dict.fromkeys(log.errors):
            self._say(log, error)

    def _miss(self, text: str) -> None:
        """Add a part of the run that the tables do not hold, once."""
        if all(part.text != text for part in self.job.unseen):
            self.job.unseen.append(Unseen(text))

    def _say(self, log: Log, text: str) -> None:
        self.job.messages.append(f"{log.path}: {text}")

    def _read_module(self, log: Log, module: Module) -> int | None:
        """Add the rows of a module; return their number, or None if it was left out with a
        message."""
        if module.name in MODULE_LAYERS or module.name in LIBRARY_LAYERS:
            return self._add_records(log, module)
        if module.name == communication.APMPI:
            return self._add_communication(log, module)
        if module.name == "HEATMAP":
            return sum(self._add_heat(log, heat) for heat in log.heat(module))
        if module.name == "LUSTRE":
            return sum(self._add_layout(log, components) for components in log.stripes(module))
        versions = _DXT_VERSIONS[module.name]
        if module.version not in versions:
            expected = " or ".join(map(str, versions))
            self._say(
                log,
                f"module {module.name} has record version {module.version}; expected {expected}:"
                " its events are left out",
            )
            return None
        return sum(self._add_segments(log, module.name, record) for record in log.segments(module))

    def _file(self, log: Log, record: int) -> int:
        return self.paths.number(
            log.names.get(record) or f"(file {record:#018x}, name not in the log)"
        )

    def _add_records(self, log: Log, module: Module) -> int:
        source = log.counters(module)
        rows = to_rows(module.name, source, log.job["nprocs"])
        alone = log.job["nprocs"] <= 1
        rows["process"] = np.where(
            (source["rank"] < 0) & ~np.bool_(alone),
            -1,
            self.first[log] + np.maximum(source["rank"], 0),
        )
        rows["file"] = [self._file(log, record) for record in source["id"].tolist()]
        if "file_id" in (source.dtype.names or ()):
            above = zip(rows["file"].tolist(), source["file_id"].tolist(), strict=True)
            self.file_of |= {part: self._file(log, record) for part, record in above}
        for moment in MOMENTS:
            rows[moment] += self.starts[log] - self.job.start
        if module.name == "DAOS":
            self._take_out_dfs(rows)
        self.daos.update(rows["file"].tolist() if module.name in ("DFS", "DAOS") else ())
        self.records.append(rows)
        return len(source)

    def _take_out_dfs(self, rows: NDArray[Any]) -> None:
        """Reduce the calls on objects of DAOS to those that no call of DFS can have made: DFS makes
        its calls through objects."""
        files = [part for part in self.records if len(part) and part["file"][0] in self.daos]
        if not files:
            return
        times = ("read_time", "write_time", "other_time")
        above = sum(float(part[name].sum()) for part in files for name in times)
        whole = sum(float(rows[name].sum()) for name in times)
        rest = max(1.0 - above / whole, 0.0) if whole > 0 else 0.0
        rest = rest if rest > 1.0 - _ALL_NESTED else 0.0
        for name in (*times, "reads", "writes", "opens", "stats", "others", "bytes_read"):
            rows[name] = rows[name] * rest
        rows["bytes_written"] = rows["bytes_written"] * rest
        self.job.messages.append(_DAOS_NESTING)

    def _add_communication(self, log: Log, module: Module) -> int | None:
        if self.has_mpi:
            self._say(log, "module APMPI is read from the first log only")
            return None
        self.has_mpi = True
        size = max(log.job["nprocs"], 1)
        calls, count = communication.mpi_calls(log, module, size)
        for function in calls:
            rows = np.zeros(size, FUNCTION)
            rows["process"], rows["thread"] = self.first[log] + np.arange(size), -1
            rows["name"], rows["category"] = self._function(function.name), function.category
            rows["calls"], rows["seconds"] = np.round(function.calls), function.seconds
            rows["bytes"] = np.round(function.bytes)
            self.functions.append(rows[(function.calls > 0) | (function.seconds > 0)])
        return count

    def _add_heat(self, log: Log, heat: Heat) -> int:
        """Add the bytes by time of one rank and layer."""
        layer = _HEAT_LAYERS.get(log.names.get(heat.id, "").rpartition(":")[2])
        if layer is not None and heat.rank >= 0:
            start = self.starts[log] - self.job.start
            process = self.first[log] + heat.rank
            self.job.heat.append(
                ByteBins(process, layer, start, heat.width, heat.reads, heat.writes)
            )
        return 1

    def _add_layout(self, log: Log, components: Sequence[Stripes]) -> int:
        striped = [c for c in components if c.targets]
        if striped:
            grown = [c for c in striped if c.counters["FLAGS"] & _INITIALISED] or striped
            best = max(grown, key=lambda c: c.counters["EXT_START"])
            size, count = best.counters["STRIPE_SIZE"], best.counters["STRIPE_COUNT"]
            self.layout_of[self._file(log, best.id)] = Layout(
                "lustre", size, count, best.targets, best.pool
            )
        return 1

    def _add_segments(self, log: Log, module: str, record: Segments) -> int:
        layer, *names = _DXT[module]
        process = self.first[log] + max(record.rank, 0)
        if process < len(self.job.processes):
            self.job.processes["host"][process] = self.hosts.number(record.host)
        later, file = self.starts[log] - self.job.start, self._file(log, record.id)
        for kind, name, rows in (
            ("read", names[0], record.reads),
            ("write", names[1], record.writes),
        ):
            if len(rows):
                self.traced.append(
                    _Traced(
                        process,
                        file,
                        LAYERS.index(layer),
                        EVENT_KINDS.index(kind),
                        self._function(name),
                        later,
                        rows,
                    )
                )
        return 1

    def _function(self, name: str) -> int:
        if name not in self.job.function_names:
            self.job.function_names.append(name)
        return self.job.function_names.index(name)

    def _finish_files(self) -> None:
        job = self.job
        job.paths = self.paths.list
        job.files = new_files(len(job.paths))
        job.files["path"] = np.arange(len(job.paths))
        job.files["stream"] = [path in _STREAMS for path in job.paths]
        numbers: dict[Layout, int] = {}
        for file, layout in self.layout_of.items():
            job.files["layout"][file] = numbers.setdefault(layout, len(numbers))
        job.layouts = list(numbers)
        mounts = Names()
        if self.daos:
            self.types |= {"daos": "daos"}
        job.files["filesystem"] = [
            -1 if mount is None else mounts.number(mount)
            for mount in (
                "daos" if file in self.daos else self._mount_of(path)
                for file, path in enumerate(job.paths)
            )
        ]
        kinds = [self.types[mount] for mount in mounts.list]
        rows = [
            (kind, mount, 0, kind == "daos" or is_network(kind), -1)
            for kind, mount in zip(kinds, mounts.list, strict=True)
        ]
        job.filesystems = np.array(rows, FILESYSTEM)

    def _mount_of(self, path: str) -> str | None:
        """Return the longest mount point above a path."""
        return max((mount for mount in self.types if _is_below(path, mount)), key=len, default=None)

    def _mark_nested(self) -> None:
        """Mark the POSIX rows of files that MPI-IO also has as made by MPI-IO, as far as the time
        in MPI-IO can hold them: a rank may use the file directly, too."""
        records = self.job.records
        posix = records["layer"] == LAYERS.index("posix")
        mpiio = records["layer"] == LAYERS.index("mpiio")
        rows = np.flatnonzero(posix & np.isin(records["file"], np.unique(records["file"][mpiio])))
        times = records["read_time"] + records["write_time"] + records["other_time"]
        inner, outer = (
            np.bincount(records["file"][chosen], times[chosen], len(self.job.files))
            for chosen in (rows, mpiio)
        )
        share = np.divide(outer, inner, out=np.ones(len(inner)), where=inner > 0)
        share = np.where(share >= _ALL_NESTED, 1.0, share)[records["file"][rows]]
        for nested, counters in {
            "nested_reads": ["reads"],
            "nested_writes": ["writes"],
            "nested_read_time": ["read_time"],
            "nested_write_time": ["write_time"],
            "nested_other_time": ["other_time"],
        }.items():
            records[nested][rows] = records[counters[0]][rows] * share
        if len(rows):
            self.job.messages.append(_MPIIO_NESTING)

    def _finish_events(self) -> None:
        events = np.zeros(sum(len(traced.rows) for traced in self.traced), EVENT)
        first = 0
        for traced in self.traced:
            traced.fill(events[first : first + len(traced.rows)])
            first += len(traced.rows)
        self.traced.clear()
        self.job.events = sort_events(events)

    def _note_what_is_known(self) -> None:
        job = self.job
        modules = {name for log in self.logs for name in log.modules}
        job.has = {layer for module, layer in MODULE_LAYERS.items() if module in modules}
        if self.has_mpi:
            job.has.add("mpi")
        if "POSIX" in modules:
            job.has |= {"sizes", "alignment"}
        if "STDIO" in modules:
            job.has.add("streams")
        if len(job.events):
            job.has.add("events")
        if job.layouts:
            job.has.add("layout")
        if not modules & MODULE_LAYERS.keys():
            for module in sorted(modules & LIBRARY_LAYERS.keys()):
                library = _LIBRARIES[LIBRARY_LAYERS[module]]
                self._miss(f"the log has calls of {library}, and none of the calls that these made")
        if not np.any(job.records["process"] < 0):
            job.has.add("per_rank")


def _program(command: str) -> str:
    try:
        return next(iter(shlex.split(command)), "")
    except ValueError:
        return command.split(" ", 1)[0]


def _is_below(path: str, mount: str) -> bool:
    return path.startswith("/") and (
        mount == "/" or path == mount or path.startswith(mount.rstrip("/") + "/")
    )
