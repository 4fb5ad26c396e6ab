"""The scope of analysis: the program's own processes and files, without the launcher's processes
and the internal files of communication libraries."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, Mask, Table, counts, sums
from pario.see.analyze.lanes import Lanes
from pario.see.tables.model import LAYERS, Job

#: The origins of files. ``missing``: the program looked for it and did not find it. ``pario``: a
#: file of pario that Python reads in traced programs.
ORIGINS: tuple[str, ...] = ("program", "missing", "library", "kernel", "stream", "pipe", "pario")
PROGRAM, MISSING, LIBRARY, KERNEL, STREAM, PIPE, PARIO = range(len(ORIGINS))

#: Flags of events: inside an MPI-IO call, inside another MPI call.
IN_MPI_IO, IN_MPI = 2, 4
#: An upper bound of the bytes through a named pipe whose partner is slow.
PIPE_BYTES = 64 << 10

#: The directories whose files are no storage.
KERNEL_PLACES = ("/proc/", "/sys/", "/dev/")
_MEMORY = "/dev/shm/"
#: The directory that pario.see.launch.environment adds to PYTHONPATH, for any installation.
_HOOK = re.compile(r"/pario/(see/)?launch/hook(/|$)")
#: Shared memory through which processes exchange messages: of MPI libraries, UCX, libfabric, NCCL,
#: PyTorch, Python's multiprocessing (also its semaphores) and joblib.
_TRANSPORT = re.compile(
    r"^/dev/shm/(ucx_|mpich|vader_segment|sm_segment|osc_|btl_|open_mpi|openmpi|ompi|psm[23]?_"
    r"|cray-shared|cray_|Intel_MPI|impi-|mvapich|pmix|prte|fi_shm|nccl-|rccl-|torch_|gloo|sem\."
    r"|pymp-|wnsm_|joblib_memmapping_folder_)"
)
#: Other files of MPI libraries, for calls that come before MPI_Init and for logs without events.
_LIBRARY = re.compile(
    r"/(ucx|mpich|mpiexec\.hydra|openmpi-mca-params|pmix-mca-params|prte-mca-params|mca-params)"
    r"\.conf$"
    r"|/romio-hints$|/hydra_hwloc_xmlfile_|/(openmpi-sessions|ompi\.|pmix-|prte\.)[^/]*(/|$)"
)


@dataclass(frozen=True)
class Scope:
    """The program's part of a job. ``job`` holds only its records and functions; rows of files and
    processes keep their numbers. ``job`` still has all events, because copying them would take
    longer than ignoring those without a lane.
    """

    job: Job
    origin: Ints  # per row of Job.files: an index into ORIGINS
    helpers: Table  # records of the launcher and its helpers

    @property
    def storage(self) -> Mask:
        """True for storage files of the program, including missing ones: an open that fails is a
        call to storage, too."""
        return np.asarray(self.origin <= MISSING)


def find_scope(job: Job, lanes: Lanes) -> Scope:
    """Separate the program's records, functions and files from all others."""
    outside = np.flatnonzero(lanes.of_process < 0)
    helper = np.isin(job.records["process"], outside)
    own = job
    if len(outside):
        own = replace(
            job,
            records=job.records[~helper],
            functions=job.functions[~np.isin(job.functions["process"], outside)],
        )
    return Scope(own, _origins(own, lanes), job.records[helper])


def _origins(job: Job, lanes: Lanes) -> Ints:
    origin = np.where(_missing(job), MISSING, PROGRAM)
    transport = _by_path(job, [_TRANSPORT.search(path) is not None for path in job.paths])
    origin[transport & ~_opened_by_mpi_io(job)] = LIBRARY
    if lanes.mpi:
        origin[_library(job, lanes)] = LIBRARY
    origin[
        _by_path(
            job,
            [path.startswith(KERNEL_PLACES) and not path.startswith(_MEMORY) for path in job.paths],
        )
    ] = KERNEL
    origin[_by_path(job, [_HOOK.search(path) is not None for path in job.paths])] = PARIO
    origin[job.files["stream"] != 0] = STREAM
    if job.format == "darshan":
        origin[_named_pipes(job)] = PIPE
    return origin


def _by_path(job: Job, chosen: list[bool]) -> Mask:
    return np.asarray(np.array(chosen or [False])[job.files["path"]])


def _missing(job: Job) -> Mask:
    """True for files with failed calls only."""
    records = job.records
    done = sum(
        (records[name] for name in ("opens", "reads", "writes", "maps", "closes")),
        np.zeros(len(records), np.int64),
    )
    asked = records["stats"] + records["failed_opens"] + records["others"]
    worked, asked_for, failed = (
        sums(records["file"], values, len(job.files)) for values in (done, asked, records["failed"])
    )
    return np.asarray((worked == 0) & (failed > 0) & (failed >= asked_for))


def _library(job: Job, lanes: Lanes) -> Mask:
    """True for files that MPI_File_open did not open and that are known by name or accessed only
    inside MPI calls."""
    count = len(job.files)
    named = _by_path(job, [_LIBRARY.search(path) is not None for path in job.paths])
    own = (
        (job.events["layer"] < len(LAYERS))
        & (job.events["file"] >= 0)
        & (lanes.of(job.events["process"]) >= 0)
    )
    file, calls, flags = (job.events[name][own] for name in ("file", "count", "flags"))
    inside = (flags & (IN_MPI | IN_MPI_IO)) > 0
    seen = sums(file[inside], calls[inside], count)
    nested = (seen > 0) & (seen >= _calls(job)) & (counts(file[~inside], count) == 0)
    return np.asarray((named | nested) & ~_opened_by_mpi_io(job))


def _opened_by_mpi_io(job: Job) -> Mask:
    """True for files that MPI_File_open opened."""
    rows = job.records["layer"] == LAYERS.index("mpiio")
    return counts(job.records["file"][rows], len(job.files)) > 0


def _calls(job: Job) -> Floats:
    """Return, per file, the number of calls that have an event if events are complete."""
    calls = job.records["opens"] + job.records["reads"] + job.records["writes"]
    return sums(job.records["file"], calls, len(job.files))


def _named_pipes(job: Job) -> Mask:
    """True for probable named pipes: named like a pipe, few bytes, more than a second to open.
    Darshan does not record file types."""
    records, count = job.records, len(job.files)
    moved = sums(records["file"], records["bytes_read"] + records["bytes_written"], count)
    opening = sums(records["file"], records["open_time"] + records["other_time"], count)
    slow = (moved < PIPE_BYTES) & (opening > sums(records["file"], records["opens"], count))
    named = [
        any(word in job.path(int(file)).rpartition("/")[2].lower() for word in ("pipe", "fifo"))
        for file in np.flatnonzero(slow)
    ]
    slow[slow] = named
    return slow
