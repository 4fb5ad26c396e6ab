"""The tables of pario's own MPI-IO: calls, system calls, times."""

from __future__ import annotations

from collections.abc import Sequence

from pario import wording
from pario.see.analyze.mpiio_model import MpiioPhase, MpiioRow
from pario.see.report.table import (
    BYTES,
    HTML_ONLY,
    PATH,
    RATE,
    SECONDS,
    Column,
    Table,
    count_column,
    field_column,
)
from pario.see.report.tables.settings import NAME_LENGTH

_FILE: Column[MpiioRow] = Column("File", lambda row: row.path, PATH, flexible=True)
_CALLS: tuple[Column[MpiioRow], ...] = (
    _FILE,
    count_column("ranks", "ranks", zeros=True),
    count_column("nodes", "nodes", zeros=True, least_width=HTML_ONLY),
    count_column("collective writes", "collective_writes", "calls", short="coll. writes"),
    count_column("independent writes", "independent_writes", "calls", short="indep."),
    count_column("collective reads", "collective_reads", "calls", short="coll. reads"),
    count_column("independent reads", "independent_reads", "calls", short="indep."),
    count_column("windows", "through_windows", "collective calls that went through windows"),
    count_column("direct", "direct", "collective calls in which each rank moved its own pieces"),
    count_column("sieved", "sieved", "independent calls through a sieve window"),
    count_column(
        "delayed", "written_behind", "independent calls that were delayed and written together"
    ),
    count_column(
        "merged", "merged_calls", "collective calls that were delayed and exchanged together"
    ),
)
_SYSTEM: tuple[Column[MpiioRow], ...] = (
    _FILE,
    count_column("writers", "writers", "ranks that wrote", least_width=HTML_ONLY),
    count_column("system writes", "system_writes", "calls to the file system", short="writes"),
    field_column("average", "average_system_write", BYTES, "bytes of a system write", short="of"),
    count_column("whole stripes", "stripe_sized_writes", "system writes of whole stripes"),
    count_column("system reads", "system_reads", "calls to the file system", short="reads"),
    count_column(
        "read-modify-write",
        "read_modify_writes",
        "windows that were read to be written back",
        short="read-modify-write",
    ),
    field_column("holes", "gap_bytes", BYTES, "bytes in windows that no rank wrote"),
    count_column("messages", "messages", "between nodes"),
)
_PHASES = (
    ("open", "open", "opening the file"),
    ("in calls", "calls", "all time in reads and writes"),
    ("waiting", "wait", "of that: waiting for other ranks"),
    ("copying", "copy", "of that: between the program's memory and windows"),
    ("messages", "messages", "of that: between nodes"),
    ("file", "file", "of that: in the file system"),
)


def tables(rows: Sequence[MpiioRow], total: int = 0) -> list[Table[MpiioRow]]:
    """Return the three tables, each with a row per file."""
    made = (
        ("Calls of the program", _CALLS, "calls of all ranks, and their execution"),
        ("Calls to the file system", _SYSTEM, "calls of all ranks that reached the file system"),
        ("Times", _times(), "seconds of the slowest rank, and bandwidth"),
    )
    return [
        Table(title, columns, rows, note, total, "file", name_length=NAME_LENGTH)
        for title, columns, note in made
    ]


def _times() -> tuple[Column[MpiioRow], ...]:
    return (
        _FILE,
        *(_phase_column(*phase) for phase in _PHASES),
        field_column("net", "net", RATE, "bytes of the program over the time in calls"),
        field_column("raw", "raw", RATE, "bytes of the system calls over the time in the file"),
    )


def _phase_column(title: str, name: str, note: str) -> Column[MpiioRow]:
    def phase(row: MpiioRow) -> MpiioPhase | None:
        return next((phase for phase in row.phases if phase.name == name), None)

    def seconds(row: MpiioRow) -> float:
        found = phase(row)
        return found.most if found else 0.0

    def others(row: MpiioRow) -> str:
        found = phase(row)
        if not found:
            return ""
        return f"mean {wording.seconds(found.mean)}, fastest {wording.seconds(found.least)}"

    return Column(title, seconds, SECONDS, note, detail=others)
