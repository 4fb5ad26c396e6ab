"""pario's own MPI-IO on the terminal: with ``--all``, what became of its hints, and its figures as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from pario import wording
from pario.analyze.model import Analysis, MpiioRow
from pario.report import audit
from pario.report.columns import Column, aligned
from pario.wording import if_any


def figures(analysis: Analysis, width: int) -> Iterator[Text]:
    """All tables, each with a heading; nothing where another MPI-IO carried out the calls."""
    tables: tuple[tuple[str, Sequence[Column[MpiioRow]]], ...] = (
        ("the program's calls, all ranks", _calls()),
        ("what reached the file system", _system()),
        ("time of the slowest rank, and bandwidth", _times()),
    )
    asked = audit.rows_of(analysis, "mpiio")
    yield from audit.hints(asked, "pario's MPI-IO", width)
    for number, (note, columns) in enumerate(tables if analysis.mpiio else ()):
        if number or asked:
            yield Text()
        yield Text.assemble(("pario's MPI-IO", "bold"), (f"   {note}", "dim"))
        yield from aligned([_FILE, *columns], analysis.mpiio, width)
    if analysis.mpiio_total > len(analysis.mpiio):
        yield Text(f"and {wording.plural(analysis.mpiio_total - len(analysis.mpiio), 'more file')}", style="dim")


_FILE: Column[MpiioRow] = Column("File", lambda row: row.path, left=True, flexible=True)


def _calls() -> list[Column[MpiioRow]]:
    return [
        Column("ranks", lambda row: wording.count(row.ranks)),
        Column("writes together", lambda row: if_any(wording.count, row.collective_writes)),
        Column("alone", lambda row: if_any(wording.count, row.independent_writes)),
        Column("reads together", lambda row: if_any(wording.count, row.collective_reads)),
        Column("alone", lambda row: if_any(wording.count, row.independent_reads)),
        Column("windows", lambda row: if_any(wording.count, row.through_windows)),
        Column("direct", lambda row: if_any(wording.count, row.direct)),
        Column("sieved", lambda row: if_any(wording.count, row.sieved)),
        Column("kept back", lambda row: if_any(wording.count, row.written_behind + row.merged_calls)),
    ]


def _system() -> list[Column[MpiioRow]]:
    return [
        Column("writes", lambda row: if_any(wording.count, row.system_writes)),
        Column("of", lambda row: if_any(wording.size, row.average_system_write)),
        Column("whole stripes", lambda row: if_any(wording.count, row.stripe_sized_writes)),
        Column("reads", lambda row: if_any(wording.count, row.system_reads)),
        Column("read to write", lambda row: if_any(wording.count, row.read_modify_writes)),
        Column("holes", lambda row: if_any(wording.size, row.gap_bytes)),
        Column("messages", lambda row: if_any(wording.count, row.messages)),
    ]


def _times() -> list[Column[MpiioRow]]:
    return [
        *(_phase(name, name) for name in ("open", "calls")),
        _phase("waiting", "wait"),
        *(_phase(name, name) for name in ("copy", "messages", "file")),
        Column("net", lambda row: wording.rate(row.net) if row.net else ""),
        Column("raw", lambda row: wording.rate(row.raw) if row.raw else ""),
    ]


def _phase(heading: str, name: str) -> Column[MpiioRow]:
    def text(row: MpiioRow) -> str:
        seconds = next((phase.most for phase in row.phases if phase.name == name), 0.0)
        return wording.seconds(seconds) if seconds else ""

    return Column(heading, text)
