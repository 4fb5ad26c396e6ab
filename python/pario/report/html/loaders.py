"""The page's table of data loaders."""

from __future__ import annotations

from collections.abc import Sequence

from pario import wording
from pario.analyze.model import LoaderRow
from pario.report.html.table import Column, Table, count_text, table
from pario.report.loaders import name, workers


def figures(rows: Sequence[LoaderRow]) -> list[Table]:
    """The table; none without rows."""
    columns: list[Column[LoaderRow]] = [
        Column("loader", name, css=""),
        Column("loops", lambda row: str(row.loops), lambda row: row.loops, "processes with such a loop"),
        Column("workers", workers, lambda row: row.workers, "of each loop; 0: the loop loads by itself"),
        Column("batches", lambda row: count_text(row.batches), lambda row: row.batches, "of all loops"),
        Column("waited", lambda row: wording.seconds(row.waited), lambda row: row.waited, "for batches, but the first of each epoch"),
        Column("of step time", lambda row: wording.share(row.stalled), lambda row: row.stalled, "waited, of waits and what lies between"),
        Column("longest", lambda row: wording.seconds(row.longest), lambda row: row.longest, "of these waits"),
        Column("first batches", lambda row: wording.seconds(row.first_seconds), lambda row: row.first_seconds, "waits for those"),
        Column(
            "samples/s",
            lambda row: count_text(round(row.samples_per_second)),
            lambda row: row.samples_per_second,
            "batches times their size, all loops together",
        ),
    ]
    return [table("Data loaders", columns, rows)] if rows else []
