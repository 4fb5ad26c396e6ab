"""What analysis finds: the verdict, the findings and the tables a reporter shows. Plain data,
JSON-able by ``dataclasses.asdict``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class Split:
    """Seconds of the wall time, disjoint, summing to ``wall``."""

    compute: float
    communication: float
    waiting: float
    io: float

    @property
    def wall(self) -> float:
        """Seconds that are split."""
        return self.compute + self.communication + self.waiting + self.io


@dataclass(frozen=True)
class Verdict:
    """Is the job I/O-bound? One sentence, and the split it rests on."""

    sentence: str  # "I/O-bound: 58 % of 12.3 s on the critical path is I/O, most of it ..."
    bound: Literal[
        "io", "communication", "waiting", "compute", "idle", "little", "unknown"
    ]  # little: hardly any I/O
    critical: Split  # along the critical path: I/O that others wait for counts as I/O
    slowest: Split  # of the rank with the most I/O
    slowest_rank: int  # -1: no MPI
    mean: Split
    method: str  # how waiting and the critical path were determined
    not_known: tuple[str, ...] = ()  # "MPI time (the log has none)"
    unseen: tuple[
        str, ...
    ] = ()  # "rank 3 of 4 has no log"; empty: the verdict covers the whole run


@dataclass(frozen=True)
class Evidence:
    """One fact: text for people, numbers for machines."""

    text: str
    file: str | None = None
    ranks: tuple[int, ...] = ()
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Fix:
    """What to do. ``setting``: a pario setting; ``code``: a change of calls; ``command``: to be
    typed."""

    kind: Literal["setting", "code", "command"]
    text: str


@dataclass(frozen=True)
class FileSetting:
    """A setting of pario that repairs a finding, as it stands in a settings file
    (docs/settings.md)."""

    table: str  # run, mpiio, striping, streams, stdio
    key: str
    value: str
    risky: bool  # proposed, but not applied unless the user allows it
    effect: str  # what it changes


@dataclass(frozen=True)
class Finding:
    """One cause of lost time. The same seconds are never in two findings."""

    rule: str  # key in the table of rules, e.g. "small-writes"
    title: str  # one line naming cause and place: "2,000,000 writes of 512 B to out.dat"
    cause: str  # why this is slow, two sentences at most
    seconds: float  # of the job's wall time that the fix would give back
    method: str  # how the seconds were estimated
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    files: tuple[str, ...] = ()  # the worst first, at most 10
    file_count: int = 0
    ranks: tuple[int, ...] = ()  # concerned; empty: all
    remedy: str = ""  # what saves the seconds, in a few words that can stand after "by"
    settings: tuple[
        FileSetting, ...
    ] = ()  # with which pario repairs it, the program as it is; empty: it cannot
    why_not: str = ""  # why no setting repairs it: the program itself has to be changed


@dataclass(frozen=True)
class FunctionRow:
    """One function over all ranks. Times include those of the calls made inside."""

    name: str
    category: str
    calls: int
    seconds: float  # sum over ranks
    # of the sum of all ranks' wall time; of threads that run side by side the busiest counts
    share: float
    mean: float  # per rank
    slowest: float  # the slowest rank's; the mean where it is not known
    slowest_rank: int  # -1: not known, or no MPI
    imbalance: float  # (slowest - mean) / slowest
    waiting: float  # seconds of these that are waiting for other ranks; 0 when not known
    bytes: int
    inside: str = ""  # "MPI-IO", "MPI": most of its time is part of those calls' time, too
    inside_seconds: float = 0.0  # seconds that are


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
    metadata: int  # all other calls
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
    group: str = (
        ""  # not one file but several, and what they have in common; `path` says it in words
    )
    files: int = 1  # that the row stands for

    @property
    def seconds(self) -> float:
        """All calls together, sum over ranks."""
        return self.read_seconds + self.write_seconds + self.meta_seconds

    @property
    def calls(self) -> int:
        """Calls of any kind."""
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
    """A stretch of time in which the job does I/O."""

    start: float
    end: float
    kind: str  # "write", "read", "mixed", "metadata"
    bytes: int
    ranks: int
    io_seconds: float


@dataclass(frozen=True)
class Contention:
    """Which ranks touch which stripe target (or lock unit) of one file."""

    path: str
    unit: str  # "OST", "OSD", "1 MiB block"
    targets: tuple[str, ...]
    ranks: tuple[str, ...]  # labels of rows
    bytes: tuple[tuple[int, ...], ...]  # [rank row][target]
    ranks_per_target: tuple[int, ...]
    shared_units: int  # units touched by more than one rank
    note: str = ""


HintState = Literal["not taken", "not in force", "without meaning", "overruled", "in force"]


@dataclass(frozen=True)
class HintRow:
    """What became of one setting in pario's own MPI-IO, or in the buffers of files."""

    key: str
    requested: str
    applied: str  # as understood; empty: not taken
    effective: str  # in force when the file was closed
    reason: str
    state: HintState
    files: tuple[str, ...]  # for which it was so, at most 10
    file_count: int
    table: str = "mpiio"  # or streams


