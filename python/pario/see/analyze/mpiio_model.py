"""The statistics of files in pario's own MPI-IO, as a report shows them: plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MpiioPhase:
    """A part of the time in pario's own MPI-IO, in seconds."""

    name: str  # open, calls (whole calls), and their parts wait, copy, messages, file
    least: float  # of the rank with least
    mean: float
    most: float


@dataclass(frozen=True)
class MpiioRow:
    """The statistics of one file in pario's own MPI-IO, over all ranks and openings."""

    path: str
    opens: int
    ranks: int
    nodes: int
    collective_writes: int  # calls of the program, all ranks
    collective_reads: int
    independent_writes: int
    independent_reads: int
    through_windows: int  # calls by their path, see docs/report-json.md
    direct: int
    ran_ahead: int
    sieved: int
    written_behind: int  # delayed independent calls
    writes_behind: int  # system writes of these calls
    merged_calls: int  # delayed collective calls
    merged_exchanges: int  # exchanges of these calls
    bytes_written: int  # of the program
    bytes_read: int
    system_writes: int  # calls to the file system
    system_write_bytes: int
    average_system_write: float
    stripe_sized_writes: int
    system_reads: int
    system_read_bytes: int
    read_modify_writes: int
    gap_bytes: int  # of holes in windows that were written back
    messages: int  # between nodes
    message_bytes: int
    writers: int  # ranks that wrote to the file system
    aggregators: int  # nodes that wrote to the file system
    stripe_count: int
    stripe_size: int
    net: float  # bytes per second: the program's, over the time in calls of the slowest rank
    raw: float  # the file system's, over the time in the file of the slowest rank
    phases: tuple[MpiioPhase, ...]
