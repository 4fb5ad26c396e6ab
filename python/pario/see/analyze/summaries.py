"""The smaller tables of a report: file systems, access sizes, hints, and the facts of the job."""

from __future__ import annotations

import numpy as np

from pario.see.analyze.arrays import Floats, counts, sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.functions import COUNTED
from pario.see.analyze.model import FileSystemRow, JobInfo, SizeRow
from pario.see.analyze.program import program_of
from pario.see.analyze.scope import PROGRAM
from pario.see.tables.model import LAYERS, Job

#: The variables that configure the I/O of pario, Cray's libraries and ROMIO.
SETTINGS = (
    "PARIO_MPIIO",
    "PARIO_HINTS",
    "PARIO_STREAMS",
    "MPICH_MPIIO_HINTS",
    "ROMIO_HINTS",
    "IOBUF_PARAMS",
)


def job_info(facts: Facts) -> JobInfo:
    """Return the facts of the job for the head of a report."""
    job = facts.job
    read, written = stored_bytes(facts)
    return JobInfo(
        source=job.source,
        format=job.format,
        command=job.command,
        start=job.start,
        wall=job.wall,
        ranks=job.ranks,
        processes=_processes(facts),
        hosts=tuple(job.hosts),
        exit_status=job.exit_status,
        mpi_library=job.mpi_library,
        bytes_read=read,
        bytes_written=written,
        files=_files(facts),
        directory=str(job.metadata.get("cwd", "")),
        settings=_settings(job),
        calls=int(sum(facts.calls(name) @ facts.stored for _, name, _ in COUNTED)),
        system_reads=_system_calls(facts, "syscalls_read"),
        system_writes=_system_calls(facts, "syscalls_write"),
        user=str(job.metadata.get("user", "")),
        program=program_of(job),
    )


def _files(facts: Facts) -> int:
    """Return the number of the program's files. Files beyond the limit of a process stand in the
    rows of their directories, and count once per process."""
    own = facts.stored & (facts.times.scope.origin[facts.file] == PROGRAM)
    folded = facts.job.files["folded"][facts.file] != 0
    counted = files_of_rows(facts)[own & folded].sum()
    return len(np.unique(facts.file[own & ~folded])) + round(float(counted))


def _settings(job: Job) -> tuple[tuple[str, str], ...]:
    """Return the environment variables that change how I/O is done."""
    environment = job.metadata.get("env", {})
    return tuple(
        (name, str(value)) for name, value in sorted(environment.items()) if name in SETTINGS
    )


def _system_calls(facts: Facts, name: str) -> int:
    """Return the sum over the program's processes; -1 (not known) if one of them lacks it.

    Only processes without a traced parent are added, of equal PIDs the largest: the kernel adds a
    child's calls to those of the parent that waits for it, and keeps the calls before an exec.
    """
    own = facts.job.processes[facts.lanes.of_process >= 0]
    if not len(own) or (own[name] < 0).any():
        return -1
    pids = {(row["host"], row["pid"]) for row in own}
    most: dict[tuple[int, int], int] = {}
    for row in own:
        if (row["host"], row["parent"]) not in pids:
            place = (int(row["host"]), int(row["pid"]))
            most[place] = max(most.get(place, 0), int(row[name]))
    return sum(most.values())


def _processes(facts: Facts) -> int:
    """Return the number of processes of the program; exec does not make another one. A log without
    process IDs has a row per process."""
    own = facts.job.processes[facts.lanes.of_process >= 0]
    known = own["pid"] > 0
    return len(np.unique(own[known][["host", "pid"]])) + int((~known).sum())


def stored_bytes(facts: Facts) -> tuple[int, int]:
    """Return the bytes read from and written to storage by all processes."""
    read, written = (_sum_stored_bytes(facts, f"bytes_{word}") for word in ("read", "written"))
    return int(read.sum()), int(written.sum())


def _sum_stored_bytes(facts: Facts, name: str) -> Floats:
    """Return the bytes per row that reached storage, each counted once: MPI-IO rows count only for
    files without a POSIX row."""
    value = facts.column(name) * facts.stored
    below = sums(facts.file[~facts.mpiio], value[~facts.mpiio], len(facts.job.files))
    return np.where(facts.mpiio & (below[facts.file] > 0), 0.0, value)


def filesystems(facts: Facts) -> tuple[FileSystemRow, ...]:
    """Return files, bytes, calls and seconds by file system, most seconds first."""
    job = facts.job
    if not len(facts.records):
        return ()
    of_file = job.files["filesystem"].astype(np.int64)
    of_file = np.where(of_file < 0, len(job.filesystems), of_file)
    of_row = of_file[facts.file]
    count = len(job.filesystems) + 1

    def total(values: Floats) -> Floats:
        return sums(of_row, values * facts.stored, count)

    calls = total(sum((facts.calls(name) for _, name, _ in COUNTED), np.zeros(len(facts.records))))
    read, written = (
        total(_sum_stored_bytes(facts, "bytes_read")),
        total(_sum_stored_bytes(facts, "bytes_written")),
    )
    seconds = total(facts.times.cells.sum(axis=1))
    number = counts(of_file[np.unique(facts.file[facts.stored])], count)
    rows = [
        FileSystemRow(
            *_identity(job, i),
            int(number[i]),
            int(read[i]),
            int(written[i]),
            float(seconds[i]),
            int(calls[i]),
        )
        for i in range(count)
        if number[i]
    ]
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _identity(job: Job, filesystem: int) -> tuple[str, str]:
    if filesystem == len(job.filesystems):
        return "not known", ""
    row = job.filesystems[filesystem]
    return str(row["type"]), str(row["mount"])


def sizes(facts: Facts) -> tuple[SizeRow, ...]:
    """Return the access sizes of calls to storage by layer."""
    rows = []
    for number, layer in enumerate(LAYERS):
        own = facts.records[facts.stored & (facts.records["layer"] == number)]
        reads, writes = (own[name].sum(axis=0) for name in ("read_sizes", "write_sizes"))
        if reads.any() or writes.any():
            rows.append(SizeRow(layer, tuple(int(n) for n in reads), tuple(int(n) for n in writes)))
    return tuple(rows)


def hints(job: Job) -> tuple[tuple[str, str, str, str], ...]:
    """Return file, key, requested value and effective value; different values of ranks are separate
    rows."""
    values: dict[tuple[int, str, int], dict[str, str]] = {}
    for hint in job.hints:
        values.setdefault((hint.file, hint.key, hint.process), {})[hint.when] = hint.value
    rows = {
        (job.path(file), key, pair.get("requested", ""), pair.get("effective", ""))
        for (file, key, _), pair in values.items()
    }
    return tuple(sorted(rows))
