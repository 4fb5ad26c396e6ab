"""A job from its process logs."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pario import wording
from pario.machine import free_memory
from pario.see.tables.errors import ReadError
from pario.see.tables.model import COUNTERS, EXEC, PROCESS_COLUMNS, PROCESS_FACTS, Job, Unseen
from pario.see.tables.own.blocks import ProcessLog, read_log
from pario.see.tables.own.calls import add_communicators, add_events, add_functions
from pario.see.tables.own.clocks import Clock, Sample, relate
from pario.see.tables.own.coverage import add_unseen
from pario.see.tables.own.current import add_current
from pario.see.tables.own.datasets import add_datasets
from pario.see.tables.own.endings import add_endings
from pario.see.tables.own.files import add_files
from pario.see.tables.own.loaders import add_loaders
from pario.see.tables.own.mpiio import add_mpiio
from pario.see.tables.own.running import is_running
from pario.see.tables.own.schema import Schema
from pario.see.tables.own.sites import add_sites
from pario.see.tables.own.streams import add_streams
from pario.see.tables.own.striping import add_striping
from pario.see.tables.own.view import Timebase, View
from pario.see.tables.rows import MOMENTS, Names, new_processes
from pario.see.tables.users import user_name
from pario.wording import plural

_ALWAYS_KNOWN = {
    "cpu",
    "posix",
    "stdio",
    "sizes",
    "sampled",
    "alignment",
    "per_rank",
    "streams",
    "threads",
    "meta_split",
}
_END_KINDS = 6
#: Columns of processes, and their names in /proc/PID/io.
_OF_KERNEL = {
    "kernel_read": "rchar",
    "kernel_written": "wchar",
    "syscalls_read": "syscr",
    "syscalls_write": "syscw",
}
_EVENT_MEMORY = 256  # bytes to analyze an event: 224 were measured
_START_TOGETHER = 60.0  # seconds within which the launchers of one run start
_ATTEMPTS, _BETWEEN_ATTEMPTS = 4, 0.02  # to read a log that grows; seconds


def read_job(
    source: str,
    paths: Sequence[Path],
    descriptions: Sequence[Path] = (),
    launchers: Sequence[Path] = (),
    most_events: int | None = None,
) -> Job:
    """Return the job with the process logs ``paths``.

    ``descriptions`` are its job.json, one for each directory, ``launchers`` its launcher.N.json. If
    there are more events than ``most_events``, none is read; by default, if they need more than
    half of the free memory.
    Raises ReadError when no log can be read, or the descriptions are those of several runs.
    """
    job = Job(source=source, format="pario")
    logs = sorted(_read_logs(job, paths, most_events), key=_order)
    clocks = relate(_samples(logs))
    starts = [clocks[_machine(log)].epoch(log.process["start_mono_ns"]) for log in logs]
    start_ns = min(starts)
    job.start = start_ns / 1e9
    hosts = Names()
    views = [
        View(
            log, row, hosts.number(_host(log)), _machine(log), _timebase(job, log, clocks, start_ns)
        )
        for row, log in enumerate(logs)
    ]
    job.hosts = hosts.list
    _add_processes(job, views, [(start - start_ns) / 1e9 for start in starts])
    add_functions(job, views)
    of_record = add_files(job, views)
    add_mpiio(job, views, of_record)
    add_streams(job, views, of_record)
    add_striping(job, views, of_record)
    add_loaders(job, views)
    add_datasets(job, views, of_record)
    communicators = add_communicators(job, views)
    if not job.events_left_out:
        add_events(job, views, of_record, communicators)
    add_sites(job, views, of_record)
    description = _read_descriptions(job, descriptions)
    _set_command_end(job, description)
    _set_command_io(job, description)
    _add_running(job, views, clocks, start_ns)
    add_current(job, views, of_record, communicators)
    _complete_ends(job)
    _describe(job, views, description)
    _add_messages(job, views)
    noted = {path.name: _read_description(job, path) for path in launchers}
    add_unseen(job, views, description, noted)
    job.messages = _fold_messages(job.messages)
    return job


def _read_logs(job: Job, paths: Iterable[Path], most_events: int | None) -> list[ProcessLog]:
    logs, errors = [], []
    for path in sorted(paths):
        try:
            logs.append(_read_log(path, with_events=most_events is None))
        except ReadError as error:
            errors.append(error)
    if not logs:
        raise errors[0]
    job.messages += [f"not read: {error}" for error in errors]
    if errors:
        whole = plural(len(logs) + len(errors), "process log")
        job.unseen.append(Unseen(f"{len(errors)} of {whole} cannot be read"))
    events = sum(log.process.get("events", 0) for log in logs)
    most = free_memory() // 2 // _EVENT_MEMORY if most_events is None else most_events
    if events <= most:
        return logs if most_events is None else [_read_log(log.path) for log in logs]
    job.events_left_out = True
    need = f"need some {wording.size(events * _EVENT_MEMORY)} of memory and "
    job.messages.append(
        f"the {wording.count(events)} events {need if most_events is None else ''}are left out:"
        " waiting and missing ranks are not known"
    )
    return logs


def _read_log(path: Path, *, with_events: bool = True) -> ProcessLog:
    """Read a process log, again if its process has changed it meanwhile."""
    for _ in range(_ATTEMPTS):
        log = read_log(path, with_events=with_events)
        if not log.remarks.texts or not is_running(log):
            return log
        time.sleep(_BETWEEN_ATTEMPTS)
    log.remarks.damages.clear()
    log.remarks.notes.clear()
    return log


def _order(log: ProcessLog) -> tuple[bool, int, int]:
    """Sort ranks first, in their order; then the others by their start."""
    rank = log.process.get("mpi_rank", 0) - 1
    return rank < 0, rank, log.process["start_realtime_ns"]


def _host(log: ProcessLog) -> str:
    return str(log.process_note.get("host") or log.path.name.rsplit(".", 3)[0])


def _machine(log: ProcessLog) -> str:
    return str(log.process_note.get("boot_id") or _host(log))


def _samples(logs: Sequence[ProcessLog]) -> list[Sample]:
    seen: Counter[tuple[int, int]] = Counter()
    samples = []
    for log in logs:
        process = log.process
        seat = (process["mpi_size"], process["mpi_rank"])
        barriers = [
            note["mono_ns"]
            for note in log.notes_of("clock")
            if isinstance(note.get("mono_ns"), int)
        ]
        world = (
            process["mpi_size"],
            seen[seat],
        )  # the n-th process with this rank belongs to the n-th MPI job of this size
        seen[seat] += 1
        samples.append(
            Sample(
                _machine(log),
                world,
                process["start_mono_ns"],
                process["start_realtime_ns"],
                barriers,
            )
        )
    return samples


def _timebase(job: Job, log: ProcessLog, clocks: dict[str, Clock], start_ns: int) -> Timebase:
    process, clock = log.process, clocks[_machine(log)]
    rate = process["ticks_per_second"]
    if not rate:
        job.messages.append(f"{log.path}: the rate of its clock is not known; taken as nanoseconds")
        rate = 1_000_000_000
    seconds0 = (clock.epoch(process["anchor0_mono_ns"]) - start_ns) / 1e9
    return Timebase(process["anchor0_ticks"], seconds0, (1 + clock.drift) / rate)


def _add_processes(job: Job, views: Sequence[View], starts: Sequence[float]) -> None:
    programs = Names()
    rows = new_processes(len(views))
    for view, row, start in zip(views, rows, starts, strict=True):
        process = view.log.process
        row["rank"] = process["mpi_rank"] - 1
        row["host"], row["parent"] = view.host, process["ppid"]
        row["exe"] = programs.number(str(view.log.process_note.get("exe", "")))
        for name in PROCESS_COLUMNS.keys() & process.keys():
            _fill_fact(row, view, name)
        row["start"], row["seen"] = start, view.time.moment(process["anchor1_ticks"])
        row["end_kind"], row["end_code"] = process["end_kind"] % _END_KINDS, process["end_code"]
        row["cpu_user"], row["cpu_system"] = (
            process["cpu_user_ns"] / 1e9,
            process["cpu_system_ns"] / 1e9,
        )
        row["end"] = max(row["end"], start)  # of a damaged log
        if process["mpi_rank"]:
            row["mpi_start"], row["mpi_end"] = (
                view.time.moment(process["mpi_init"]),
                view.time.moment(process["mpi_finalize"]),
            )
    job.programs = programs.list
    job.processes = rows


def _fill_fact(row: Any, view: View, name: str) -> None:
    """Set the column of a row of process.def, in the units of the table model."""
    process, column = view.log.process, PROCESS_COLUMNS[name]
    if column.use == "optional":
        row[name] = process[name] - 1
        return
    match column.unit:
        case "time":
            row[name] = view.time.moment(process[name])
        case "ticks":
            row[name] = process[name] * view.time.seconds_per_tick
        case _:
            row[name] = process[name]


def _set_command_end(job: Job, description: dict[str, Any]) -> None:
    """If a signal killed the command, its only launcher saw its end, which is later than its last
    call."""
    end, status, processes = description.get("end"), description.get("exit_status"), job.processes
    if not isinstance(end, float) or not math.isfinite(end):
        return
    job.command_end = end - job.start
    if (
        description.get("launchers") != 1
        or not isinstance(status, int)
        or status <= wording.BY_SIGNAL
    ):
        return
    first = processes[np.argmin(processes["start"])]
    same = np.flatnonzero(
        (processes["pid"] == first["pid"]) & (processes["host"] == first["host"])
    )  # exec keeps the number
    last = same[np.argmax(processes["start"][same])]
    if np.isnan(processes["end"][last]):
        processes["end"][last] = max(end - job.start, processes["seen"][last])


def _set_command_io(job: Job, description: dict[str, Any]) -> None:
    """If the command ended without the tracer, its only launcher read the kernel's counters, which
    are later than those of its last anchor."""
    counters, processes = description.get("io"), job.processes
    if description.get("launchers") != 1 or not isinstance(counters, dict):
        return
    same = processes["pid"] == description.get("pid")
    same &= np.array(job.hosts)[processes["host"]] == description.get("host")
    rows = np.flatnonzero(same)
    if not len(rows):
        return
    last = rows[np.argmax(processes["start"][rows])]
    if processes["end_kind"][last] not in (0, EXEC):  # a program after exec may be untraced
        return
    for name, counter in _OF_KERNEL.items():
        value = counters.get(counter)
        if isinstance(value, int) and processes[name][last] < value < 2**63:
            processes[name][last] = value


def _add_running(job: Job, views: Sequence[View], clocks: dict[str, Clock], start_ns: int) -> None:
    """Set the processes that still run, and the present moment."""
    running = [view for view in views if is_running(view.log)]
    job.running = tuple(view.row for view in running)
    if running:
        epoch_ns = clocks[running[0].machine].epoch(time.monotonic_ns())
        job.now = (epoch_ns - start_ns) / 1e9


def _complete_ends(job: Job) -> None:
    """Set `seen` to the last known moment of a process, and the wall time."""
    seen = job.processes["seen"]
    for name in ("start", "end"):
        np.fmax(seen, job.processes[name], out=seen)
    for name in MOMENTS:
        np.fmax.at(seen, job.records["process"], job.records[name])
    ends = np.where(np.isnan(job.processes["end"]), seen, job.processes["end"])
    starts = [call.start for call in job.current]
    job.wall = float(np.max([*ends, *starts, np.nan_to_num(job.now)]))


def _read_descriptions(job: Job, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the run's description: that of rank 0's launcher, which knows the end of the run,
    otherwise that of another host."""
    found: dict[str, Any] = {}
    for path in paths:
        description = _read_description(job, path)
        if found and description and not _is_same_run(found, description):
            raise ReadError(
                path,
                f"another run than {paths[0]}",
                "the directories that one run left on its hosts",
            )
        found = description | found if "exit_status" in found else found | description
    return found


