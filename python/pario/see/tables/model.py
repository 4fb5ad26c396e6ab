"""The table model of one job, the same for every kind of log.

Readers fill it, analysis reads it, reporters never see a log. All tables are numpy structured
arrays; seconds are float64 relative to ``Job.start``; missing knowledge is *absent* (see
:attr:`Job.has`), never zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pario import _native


def _short(size: int) -> str:
    """Format a decimal size: ``10K``."""
    for factor, unit in ((10**9, "G"), (10**6, "M"), (10**3, "K")):
        if size >= factor:
            return f"{size // factor}{unit}"
    return str(size)


LAYERS: tuple[str, ...] = tuple(_native.layer_names())
#: The names of the layers in texts.
LAYER_NAMES = {
    "posix": "POSIX",
    "stdio": "stdio",
    "mpiio": "MPI-IO",
    "hdf5": "HDF5",
    "netcdf": "netCDF",
    "pnetcdf": "PnetCDF",
    "adios2": "ADIOS2",
}
#: The layers whose calls concern bytes of files; those after them are libraries that make such
#: calls, of which the log has rows, too.
FILE_LAYERS: tuple[str, ...] = LAYERS[: LAYERS.index("mpiio") + 1]

#: Size classes of the histograms: upper ends in bytes (decimal, as Darshan's); the last class is
#: open.
SIZE_BINS: tuple[int, ...] = tuple(_native.size_bins())
SIZE_NAMES: tuple[str, ...] = (
    *(
        f"{_short(below)}-{_short(end)}"
        for below, end in zip((0, *SIZE_BINS), SIZE_BINS, strict=False)
    ),
    f"{_short(SIZE_BINS[-1])}+",
)


@dataclass(frozen=True)
class Counter:
    """A row of src/core/trace/counters.def or process.def."""

    name: str
    unit: str  # count, bytes, ticks (a duration), time (a moment), ns, id
    use: str  # value, optional, size, key, unread
    meaning: str

    @property
    def type(self) -> str:
        """The type of its column: seconds are floats, all others integers."""
        return {"ticks": "f8", "time": "f8"}.get(self.unit, "i8")


#: The fields of a record and of a process in pario's logs.
COUNTERS: tuple[Counter, ...] = tuple(Counter(*row) for row in _native.counter_table())
PROCESS_FACTS: tuple[Counter, ...] = tuple(Counter(*row) for row in _native.process_table())
#: Their columns in the tables below, by name.
RECORD_COLUMNS: dict[str, Counter] = {row.name: row for row in COUNTERS if row.use == "value"}
PROCESS_COLUMNS: dict[str, Counter] = {
    row.name: row for row in PROCESS_FACTS if row.use in ("value", "optional")
}

#: One row per process image. After the columns that readers compute, the rows of
#: src/core/trace/process.def with the use ``value`` or ``optional``: -1 or NaN if not known.
PROCESS = np.dtype(
    [
        ("rank", "i4"),  # in MPI_COMM_WORLD, -1: not an MPI process
        ("host", "i4"),  # index into Job.hosts
        ("parent", "i8"),  # process ID of the parent
        ("exe", "i4"),  # index into Job.programs
        ("start", "f8"),
        ("seen", "f8"),  # last moment at which the process is known to have lived
        ("end_kind", "i4"),  # 0 running/killed, 1 exit, 2 _exit, 3 exec, 4 fatal signal, 5 abort
        ("end_code", "i4"),
        ("cpu_user", "f8"),
        ("cpu_system", "f8"),
        ("mpi_start", "f8"),  # MPI_Init returned; NaN: no MPI
        ("mpi_end", "f8"),  # MPI_Finalize called
        *((name, row.type) for name, row in PROCESS_COLUMNS.items()),
    ]
)

#: One row per process, file and layer. Moments that never happened are NaN. The columns between
#: ``layer`` and ``read_sizes`` are the rows of src/core/trace/counters.def with the use ``value``.
RECORD = np.dtype(
    [
        # row of Job.processes; -1: sum over all ranks (a Darshan shared-file record)
        ("process", "i4"),
        ("file", "i4"),  # row of Job.files
        ("layer", "u1"),  # index into LAYERS
        *((name, row.type) for name, row in RECORD_COLUMNS.items()),
        ("read_sizes", "i8", (len(SIZE_NAMES),)),
        ("write_sizes", "i8", (len(SIZE_NAMES),)),
        # Darshan's facts about single ranks, in rows with process == -1; else -1 or NaN
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
        # posix, stdio, mpiio, hdf5, netcdf, pnetcdf, p2p, wait, collective, rma, mpi, peers
        ("category", "U10"),
        ("calls", "i8"),
        ("seconds", "f8"),
        ("bytes", "i8"),
        ("slowest", "f8"),
        ("failed", "i8"),
    ]
)

#: One row per event, sorted by start. `file` is a row of Job.files, or for MPI communication the
#: index into Job.communicators.
EVENT = np.dtype(
    [
        ("process", "i4"),
        ("thread", "u1"),
        (
            "flags",
            "u1",
        ),  # 1 failed, 2 inside MPI-IO, 4 inside MPI, 8 collective, 16 short, 32 (IN_VIEW)
        ("kind", "u1"),  # index into EVENT_KINDS
        ("layer", "u1"),  # index into LAYERS, 255 for MPI communication
        ("function", "i4"),  # index into Job.function_names
        ("file", "i4"),
        ("count", "u4"),  # calls in this row
        ("start", "f8"),
        ("end", "f8"),  # last end where count > 1
        ("duration", "f8"),  # sum of durations where count > 1
        (
            "offset",
            "i8",
            # -1: not known; sequence number for collectives; peer << 32 | tag for p2p; flags of
            # opens; size of truncates
        ),
        ("length", "i8"),
    ]
)
#: The operations of the log, and MPI communication.
EVENT_KINDS: tuple[str, ...] = (*(name for name, _, _ in _native.op_table()), "communicate")

#: One row per process, call stack, function and file.
SITE = np.dtype(
    [
        ("process", "i4"),
        ("stack", "i4"),  # index into Job.stacks, -1: not known
        ("name", "i4"),  # index into Job.function_names
        ("kind", "u1"),  # index into EVENT_KINDS
        ("layer", "u1"),  # index into LAYERS, 255 for MPI communication
        ("file", "i4"),  # row of Job.files, -1: none, or further files than the log has rows for
        ("calls", "i8"),
        ("seconds", "f8"),
        ("bytes", "i8"),
    ]
)

#: Flag of an event whose offset counts bytes of its process's view of the file, not bytes of the
#: file.
IN_VIEW = 32
#: The ``end_kind`` of a process that started another program.
EXEC = 3
#: Flag of collective calls.
COLLECTIVE = 8

FILESYSTEM = np.dtype(
    [
        ("type", "U24"),  # ext4, lustre, gpfs, nfs, ceph, tmpfs, fuse.ceph-fuse ...
        ("mount", "U256"),
        ("block_size", "i8"),
        ("network", "i1"),
        ("host", "i4"),  # -1: the same for all hosts
    ]
)


def _mpiio_names(combination: str) -> tuple[str, ...]:
    return tuple(name for name, how in _native.mpiio_table() if how == combination)


#: The statistics of a file in pario's own MPI-IO (src/parallel/engine/statistics.def,
#: src/parallel/exchange/counters.def): those that add up over the times a file was open, those of
#: which the largest counts, and the phases of calls, whose columns are the seconds of the rank with
#: least, of the mean rank and of the rank with most.
MPIIO_SUMS: tuple[str, ...] = _mpiio_names("sum")
MPIIO_LARGEST: tuple[str, ...] = _mpiio_names("largest")
MPIIO_PHASES: tuple[str, ...] = _mpiio_names("phase")

#: One row per file that pario's own MPI-IO has closed, over all ranks and all times that it was
#: open.
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
    """The layout of a striped file: stripe ``i`` (``stripe_size`` bytes) is on ``targets[i %
    stripe_count]``."""

    kind: str  # lustre, ceph, ...
    stripe_size: int
    stripe_count: int
    targets: tuple[int, ...] = ()  # OST/OSD numbers in stripe order; empty: not known
    pool: str = ""


@dataclass(frozen=True)
class Frame:
    """A frame of a call stack. Frames of Python have a file, a line and no module."""

    module: str = ""  # path of the program or library; empty: Python, or not known
    address: int = 0  # in the file of the module, of the call; in memory without a module
    build_id: str = ""  # of the module, hexadecimal
    function: str = ""  # empty: not known
    file: str = ""  # of the source
    line: int = 0
    offset: int = -1  # of the address in the function, where the line is not known


@dataclass(frozen=True)
class Communicator:
    """An MPI communicator."""

    id: int
    size: int
    ranks: tuple[int, ...]  # world ranks; empty: not known


@dataclass(frozen=True)
class Hint:
    """An MPI-IO hint of a file, as seen by one rank."""

    file: int
    process: int
    key: str
    value: str
    when: Literal["requested", "effective"]


@dataclass(frozen=True)
class FileView:
    """The view of a file in a process after MPI_File_set_view, in the order of the calls."""

    process: int  # row of Job.processes
    file: int
    displacement: int  # negative: not known
    layout: str  # of the bytes from there on, in the notation of src/core/pattern; empty: not known


@dataclass(frozen=True)
class Dataset:
    """The properties of a dataset or variable when a process opened it. Empty or 0: not known."""

    file: int  # row of Job.files, whose path is FILE:/NAME
    element: int  # bytes of an element
    shape: tuple[int, ...]
    layout: str = ""  # compact, contiguous, chunked, virtual
    chunk: tuple[int, ...] = ()  # elements of a chunk in each dimension
    filters: tuple[str, ...] = ()
    cache: int = 0  # bytes of the chunk cache
    read_box: tuple[int, ...] = ()  # extents of the first selection read
    write_box: tuple[int, ...] = ()  # extents of the first selection written


@dataclass(frozen=True)
class HintOutcome:
    """The outcome of one setting of one file: in pario's own MPI-IO, in its buffers, or for its
    stripes. Empty: none."""

    file: int  # row of Job.files, -1: it has none
    path: str
    key: str
    requested: str
    applied: str  # as understood; empty: rejected
    effective: str  # in force when the file was closed
    reason: str  # the reason of a difference
    # its table: mpiio (also hints of its striping), streams (buffers of files), striping (of any
    # program)
    table: str = "mpiio"


@dataclass(frozen=True)
class LoaderUse:
    """The times of alike loaders in the training loop of one process, in seconds."""

    process: int  # row of Job.processes
    kind: str  # DataLoader, Keras, pario.records.Loader
    data: str  # class of the data set, or its path
    # processes or threads that load; 0: the loop itself does, -1: pario's threads, as many as are
    # needed
    workers: int
    batch_size: int  # 0: not known
    processors: int = 0  # that the process may use
    batches: int = 0
    first: float = 0.0  # waits for the first batches of epochs
    waited: float = 0.0  # for the others
    worked: float = 0.0  # between them
    longest: float = 0.0  # wait
    waits: TimeBins | None = None  # seconds of all waits; None: not known


@dataclass(frozen=True)
class TimeBins:
    """Values in equal intervals of time."""

    start: float  # of the first interval, seconds
    width: float  # of an interval, seconds
    values: tuple[float, ...]


@dataclass(frozen=True)
class ByteBins:
    """The bytes that one process moved in equal intervals of time, in calls of one layer."""

    process: int  # row of Job.processes
    layer: str
    start: float  # of the first interval, seconds
    width: float  # of an interval, seconds
    reads: NDArray[Any]  # bytes per interval
    writes: NDArray[Any]


@dataclass(frozen=True)
class Unseen:
    """A part of the run that the tables do not hold, and that no verdict covers."""

    text: str  # a clause: "rank 3 of 4 has no log"
    process: int = -1  # row of Job.processes that it belongs to; -1: the run
    program: str = ""  # the program that was not followed


@dataclass(frozen=True)
class CurrentCall:
    """A call that a thread had not finished when the log was read or its process was killed.

    Nested calls of a thread have rows of their own, the outermost with ``depth`` 0.
    """

    process: int  # row of Job.processes
    thread: int
    depth: int
    function: str
    category: str  # as in FUNCTION
    op: str
    path: str  # empty: none, or not known
    file: int  # row of Job.files, -1: none
    fifo: bool  # the file is a pipe
    start: float
    offset: int  # as in EVENT
    length: int  # bytes requested; 0: not known
    communicator: int  # index of Job.communicators, also of MPI-IO, -1: not known
    collective: bool


@dataclass
class Job:
    """All facts of one job. ``has`` names the kinds of facts that the log can have: readers add to
    it, analysis checks it.

    Members of ``has``: posix, stdio, mpiio, mpi (communication times), sync (collective start
    times, so waiting can be separated), events, sizes, sampled (text samples), alignment, per_rank
    (rows per rank, not only sums of shared files), streams (stdin/stdout/stderr), layout, hints,
    own_mpiio (pario's own MPI-IO carried out the calls: the tables mpiio and audit), threads, cpu
    (processor times; without them the time outside I/O is not known to be computation),
    meta_split (open, close, seek, stat, sync and map times apart; without it ``other_time`` is the
    time of all calls that are neither read nor write, and sync time is in ``write_time``).
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
    sites: NDArray[Any] = field(default_factory=lambda: np.zeros(0, SITE))
    stacks: list[tuple[Frame, ...]] = field(default_factory=list)  # innermost frame first
    filesystems: NDArray[Any] = field(default_factory=lambda: np.zeros(0, FILESYSTEM))
    layouts: list[Layout] = field(default_factory=list)
    communicators: list[Communicator] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    views: list[FileView] = field(default_factory=list)
    mpiio: NDArray[Any] = field(default_factory=lambda: np.zeros(0, MPIIO))
    audit: list[HintOutcome] = field(default_factory=list)
    datasets: list[Dataset] = field(default_factory=list)  # one for each file row of a dataset
    loaders: list[LoaderUse] = field(default_factory=list)
    heat: list[ByteBins] = field(default_factory=list)  # of logs without events
    mpi_library: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)  # free: scheduler, user, versions
    current: list[CurrentCall] = field(default_factory=list)
    running: tuple[int, ...] = ()  # rows of processes that ran on this host when the logs were read
    # the moment of reading if some process runs; NaN: none is known to run
    now: float = math.nan
    # the end of the command as its launcher saw it; NaN: not known
    command_end: float = math.nan
    events_left_out: bool = False  # the logs have events that were not read
    unseen: list[Unseen] = field(default_factory=list)  # empty: the tables cover all processes
    messages: list[str] = field(default_factory=list)  # remarks of the reader on gaps in the logs

    def path(self, file: int) -> str:
        """Return the path of a row of ``files``."""
        return self.paths[int(self.files["path"][file])]

    def select_functions(self, matches: Callable[[str], object]) -> NDArray[np.bool_]:
        """Return the mask of the ``function_names`` that ``matches`` accepts, for columns of
        functions and events; not empty even if there are no names."""
        return np.array([bool(matches(name)) for name in self.function_names] or [False])
