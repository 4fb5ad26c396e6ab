"""The result of analysis: the verdict, the findings and the tables of a report. Plain data,
JSON-able by ``dataclasses.asdict``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pario.see.analyze.mpiio_model import MpiioRow
from pario.see.analyze.progress_model import Progress

Confidence = Literal["high", "medium", "low"]
#: The largest part of the time. idle: the processes slept; little: hardly any I/O in a short run;
#: other: outside I/O, and the log does not know where.
Bound = Literal["io", "communication", "waiting", "compute", "idle", "little", "other", "unknown"]
#: worthwhile: findings save a noticeable part of the run; healthy: nothing is worth changing;
#: unexplained: I/O costs much, and no finding explains it; unknown: the log does not tell.
Grade = Literal["worthwhile", "healthy", "unexplained", "unknown"]

#: The share of a run's bytes from which on it read its files from storage.
COLD = 0.5
#: The most rows of each table; the last ones are left out.
MOST_ROWS = 1000


@dataclass(frozen=True)
class Split:
    """Disjoint parts of the wall time in seconds; their sum is ``wall``."""

    compute: float
    communication: float
    waiting: float
    io: float
    divided: bool = True  # False: ``compute`` is all time outside I/O and MPI, not computation
    idle: bool = False  # True: in most of ``compute`` the processes used no processor
    peers: float = 0.0  # of ``compute``: without a processor, in poll, recv, reads of pipes

    @property
    def wall(self) -> float:
        """The wall time in seconds."""
        return self.compute + self.communication + self.waiting + self.io

    @property
    def waits_for_peers(self) -> bool:
        """True if the processes mostly waited for others, or for users."""
        return self.idle and self.peers >= 0.5 * self.compute


@dataclass(frozen=True)
class Verdict:
    """One sentence on the cost of the I/O and the most valuable change, and the split behind it."""

    sentence: str  # "I/O-bound: I/O costs 7.1 s (58 %) of the 12.3 s run; 4.6 s (37 %) could ..."
    bound: Bound
    critical: Split  # along the critical path: I/O for which other ranks wait counts as I/O
    slowest: Split  # of the rank with the most I/O
    slowest_rank: int  # -1: no MPI
    mean: Split
    method: str  # how waiting and the critical path were determined
    not_known: tuple[str, ...] = ()  # "MPI time (the log has none)"
    # "rank 3 of 4 has no log"; empty: the verdict covers the whole run
    unseen: tuple[str, ...] = ()
    grade: Grade = "unknown"
    covered: bool = True  # False: the sentence begins with parts of the run that were not seen

    @property
    def is_complete(self) -> bool:
        """True if the run is known well enough for a judgement of the whole of it."""
        return self.covered and self.grade != "unknown"


@dataclass(frozen=True)
class Evidence:
    """One fact: text for people, numbers for machines."""

    text: str
    file: str | None = None
    ranks: tuple[int, ...] = ()
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fix:
    """A repair. ``setting``: a setting of pario or of the job; ``code``: a change of calls;
    ``command``: a command to type."""

    kind: Literal["setting", "code", "command"]
    text: str


@dataclass(frozen=True)
class FileSetting:
    """A setting of pario that repairs a finding, as in a settings file (docs/settings.md)."""

    table: str  # run, mpiio, striping, streams, stdio
    key: str
    value: str
    risky: bool  # proposed, but not applied unless the user allows it
    effect: str  # a clause on the change that it makes


@dataclass(frozen=True)
class CallSite:
    """A place in the program: the innermost frame of the user's code of some calls."""

    # "solver.c:118 in write_halo"; without debug information "write_halo+0x1c in solver"
    place: str
    file: str  # path of the source, as compiled; empty: not known
    line: int  # 0: not known
    calls: int
    share: float  # of the calls of the finding, 0..1
    seconds: float  # in these calls, sum over threads
    bytes: int
    callers: tuple[str, ...] = ()  # places of the user's code that call it, innermost first