def _is_same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    apart = abs(one.get("start", 0.0) - other.get("start", 0.0))
    return one.get("command") == other.get("command") and apart < _START_TOGETHER


def _read_description(job: Job, path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        job.messages.append(f"{path}: not read: {error}")
        return {}
    return found if isinstance(found, dict) else {}


def _describe(job: Job, views: Sequence[View], description: dict[str, Any]) -> None:
    first = views[0].log.process_note
    command = description.get("command") or first.get("argv") or []
    job.command = shlex.join(map(str, command)) if isinstance(command, list) else str(command)
    status = description.get("exit_status")
    job.exit_status = status if isinstance(status, int) else None
    job.ranks = max(1, *(view.log.process["mpi_size"] for view in views)) if views else 1
    mpi = next((note for view in views for note in view.log.notes_of("mpi")), {})
    job.mpi_library = " ".join(
        str(mpi.get("library", "")).replace("Version:", "").split()
    )  # MPICH says "MPICH Version: 5.0.2"
    job.metadata = {key: first[key] for key in ("cwd", "env") if key in first}
    if "user" in first:
        job.metadata |= {"uid": first["user"], "user": user_name(first["user"])}
    job.metadata["pario"] = views[0].log.schema.pario
    job.has = _find_known(job, bool(mpi))


def _find_known(job: Job, mpi: bool) -> set[str]:
    has = set(_ALWAYS_KNOWN)
    if mpi or bool(np.any(job.processes["rank"] >= 0)):
        has |= {"mpi", "mpiio", "hints"}
    if len(job.events):
        has.add("events")
    if bool(np.any(job.events["layer"] == 255)) and job.communicators:
        has.add("sync")
    if job.layouts:
        has.add("layout")
    if len(job.mpiio):
        has.add("own_mpiio")
    return has


def _add_messages(job: Job, views: Sequence[View]) -> None:
    """Add the remarks on each log, and the gaps in the counters."""
    remarks = [(text, view.log.path) for view in views for text in view.log.remarks.texts]
    for text, count in Counter(text for text, _ in remarks).items():
        where = next(path for remark, path in remarks if remark == text)
        more = f" (and in {count - 1} more logs)" if count > 1 else ""
        job.messages.append(f"{where}: {text}{more}")
    if unknown := sorted(set().union(*(_unknown_fields(view.log.schema) for view in views))):
        job.messages.append(
            f"written by pario {views[0].log.schema.pario}, with fields that this version does not"
            f" know and leaves out: {', '.join(unknown)}"
        )
    add_endings(job, views)
    totals = {
        name: sum(view.log.process.get(name, 0) for view in views)
        for name in ("lost", "files_folded", "events_merged", "events_lost")
    }
    texts = {
        "lost": "{} calls were not counted (the tracer was re-entered, or could not write its log)",
        "files_folded": (
            "{} files are counted in rows of their directories (more files than the limit)"
        ),
        "events_merged": (
            "{} calls share an event with others (the limit for events was near); the counters are"
            " complete"
        ),
        "events_lost": (
            "{} calls have no event (the limit for events was reached, or the log could not grow);"
            " the counters are complete"
        ),
    }
    job.messages += [texts[name].format(total) for name, total in totals.items() if total]
    job.messages += [
        str(note.get("text")) for view in views for note in view.log.notes_of("message")
    ]


def _unknown_fields(schema: Schema) -> set[str]:
    """Return the fields of a newer log that the table model has no column for."""
    known = {row.name for row in (*COUNTERS, *PROCESS_FACTS)}
    return {*(schema.record.names or ()), *(schema.process.names or ())} - known


def _fold_messages(messages: Sequence[str]) -> list[str]:
    """Return the first of messages that differ only in numbers, and the number of the others."""
    alike = Counter(map(_without_numbers, messages))
    first = {_without_numbers(message): message for message in reversed(messages)}
    return [
        first[kind] + (f" (and {count - 1} more like it)" if count > 1 else "")
        for kind, count in alike.items()
    ]


def _without_numbers(message: str) -> str:
    return re.sub(r"\d+", "#", message)
