"""The table of buffered files."""

from __future__ import annotations

from collections.abc import Sequence

from pario.see.analyze.model import StreamRow
from pario.see.report.table import (
    BYTES,
    HTML_ONLY,
    PATH,
    SECONDS,
    Column,
    Table,
    count_column,
    field_column,
)
from pario.see.report.tables.settings import NAME_LENGTH

_COLUMNS: tuple[Column[StreamRow], ...] = (
    Column("File", lambda row: row.path, PATH, flexible=True),
    count_column("writes", "writes", "calls of the program"),
    field_column("buffered", "buffered_write_bytes", BYTES, "bytes written through buffers"),
    count_column("system writes", "system_writes", "calls of the buffers", short="became"),
    field_column(
        "bytes", "system_write_bytes", BYTES, "of the system writes", least_width=HTML_ONLY
    ),
    field_column(
        "time",
        "system_write_seconds",
        SECONDS,
        "in system writes, most of it in the background",
        short="in",
    ),
    count_column("reads", "reads", "calls of the program"),
    field_column("buffered", "buffered_read_bytes", BYTES, "bytes read through buffers"),
    count_column("system reads", "system_reads", "calls of the buffers", short="became"),
    field_column("bytes", "system_read_bytes", BYTES, "of the system reads", least_width=HTML_ONLY),
    field_column("time", "system_read_seconds", SECONDS, "in system reads", short="in"),
    field_column("wasted", "wasted_bytes", BYTES, "bytes read ahead and never requested"),
)


def streams(rows: Sequence[StreamRow], total: int = 0) -> Table[StreamRow]:
    """Return the calls of the program and of the buffers, a row per file, over all processes."""
    note = "the program's calls, and the calls that reached the file system"
    return Table(
        "Buffered files", _COLUMNS, rows, note, total, noun="file", name_length=NAME_LENGTH
    )