@dataclass(frozen=True)
class StackRow:
    """The I/O of one call stack."""

    frames: tuple[str, ...]  # outermost first; the last one is the traced function
    seconds: float  # sum over threads
    calls: int


@dataclass(frozen=True)
class Finding:
    """One cause of lost time. No two findings count the same seconds."""

    rule: str  # key in the table of rules, e.g. "small-writes"
    title: str  # one line naming cause and place: "2,000,000 writes of 512 B to out.dat"
    cause: str  # why this is slow, two sentences at most
    seconds: float  # of the job's wall time that a repair would save
    method: str  # how the seconds were estimated
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    files: tuple[str, ...] = ()  # the worst first, at most 10
    file_count: int = 0
    ranks: tuple[int, ...] = ()  # affected ranks; empty: all
    remedy: str = ""  # the repair, in a few words that fit after "by"
    # settings of pario that repair it without a change of the program; empty: none does
    settings: tuple[FileSetting, ...] = ()
    sites: tuple[CallSite, ...] = ()  # lines that make the calls, most seconds first
    why_not: str = ""  # why no setting repairs it, if only a change of the program does
    # a sentence on the rate of its calls, and its share of the best rate of the same file system
    pace: str = ""
    measured: bool = False  # True: replays measured the seconds; False: an estimate
    # the range of the seconds: of an estimate, or of single replays; both 0: not known
    least: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class FunctionRow:
    """One function over all ranks. Times include nested calls."""

    name: str
    category: str
    calls: int
    seconds: float  # sum over ranks
    # of the sum of all ranks' wall time; only the busiest thread of a process counts
    share: float
    mean: float  # per rank
    slowest: float  # the slowest rank's; the mean if it is not known
    slowest_rank: int  # -1: not known, or no MPI
    imbalance: float  # (slowest - mean) / slowest
    waiting: float  # the part of the seconds that is waiting for other ranks; 0 if not known
    bytes: int
    inside: str = ""  # "MPI-IO", "MPI": most of its time is inside such calls
    inside_seconds: float = 0.0  # seconds inside such calls


@dataclass(frozen=True)
class FileRow:
    """One file over all ranks; seconds do not count a call inside an MPI-IO call twice."""

    path: str
    layers: tuple[str, ...]
    filesystem: str
    ranks: int
    reads: int
    writes: int
    opens: int
    metadata: int  # closes, seeks, stats, syncs, listings, others
    bytes_read: int
    bytes_written: int
    read_seconds: float  # sum over ranks
    write_seconds: float
    meta_seconds: float
    slowest_rank: int
    slowest_seconds: float
    fastest_rank: int
    fastest_seconds: float
    folded: bool = False
    stream: bool = False  # a terminal, pipe or socket
    group: str = ""  # name of a group of files that the row sums up; `path` is then its title
    files: int = 1  # files in the row

    @property
    def seconds(self) -> float:
        """Seconds in all calls, sum over ranks."""
        return self.read_seconds + self.write_seconds + self.meta_seconds

    @property
    def calls(self) -> int:
        """Reads, writes, opens and metadata calls."""
        return self.reads + self.writes + self.opens + self.metadata


@dataclass(frozen=True)
class FileSystemRow:
    """One mounted file system."""

    type: str
    mount: str
    files: int
    bytes_read: int
    bytes_written: int
    seconds: float
    calls: int


@dataclass(frozen=True)
class SizeRow:
    """Access sizes of one layer: calls per size class (model.SIZE_NAMES)."""

    layer: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Outlier:
    """A single call that took far longer than the others of its kind."""

    function: str
    file: str
    lane: int  # -1: not known
    rank: int  # -1: not known, or no MPI
    start: float  # seconds since the start of the job; NaN: not known
    seconds: float
    usual: float  # median of the calls of its kind; without events the mean of the others
    calls: int  # of its kind, itself included