@dataclass(frozen=True)
class StreamRow:
    """What the buffers of one file did, over all processes."""

    path: str
    reads: int  # calls of the program on the file, buffered or not
    writes: int
    buffered_read_bytes: int  # of these calls, what went through buffers
    buffered_write_bytes: int
    system_reads: int  # calls beneath the buffers
    system_read_bytes: int
    system_read_seconds: float
    system_writes: int
    system_write_bytes: int
    system_write_seconds: float
    buffers_used: int  # that were filled
    prefetches: int  # buffers read ahead in the background
    preflushes: int  # full buffers written in the background
    wasted_bytes: int  # read ahead, and never asked for


@dataclass(frozen=True)
class LoaderRow:
    """Waits of training loops for the loaders of one description, over all processes."""

    loader: str  # DataLoader, Keras, pario.records.Loader
    data: str  # class of the data set, or its path
    loops: int  # processes with such a loop
    workers: int  # of each; 0: the loop loads by itself, -1: pario's threads
    batch_size: int  # 0: not known
    batches: int
    first_seconds: float  # waits for the first batches of epochs
    waited: float  # for the others, sum over loops
    worked: float  # between them
    stalled: float  # waited / (waited + worked), 0..1
    longest: float  # of the waits
    samples_per_second: float  # of all loops together; 0: not known


@dataclass(frozen=True)
class MpiioPhase:
    """A part of the time in pario's own MPI-IO, in seconds."""

    name: str  # open, calls (all of a call), and of these wait, copy, messages, file
    least: float  # of the rank with least
    mean: float
    most: float


@dataclass(frozen=True)
class MpiioRow:
    """What pario's own MPI-IO did with one file, over all ranks and all times that it was open."""

    path: str
    opens: int
    ranks: int
    nodes: int
    collective_writes: int  # calls of the program, all ranks
    collective_reads: int
    independent_writes: int
    independent_reads: int
    through_windows: int  # collective calls, by the way they took
    direct: int
    sieved: int
    written_behind: int  # calls that were kept back
    writes_behind: int  # system writes that they became
    merged_calls: int  # collective calls that were kept back
    merged_exchanges: int  # exchanges that they became
    bytes_written: int  # of the program
    bytes_read: int
    system_writes: int  # calls to the file system
    system_write_bytes: int
    average_system_write: float
    stripe_sized_writes: int
    system_reads: int
    system_read_bytes: int
    read_modify_writes: int
    gap_bytes: int  # of holes that were written back
    messages: int  # between nodes
    message_bytes: int
    writers: int  # ranks that wrote to the file system
    aggregators: int  # nodes that did
    stripe_count: int
    stripe_size: int
    net: float  # bytes per second: the program's, over the time in calls of the slowest rank
    raw: float  # the file system's, over the time in the file of the slowest rank
    phases: tuple[MpiioPhase, ...]


@dataclass(frozen=True)
class JobInfo:
    """What the job was."""

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
    files: int  # storage files of the program: not the MPI library's, nor files looked for in vain
    directory: str = ""  # in which it was started; empty: not known
    settings: tuple[tuple[str, str], ...] = ()  # variables with which I/O was set: name, value
    calls: int = 0  # to storage, all layers
    system_reads: int = -1  # read calls that reached the kernel, sockets included; -1: not known
    system_writes: int = -1  # write calls


@dataclass(frozen=True)
class Analysis:
    """All that a report shows."""

    job: JobInfo
    verdict: Verdict
    findings: tuple[Finding, ...]  # by seconds, most first
    functions: tuple[FunctionRow, ...]
    files: tuple[FileRow, ...]  # by seconds, at most 1000; after them the groups
    file_total: int  # single files, shown or not
    filesystems: tuple[FileSystemRow, ...]
    sizes: tuple[SizeRow, ...]
    timeline: Timeline | None
    phases: tuple[Phase, ...]
    contention: tuple[Contention, ...]
    hints: tuple[tuple[str, str, str, str], ...] = ()  # file, key, requested, effective
    messages: tuple[str, ...] = ()
    audit: tuple[
        HintRow, ...
    ] = ()  # settings of pario's own MPI-IO and of buffers, what went wrong first
    streams: tuple[StreamRow, ...] = ()  # buffered files by the program's calls, at most 1000
    streams_total: int = 0
    loaders: tuple[LoaderRow, ...] = ()  # what training loops waited for, most first
    mpiio: tuple[MpiioRow, ...] = ()  # files of pario's own MPI-IO by time, at most 1000
    mpiio_total: int = 0
