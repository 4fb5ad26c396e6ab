"""The survey of many runs on the terminal: the sum, the runs that lose most, and totals by cause,
program and user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from pario.see.analyze.survey import RunRow, Survey, Total
from pario.see.report.clean import make_printable
from pario.see.report.page import heading, more, page_width, show, wrap_text
from pario.see.report.table import Table
from pario.see.report.tables import survey as tables
from pario.see.report.text_table import lines, section

#: Rows on one screen; ``all`` shows every row.
RUNS, DAMAGED, TOTALS = 6, 3, 3


def render(survey: Survey, console: Console, all: bool = False) -> None:
    """Print the page; without ``all`` the first rows of each table."""
    width = page_width(console)
    good = len(survey.rows) - survey.damaged
    shown = survey.rows[:good] if all else survey.rows[: min(RUNS, good)]
    sections = (
        wrap_text(survey.sentence, width, style="bold"),
        _runs(make_printable(shown), good - len(shown), width),
        _unread_logs(survey, width, all),
        _totals(survey, tables.causes, survey.causes, width, all),
        _totals(survey, tables.programs, survey.programs, width, all),
        _totals(survey, tables.users, survey.users, width, all),
        (Text(note, style="dim") for note in tables.notes(survey)),
    )
    show(sections, console)


def _runs(rows: Sequence[RunRow], rest: int, width: int) -> Iterator[Text]:
    yield from lines(tables.runs(rows), width)
    yield from more(rest, "run", ": --all")


def _unread_logs(survey: Survey, width: int, all: bool) -> Iterator[Text]:
    rows = survey.rows[len(survey.rows) - survey.damaged :]
    shown = make_printable(rows if all else rows[:DAMAGED])
    if shown:
        yield heading("Not read")
    for row in shown:
        yield from wrap_text(row.error, width, style="red", hanging=4)
    yield from more(len(rows) - len(shown), "log", ": --all")


def _totals(
    survey: Survey,
    table: Callable[[Survey, Sequence[Total]], Table[Total]],
    totals: Sequence[Total],
    width: int,
    all: bool,
) -> Iterator[Text]:
    """Yield the section of a table of totals, if it says more than the sum of all runs."""
    if len(survey.rows) - survey.damaged > 1:
        yield from section(table(survey, make_printable(totals if all else totals[:TOTALS])), width)
