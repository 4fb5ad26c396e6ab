"""The page's tables of buffered files: what became of the settings, and what the buffers did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from pario import wording
from pario.analyze.model import HintRow, StreamRow
from pario.report.html.audit import NAME_LENGTH, hints
from pario.report.html.table import Column, Table, bytes_text, count_text, path_text, table


def tables(audit: Sequence[HintRow], rows: Sequence[StreamRow]) -> list[tuple[Table, str]]:
    """The tables that have rows, each with what is to be said of it."""
    made = [
        (hints(audit), "What was asked for by a pattern, what pario understood, and what was in force."),
        (_figures(rows), "Calls of the program, and the calls of the buffers that they became, over all processes."),
    ]
    return [(one, note) for one, note in made if one.rows]


def _figures(rows: Sequence[StreamRow]) -> Table:
    columns: list[Column[StreamRow]] = [
        Column("file", lambda row: path_text(row.path, NAME_LENGTH), css=""),
        _figure("writes", "writes", count_text, "calls of the program"),
        _figure("buffered", "buffered_write_bytes", bytes_text, "bytes of them that went through buffers"),
        _figure("system writes", "system_writes", count_text, "calls beneath the buffers"),
        _figure("bytes", "system_write_bytes", bytes_text, "that they wrote"),
        _figure("time", "system_write_seconds", _seconds, "in them, most of it in the background"),
        _figure("reads", "reads", count_text, "calls of the program"),
        _figure("buffered", "buffered_read_bytes", bytes_text, "bytes of them that went through buffers"),
        _figure("system reads", "system_reads", count_text, "calls beneath the buffers"),
        _figure("bytes", "system_read_bytes", bytes_text, "that they read"),
        _figure("time", "system_read_seconds", _seconds, "in them"),
        _figure("wasted", "wasted_bytes", bytes_text, "bytes that were read ahead and never asked for"),
    ]
    return table("Buffers", columns, rows)


def _figure(heading: str, name: str, text: Callable[[float], Markup | str], tip: str) -> Column[StreamRow]:
    return Column(heading, lambda row: text(getattr(row, name)), lambda row: float(getattr(row, name)), tip)


def _seconds(value: float) -> str:
    return wording.seconds(value) if value else ""
