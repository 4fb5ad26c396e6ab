"""The table model: what is known of one job, whichever log it came from.

Readers fill it, analysis reads it, reporters never see a log. All tables are numpy structured arrays; seconds are float64
relative to ``Job.start``; missing knowledge is *absent* (see :attr:`Job.has`), never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LAYERS: tuple[str, ...] = ("posix", "stdio", "mpiio")

#: Size classes of the histograms: upper ends in bytes (decimal, as Darshan's); the last class is open.
SIZE_BINS: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000, 1_000_000_000)
SIZE_NAMES: tuple[str, ...] = ("0-100", "100-1K", "1K-10K", "10K-100K", "100K-1M", "1M-4M", "4M-10M", "10M-100M", "100M-1G", "1G+")

#: One row per process image.
PROCESS = np.dtype(
    [
        ("rank", "i4"),  # in MPI_COMM_WORLD, -1: not an MPI process
        ("host", "i4"),  # index into Job.hosts
        ("pid", "i8"),
        ("parent", "i8"),  # pid of the parent
        ("exe", "i4"),  # index into Job.programs
        ("start", "f8"),
        ("end", "f8"),  # NaN when not known (killed): then the last moment seen is in `seen`
        ("seen", "f8"),
        ("end_kind", "i4"),  # 0 running/killed, 1 exit, 2 _exit, 3 exec, 4 fatal signal, 5 abort
        ("end_code", "i4"),
        ("threads", "i4"),
        ("cpu_user", "f8"),
        ("cpu_system", "f8"),
        ("major_faults", "i8"),
        ("mpi_start", "f8"),  # MPI_Init returned; NaN: no MPI
        ("mpi_end", "f8"),  # MPI_Finalize called
        ("events_merged", "i8"),
        ("files_folded", "i8"),
        ("lost", "i8"),
        ("syscalls_read", "i8"),  # -1: not known
        ("syscalls_write", "i8"),
    ]
)

_COUNTS = (
    "opens closes reads writes seeks stats syncs flushes maps truncates others failed failed_opens zero_reads short_calls "
    "bytes_read bytes_written bytes_mapped end_read end_written nested_reads nested_writes "
    "consecutive_reads consecutive_writes forward_reads forward_writes strided_reads strided_writes repeated_seeks switches "
    "unaligned_reads unaligned_writes append_writes direct_calls sync_writes "
    "slowest_read_size slowest_write_size buffer_size buffer_mode formatted_calls lines sampled_writes sampled_text sampled_numbers "
    "collective_opens collective_reads collective_writes nonblocking_calls views noncontiguous_calls "
    "size_at_open block_size open_flags kind "
    "buffered_read_bytes buffered_write_bytes system_reads system_read_bytes system_writes system_write_bytes "
    "buffers_used prefetches preflushes wasted_bytes"
).split()
_SECONDS = (
    "open_time close_time read_time write_time seek_time stat_time sync_time flush_time map_time other_time "
    "nested_read_time nested_write_time nested_other_time collective_read_time collective_write_time "
    "first_open last_close first_read last_read first_write last_write "
    "slowest_read_time slowest_write_time slowest_meta_time "
    "system_read_time system_write_time"
).split()

#: One row per process, file and layer. Moments that never happened are NaN. The names are those of src/trace/counters.def.
RECORD = np.dtype(
    [
        ("process", "i4"),  # row of Job.processes; -1: sum over all ranks (a Darshan shared-file record)
        ("file", "i4"),  # row of Job.files
        ("layer", "u1"),  # index into LAYERS
    ]
    + [(name, "i8") for name in _COUNTS]
    + [(name, "f8") for name in _SECONDS]
    + [("read_sizes", "i8", (10,)), ("write_sizes", "i8", (10,))]
    + [
        # only in rows with process == -1; else -1 / NaN: what Darshan keeps of single ranks
        ("slowest_rank", "i4"),
        ("fastest_rank", "i4"),
        ("slowest_rank_time", "f8"),
        ("fastest_rank_time", "f8"),
        ("slowest_rank_bytes", "i8"),
        ("fastest_rank_bytes", "i8"),
        ("variance_time", "f8"),
        ("variance_bytes", "f8"),
        ("ranks", "i4"),  # how many ranks the row sums (1 for rows of one process)
    ]
)

#: One row per file (path), over all processes.
FILE = np.dtype(
    [
        ("path", "i4"),  # index into Job.paths
        ("filesystem", "i4"),  # row of Job.filesystems, -1: not known
        ("layout", "i4"),  # index into Job.layouts, -1: none known
        ("folded", "i1"),  # 1: stands for further files of a directory
        ("stream", "i1"),  # 1: terminal, pipe or socket (stdin, stdout, ...): not storage
    ]
)

#: One row per process, thread and function.
FUNCTION = np.dtype(
    [
        ("process", "i4"),
        ("thread", "i4"),  # -1: sum over threads
        ("name", "i4"),  # index into Job.function_names
        ("category", "U10"),  # posix, stdio, mpiio, p2p, wait, collective, rma, mpi
        ("calls", "i8"),
        ("seconds", "f8"),
        ("bytes", "i8"),
        ("slowest", "f8"),
        ("failed", "i8"),
    ]
)

#: One row per event, sorted by start. `file` is a row of Job.files, or for MPI communication the index into Job.communicators.
EVENT = np.dtype(
    [
        ("process", "i4"),
        ("thread", "u1"),
        ("flags", "u1"),  # 1 failed, 2 inside MPI-IO, 4 inside MPI, 8 collective, 16 short, 32 (IN_VIEW)
        ("kind", "u1"),  # index into EVENT_KINDS
        ("layer", "u1"),  # index into LAYERS, 255 for MPI communication
        ("function", "i4"),  # index into Job.function_names
        ("file", "i4"),
        ("count", "u4"),  # calls in this row
        ("start", "f8"),
        ("end", "f8"),  # last end where count > 1
        ("duration", "f8"),  # sum of durations where count > 1
        ("offset", "i8"),  # -1: not known; sequence number for collectives; peer << 32 | tag for p2p; flags of opens; size of truncates
        ("length", "i8"),
    ]
)
EVENT_KINDS: tuple[str, ...] = (
    *("open", "close", "read", "write", "seek", "stat", "sync", "flush", "map", "truncate", "other"),  # the log's ops
    "communicate",
)

#: Flag of an event whose offset counts the bytes that its process's view of the file shows, not those of the file.
IN_VIEW = 32

FILESYSTEM = np.dtype(
    [
        ("type", "U24"),  # ext4, lustre, gpfs, nfs, ceph, tmpfs, fuse.ceph-fuse ...
        ("mount", "U256"),
        ("block_size", "i8"),
        ("network", "i1"),
        ("host", "i4"),  # -1: the same for all hosts
    ]
)

#: Figures of pario's own MPI-IO that add up over the times a file was open, and those of which the largest counts.
MPIIO_SUMS: tuple[str, ...] = (
    *("collective_writes", "collective_reads", "independent_writes", "independent_reads"),  # calls of the program
    *("through_windows", "direct", "sieved"),  # calls by the way they took
    *("written_behind", "writes_behind"),  # calls that were kept back, and the system writes they became
    *("merged_calls", "merged_exchanges"),  # collective calls that were kept back, and the exchanges they became
    *("bytes_written", "bytes_read"),  # of the program
    *("system_writes", "system_write_bytes", "system_reads", "system_read_bytes"),  # what reached the file system
    *("stripe_sized_writes", "read_modify_writes", "gap_bytes"),
    *("messages", "message_bytes"),  # between nodes
)
MPIIO_LARGEST: tuple[str, ...] = ("writers", "aggregators", "stripe_count", "stripe_size")
#: Phases of its calls; of each the seconds of the rank with least, of the mean rank and of the rank with most.
MPIIO_PHASES: tuple[str, ...] = ("open", "calls", "wait", "copy", "messages", "file")

#: One row per file that pario's own MPI-IO has closed, over all ranks and all times that it was open.
MPIIO = np.dtype(
    [
        ("path", "i4"),  # index into Job.paths
        ("file", "i4"),  # row of Job.files, -1: it has none
        ("opens", "i8"),  # how often it was open
        ("ranks", "i4"),
        ("nodes", "i4"),
    ]
    + [(name, "i8") for name in (*MPIIO_SUMS, *MPIIO_LARGEST)]
    + [(f"{phase}_{which}", "f8") for phase in MPIIO_PHASES for which in ("least", "mean", "most")]
)


@dataclass(frozen=True)
class Layout:
    """Where the bytes of a striped file live: stripe ``i`` (``stripe_size`` bytes) is on ``targets[i % stripe_count]``."""

    kind: str  # lustre, ceph, ...
    stripe_size: int
    stripe_count: int
    targets: tuple[int, ...] = ()  # OST/OSD numbers in stripe order; empty: not known
    pool: str = ""


@dataclass(frozen=True)
class Communicator:
    """An MPI communicator as all its ranks know it."""

    id: int
    size: int
    ranks: tuple[int, ...]  # world ranks; empty: not known


@dataclass(frozen=True)
class Hint:
    """One MPI-IO hint of one file as one rank saw it."""

    file: int
    process: int
    key: str
    value: str
    when: Literal["requested", "effective"]


@dataclass(frozen=True)
class FileView:
    """What a process saw of a file from a call of MPI_File_set_view on, in the order of its calls."""

    process: int  # row of Job.processes
    file: int
    displacement: int  # negative: not known
    layout: str  # of the bytes from there on, in the notation of src/pattern; empty: not known


@dataclass(frozen=True)
class HintOutcome:
    """What became of one setting of one file in pario's own MPI-IO or its buffers, or of its stripes. Empty: there is none."""

    file: int  # row of Job.files, -1: it has none
    path: str
    key: str
    requested: str
    applied: str  # as understood; empty: the hint was not taken
    effective: str  # in force when the file was closed
    reason: str  # why these differ
    table: str = "mpiio"  # whose it is: mpiio (also hints of its striping), streams (buffers of files), striping (of any program)