@dataclass(frozen=True)
class Timeline:
    """I/O over time, binned so that its size does not grow with the log: rows = ranks (or groups of
    ranks), columns = time bins."""

    bin_seconds: float
    start: float
    labels: tuple[str, ...]  # "rank 3", "ranks 0-15"
    read_share: tuple[tuple[float, ...], ...]  # share of the bin's time spent reading, 0..1
    write_share: tuple[tuple[float, ...], ...]
    meta_share: tuple[tuple[float, ...], ...]
    mpi_share: tuple[tuple[float, ...], ...]
    bytes_read: tuple[float, ...]  # per bin, all ranks
    bytes_written: tuple[float, ...]
    exact: bool = True  # False: from first/last times of the counters, not from events


@dataclass(frozen=True)
class Phase:
    """An interval in which the job does I/O."""

    start: float
    end: float
    kind: str  # "write", "read", "mixed", "metadata"
    bytes: int
    ranks: int
    io_seconds: float


@dataclass(frozen=True)
class Contention:
    """The bytes of each rank on each stripe target (or lock unit) of one file."""

    path: str
    unit: str  # "OST", "OSD", "1 MiB block"
    targets: tuple[str, ...]
    ranks: tuple[str, ...]  # labels of rows
    bytes: tuple[tuple[int, ...], ...]  # [rank row][target]
    ranks_per_target: tuple[int, ...]
    shared_units: int  # units that more than one rank accesses
    note: str = ""


@dataclass(frozen=True)
class WriteRange:
    """Bytes ``[begin, end)`` of a file that two writes without an order write."""

    begin: int
    end: int
    writers: tuple[str, str]  # "rank 3", "process 4711"
    functions: tuple[str, str]
    times: tuple[float, float]  # starts
    places: tuple[str, str] = ("", "")  # lines of the program; empty: not known


@dataclass(frozen=True)
class OverlappingWrites:
    """Possible corruption of a file: writes of different ranks or processes overlap, and nothing
    orders them."""

    path: str
    bytes: int  # distinct bytes
    ranks: tuple[int, ...]  # writers; empty without MPI
    processes: tuple[int, ...]  # their process IDs
    ranges: tuple[WriteRange, ...]  # the largest, at most 10
    range_total: int


HintState = Literal["not taken", "not in force", "without meaning", "overruled", "in force"]


@dataclass(frozen=True)
class HintRow:
    """The outcome of one setting of pario's own MPI-IO, or of the buffers of files."""

    key: str
    requested: str
    applied: str  # as understood; empty: rejected
    effective: str  # in force when the file was closed
    reason: str
    state: HintState
    files: tuple[str, ...]  # files with this outcome, at most 10
    file_count: int
    table: str = "mpiio"  # or streams


@dataclass(frozen=True)
class StreamRow:
    """The statistics of the buffers of one file, over all processes."""

    path: str
    reads: int  # calls of the program on the file, buffered or not
    writes: int
    buffered_read_bytes: int  # bytes of these calls that went through buffers
    buffered_write_bytes: int
    system_reads: int  # calls of the buffers to the file system
    system_read_bytes: int
    system_read_seconds: float
    system_writes: int
    system_write_bytes: int
    system_write_seconds: float
    buffers_used: int  # filled buffers
    prefetches: int  # buffers read ahead in the background
    preflushes: int  # full buffers written in the background
    wasted_bytes: int  # read ahead, and never requested


@dataclass(frozen=True)
class LoaderRow:
    """Waits of training loops for the loaders of one description, over all processes."""

    loader: str  # DataLoader, Keras, pario.records.Loader
    data: str  # class of the data set, or its path
    loops: int  # processes with such a loop
    workers: int  # of each loop; 0: the loop loads by itself, -1: pario's threads
    batch_size: int  # 0: not known
    batches: int
    first_seconds: float  # waits for the first batches of epochs
    waited: float  # waits for all other batches, sum over loops
    worked: float  # time between the waits
    stalled: float  # waited / (waited + worked), 0..1
    longest: float  # the longest wait
    samples_per_second: float  # of all loops together; 0: not known
    # the loops' part of each bin of the timeline in which they wait, 0..1; empty: not known
    wait_share: tuple[float, ...] = ()


