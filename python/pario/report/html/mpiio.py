"""The page's tables of pario's own MPI-IO: hints, calls and what became of them, times."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pario import wording
from pario.analyze.model import HintRow, MpiioRow
from pario.report.html.audit import NAME_LENGTH, hints
from pario.report.html.table import Column, Table, bytes_text, count_text, path_text, table

_PHASES = (
    ("open", "open", "opening the file"),
    ("in calls", "calls", "all time in reads and writes"),
    ("waiting", "wait", "of that: waiting for other ranks"),
    ("copying", "copy", "of that: between the program's memory and windows"),
    ("messages", "messages", "of that: between nodes"),
    ("file", "file", "of that: in the file system"),
)


def tables(audit: Sequence[HintRow], rows: Sequence[MpiioRow]) -> list[tuple[Table, str]]:
    """The tables that have rows, each with what is to be said of it."""
    made = [
        (hints(audit), "What was requested, what pario understood, and what was in force when the file was closed."),
        (_calls(rows), "Calls of all ranks, and the ways they took."),
        (_system(rows), "What reached the file system for them, from all ranks."),
        (_times(rows), "Seconds of the slowest rank; pointing at them shows the mean and the fastest."),
    ]
    return [(one, note) for one, note in made if one.rows]


def _file() -> Column[MpiioRow]:
    return Column("file", lambda row: path_text(row.path, NAME_LENGTH), css="")


def _calls(rows: Sequence[MpiioRow]) -> Table:
    columns: list[Column[MpiioRow]] = [
        _file(),
        Column("ranks", lambda row: wording.count(row.ranks), lambda row: row.ranks),
        Column("nodes", lambda row: wording.count(row.nodes), lambda row: row.nodes),
        _counted("collective writes", "collective_writes", "calls"),
        _counted("collective reads", "collective_reads", "calls"),
        _counted("independent writes", "independent_writes", "calls"),
        _counted("independent reads", "independent_reads", "calls"),
        _counted("windows", "through_windows", "collective calls that went through windows"),
        _counted("direct", "direct", "collective calls in which each rank moved its own pieces"),
        _counted("sieved", "sieved", "independent calls through a sieve window"),
        _counted("kept back", "written_behind", "independent calls that were kept back and written together"),
        _counted("merged", "merged_calls", "collective calls that were kept back and exchanged together"),
    ]
    return table("Calls of the program", columns, rows)


def _system(rows: Sequence[MpiioRow]) -> Table:
    columns: list[Column[MpiioRow]] = [
        _file(),
        _counted("writers", "writers", "ranks that wrote"),
        _counted("system writes", "system_writes", "calls to the file system"),
        Column(
            "average", lambda row: bytes_text(row.average_system_write), lambda row: row.average_system_write, "bytes of a system write"
        ),
        _counted("whole stripes", "stripe_sized_writes", "system writes that are whole stripes"),
        _counted("system reads", "system_reads", "calls to the file system"),
        _counted("read-modify-write", "read_modify_writes", "windows that were read to be written back"),
        Column("holes", lambda row: bytes_text(row.gap_bytes), lambda row: row.gap_bytes, "bytes in windows that nobody wrote"),
        _counted("messages", "messages", "between nodes"),
    ]
    return table("Calls to the file system", columns, rows)


def _counted(heading: str, name: str, tip: str) -> Column[MpiioRow]:
    return Column(heading, lambda row: count_text(getattr(row, name)), lambda row: float(getattr(row, name)), tip)


def _times(rows: Sequence[MpiioRow]) -> Table:
    columns = [_file(), *(_phase(*phase) for phase in _PHASES)]
    columns.append(Column("net", lambda row: _rate(row.net), lambda row: row.net, "bytes of the program over the time in calls"))
    columns.append(Column("raw", lambda row: _rate(row.raw), lambda row: row.raw, "bytes of the system calls over the time in the file"))
    return table("Times", columns, rows)


def _rate(value: float) -> str:
    return wording.rate(value) if value else ""


def _phase(heading: str, name: str, tip: str) -> Column[MpiioRow]:
    def text(row: MpiioRow) -> Markup | str:
        phase = next((phase for phase in row.phases if phase.name == name), None)
        if phase is None or not phase.most:
            return ""
        others = f"mean {wording.seconds(phase.mean)}, fastest {wording.seconds(phase.least)}"
        return Markup('<span title="{}">{}</span>').format(others, wording.seconds(phase.most))

    def value(row: MpiioRow) -> float:
        return next((phase.most for phase in row.phases if phase.name == name), 0.0)

    return Column(heading, text, value, tip)
