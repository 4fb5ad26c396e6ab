"""A survey as CSV: a line for each run, sorted as the table. docs/survey.md describes the
columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from pario import wording
from pario.see.analyze.survey import RunRow, Survey
from pario.see.report.clean import make_printable

#: The columns. Numbers are unrounded, in seconds and bytes; unknown values are empty.
COLUMNS: dict[str, Callable[[RunRow], Any]] = {
    "path": lambda row: row.path,
    "logs": lambda row: row.logs,
    "error": lambda row: row.error,
    "verdict": lambda row: row.verdict,
    "user": lambda row: row.user,
    "program": lambda row: row.program,
    "started": lambda row: wording.iso_moment(row.start) if row.start > 0 else "",
    "ranks": lambda row: row.ranks or "",
    "processes": lambda row: row.processes or "",
    "wall_seconds": lambda row: _number(row, row.wall),
    "io_seconds": lambda row: _number(row, row.io),
    "lost_seconds": lambda row: _number(row, row.lost),
    "lost_share": lambda row: _number(row, row.lost_share),
    "bytes_read": lambda row: _number(row, row.bytes_read),
    "bytes_written": lambda row: _number(row, row.bytes_written),
    "top_rule": lambda row: row.causes[0].rule if row.causes else "",
    "top_seconds": lambda row: row.causes[0].seconds if row.causes else "",
    "top_finding": lambda row: row.causes[0].title if row.causes else "",
    "sentence": lambda row: row.sentence,
    "command": lambda row: row.command,
}


def _number(row: RunRow, value: float) -> float | str:
    return "" if row.error else value


def render_survey(survey: Survey) -> str:
    """Return the CSV (RFC 4180, with a line of titles)."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in survey.rows:
        safe = make_printable(row)
        writer.writerow([value(safe) for value in COLUMNS.values()])
    return text.getvalue()