@dataclass(frozen=True)
class JobInfo:
    """The facts of the job."""

    source: str
    format: str
    command: str
    start: float
    wall: float
    ranks: int
    processes: int  # of the program, not of its launcher
    hosts: tuple[str, ...]
    exit_status: int | None
    mpi_library: str
    bytes_read: int  # from storage, by the lowest layer
    bytes_written: int
    files: int  # storage files of the program, without the MPI library's and missing files
    directory: str = ""  # working directory at the start; empty: not known
    settings: tuple[tuple[str, str], ...] = ()  # variables that configure I/O: name, value
    calls: int = 0  # to storage, all layers
    system_reads: int = -1  # read calls that reached the kernel, sockets included; -1: not known
    system_writes: int = -1  # write calls
    user: str = ""  # empty: not known
    program: str = ""  # name without launcher and interpreter; empty: not known


@dataclass(frozen=True)
class Unattributed:
    """I/O that pario cannot attribute to files."""

    mechanism: str  # "io_uring": a noun that fits after "through"
    bytes: int
    calls: int
    seconds: float  # at most; 0: not known


@dataclass(frozen=True)
class KernelTotals:
    """The kernel's counters of the program's processes, beside the traced calls. Bytes of calls are
    moved by read and write calls, also on pipes and sockets, but not by the tracer's own."""

    read: int  # bytes of calls
    written: int
    read_accounted: int  # the part that the tables or pipes and sockets explain
    written_accounted: int
    storage_read: int  # bytes from and to devices
    storage_written: int
    major_faults: int
    block_io_seconds: float | None  # waiting for devices, sum over threads; None: not known
    run_queue_seconds: float | None  # waiting for a processor, sum over threads
    run_queue_share: float  # of the run, of a mean busy thread of the process that waited longest
    busy: int  # mean number of runnable threads
    processors: int  # that the processes may use
    unattributed: tuple[Unattributed, ...]  # empty: at least 95 % of the I/O was seen


@dataclass(frozen=True)
class Analysis:
    """The content of a report."""

    job: JobInfo
    verdict: Verdict
    findings: tuple[Finding, ...]  # by seconds, most first
    functions: tuple[FunctionRow, ...]
    files: tuple[FileRow, ...]  # by seconds, at most MOST_ROWS; after them the groups
    file_total: int  # single files, shown or not
    filesystems: tuple[FileSystemRow, ...]
    sizes: tuple[SizeRow, ...]
    timeline: Timeline | None
    phases: tuple[Phase, ...]
    contention: tuple[Contention, ...]
    hints: tuple[tuple[str, str, str, str], ...] = ()  # file, key, requested, effective
    messages: tuple[str, ...] = ()
    # settings of pario's own MPI-IO and of buffers, failed ones first
    audit: tuple[HintRow, ...] = ()
    streams: tuple[StreamRow, ...] = ()  # buffered files by the program's calls
    streams_total: int = 0
    loaders: tuple[LoaderRow, ...] = ()  # by waits of training loops, longest first
    mpiio: tuple[MpiioRow, ...] = ()  # files of pario's own MPI-IO by time
    mpiio_total: int = 0
    outliers: tuple[Outlier, ...] = ()  # single slow calls, longest first, at most 10
    stacks: tuple[StackRow, ...] = ()  # call stacks of I/O by seconds
    kernel: KernelTotals | None = None  # None: the log has no counters of the kernel
    progress: Progress = field(default_factory=Progress)
    overlaps: tuple[OverlappingWrites, ...] = ()  # possible corruption, most bytes first

    @property
    def cold(self) -> bool:
        """True if the run read most bytes from storage, not from the page cache; False if that is
        not known."""
        read = self.job.bytes_read
        return self.kernel is not None and read > 0 and self.kernel.storage_read >= COLD * read

    @property
    def seconds_lost(self) -> float:
        """The seconds of wall time that the repairs of all findings would save."""
        return sum(finding.seconds for finding in self.findings)
