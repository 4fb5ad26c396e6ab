"""The table of calls in progress, of a run that has not ended or was killed."""

from __future__ import annotations

from pario.see.analyze.progress_model import CallInProgress, Progress
from pario.see.report.table import CODE, PATH, SECONDS, Column, Table, count_column, field_column


def calls(progress: Progress, most: int | None = None) -> Table[CallInProgress]:
    """Return the calls by ranks or processes; ``most``: of them the longest."""
    rows = progress.calls
    if most is not None and len(rows) > most:
        rows = tuple(sorted(rows, key=lambda row: -row.seconds)[:most])
    columns: tuple[Column[CallInProgress], ...] = (
        Column("In progress", _who),
        count_column("thread", "thread", "number in the log"),
        Column(
            "call",
            lambda row: row.function,
            CODE,
            aside=lambda row: f"in {row.inner}" if row.inner else "",
        ),
        Column("of", lambda row: row.path, PATH, flexible=True),
        field_column("for", "seconds", SECONDS, "since it began", zeros=True),
        Column("", _wait, below=True),
    )
    return Table("Calls in progress", columns, rows, total=len(progress.calls), noun="call")


def _wait(row: CallInProgress) -> str:
    return f"waits for {row.waits_for}" if row.waits_for else ""


def _who(row: CallInProgress) -> str:
    program = row.program.rpartition("/")[2]
    return f"rank {row.rank}" if row.rank >= 0 else f"{program} {row.pid}".strip()
