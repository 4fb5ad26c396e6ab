"""Buffered files on the terminal, with ``--all``: what became of the settings, and what the buffers did."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from pario import wording
from pario.analyze.model import Analysis, StreamRow
from pario.report import audit
from pario.report.columns import Column, aligned
from pario.wording import if_any


def figures(analysis: Analysis, width: int) -> Iterator[Text]:
    """Both tables, each with a heading; nothing where no file was to be buffered."""
    asked = audit.rows_of(analysis, "streams")
    yield from audit.hints(asked, "Buffered files", width)
    if not analysis.streams:
        return
    if asked:
        yield Text()
    yield Text.assemble(("Buffered files", "bold"), ("   the program's calls, and what reached the file system", "dim"))
    yield from aligned(_columns(), analysis.streams, width)
    if analysis.streams_total > len(analysis.streams):
        yield Text(f"and {wording.plural(analysis.streams_total - len(analysis.streams), 'more file')}", style="dim")


def _columns() -> list[Column[StreamRow]]:
    return [
        Column("File", lambda row: row.path, left=True, flexible=True),
        Column("writes", lambda row: if_any(wording.count, row.writes)),
        Column("buffered", lambda row: if_any(wording.size, row.buffered_write_bytes)),
        Column("became", lambda row: if_any(wording.count, row.system_writes)),
        Column("in", lambda row: if_any(wording.seconds, row.system_write_seconds)),
        Column("reads", lambda row: if_any(wording.count, row.reads)),
        Column("buffered", lambda row: if_any(wording.size, row.buffered_read_bytes)),
        Column("became", lambda row: if_any(wording.count, row.system_reads)),
        Column("in", lambda row: if_any(wording.seconds, row.system_read_seconds)),
        Column("wasted", lambda row: if_any(wording.size, row.wasted_bytes)),
    ]
