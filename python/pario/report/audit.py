"""What became of settings, on the terminal: those without effect in one line, and with ``--all`` all of them as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from pario import wording
from pario.analyze.model import Analysis, HintRow
from pario.report.columns import Column, aligned
from pario.report.words import troubled


def without_effect(analysis: Analysis, width: int) -> Iterator[Text]:
    """One line where settings were not taken or are not in force; nothing where all is well."""
    rows = troubled(analysis.audit)
    if not rows:
        return
    first = rows[0]
    more = f" (and {len(rows) - 1} more: --all)" if len(rows) > 1 else ""
    reason = wording.hint_reason(first.key, first.requested, first.reason)
    yield Text.assemble(("Hints  ", "bold yellow"), wording.elided(reason, max(width - 7 - len(more), 20)) + more)


def rows_of(analysis: Analysis, table: str) -> list[HintRow]:
    """Those of one table of settings."""
    return [row for row in analysis.audit if row.table == table]


def hints(rows: Sequence[HintRow], title: str, width: int) -> Iterator[Text]:
    """A line per setting, and its reason below."""
    if not rows:
        return
    yield Text.assemble((title, "bold"), ("   hints", "dim"))
    heading, *lines = aligned(_columns(), rows, width)
    yield heading
    for row, line in zip(rows, lines, strict=True):
        yield line
        if row.reason:
            yield Text(textwrap.fill(row.reason, width, initial_indent="    ", subsequent_indent="    "), style="dim")


def _columns() -> list[Column[HintRow]]:
    return [
        Column("Hint", lambda row: row.key, left=True, flexible=True),
        Column("requested", lambda row: row.requested, left=True),
        Column("applied", lambda row: row.applied, left=True),
        Column("effective", lambda row: row.effective, left=True),
        Column("outcome", lambda row: row.state, left=True),
        Column("files", lambda row: wording.count(row.file_count) if row.file_count > 1 else ""),
    ]