@dataclass(frozen=True)
class LoaderUse:
    """What the loaders of one description did for the training loop of one process, in seconds."""

    process: int  # row of Job.processes
    kind: str  # DataLoader, Keras, pario.records.Loader
    data: str  # class of the data set, or its path
    workers: int  # processes or threads that load; 0: the loop itself does, -1: pario's threads, as many as are needed
    batch_size: int  # 0: not known
    processors: int = 0  # that the process may use
    batches: int = 0
    first: float = 0.0  # waits for the first batches of epochs
    waited: float = 0.0  # for the others
    worked: float = 0.0  # between them
    longest: float = 0.0  # wait


@dataclass(frozen=True)
class Unseen:
    """A part of the run that the tables do not hold, so that no verdict covers it."""

    text: str  # a clause: "rank 3 of 4 has no log"
    process: int = -1  # row of Job.processes that it belongs to; -1: the run


@dataclass
class Job:
    """Everything known of one job. ``has`` names what the log could know: a reader adds to it, analysis asks it.

    Members of ``has``: posix, stdio, mpiio, mpi (communication times), sync (collective start times, so waiting can be separated),
    events, sizes, sampled (text samples), alignment, per_rank (rows per rank, not only sums of shared files), streams
    (stdin/stdout/stderr), layout, hints, own_mpiio (pario's own MPI-IO carried out the calls: the tables mpiio and audit), threads,
    meta_split (open, close, seek, stat, sync and map times apart; without it ``other_time`` is the time of all calls that are neither
    read nor write, and sync time is in ``write_time``).
    """

    source: str
    format: Literal["pario", "darshan"]
    command: str = ""
    start: float = 0.0  # seconds since the epoch
    wall: float = 0.0  # seconds, first start to last end
    ranks: int = 1  # MPI ranks, or 1
    exit_status: int | None = None
    has: set[str] = field(default_factory=set)
    hosts: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    function_names: list[str] = field(default_factory=list)
    processes: NDArray[Any] = field(default_factory=lambda: np.zeros(0, PROCESS))
    records: NDArray[Any] = field(default_factory=lambda: np.zeros(0, RECORD))
    files: NDArray[Any] = field(default_factory=lambda: np.zeros(0, FILE))
    functions: NDArray[Any] = field(default_factory=lambda: np.zeros(0, FUNCTION))
    events: NDArray[Any] = field(default_factory=lambda: np.zeros(0, EVENT))
    filesystems: NDArray[Any] = field(default_factory=lambda: np.zeros(0, FILESYSTEM))
    layouts: list[Layout] = field(default_factory=list)
    communicators: list[Communicator] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    views: list[FileView] = field(default_factory=list)
    mpiio: NDArray[Any] = field(default_factory=lambda: np.zeros(0, MPIIO))
    audit: list[HintOutcome] = field(default_factory=list)
    loaders: list[LoaderUse] = field(default_factory=list)
    mpi_library: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)  # free: scheduler, user, versions
    unseen: list[Unseen] = field(default_factory=list)  # empty: the tables cover all processes
    messages: list[str] = field(default_factory=list)  # what the reader has to say: truncated, partial, skipped (never silent)

    def path(self, file: int) -> str:
        """The path of a row of ``files``."""
        return self.paths[int(self.files["path"][file])]
