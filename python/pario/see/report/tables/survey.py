"""The tables of a survey: runs, and totals by cause, program and user."""

from __future__ import annotations

from collections.abc import Sequence

from pario import wording
from pario.see.analyze.survey import RunRow, Survey, Total
from pario.see.report.table import (
    BARS,
    DATE,
    HTML_ONLY,
    PATH,
    SECONDS,
    SHARE,
    TEXT,
    WIDE,
    Bar,
    Column,
    Table,
    count_column,
    field_column,
)

#: Texts of RunRow.verdict that differ from it.
VERDICTS = {"worthwhile": "worth changing"}
#: The least widths of terminals with the less important columns of runs.
_WITH_SHARE, _WITH_USER, _WITH_IO = 64, 78, 112


def runs(rows: Sequence[RunRow]) -> Table[RunRow]:
    """Return the table of runs; a finding and a path have lines of their own on the terminal."""
    longest = max((row.wall for row in rows), default=0.0)
    columns: tuple[Column[RunRow], ...] = (
        Column("Program", lambda row: row.program, TEXT, flexible=True),
        field_column("lost", "lost", SECONDS, "seconds that repairs would save"),
        field_column(
            "of the run",
            "lost_share",
            SHARE,
            "part of the wall time",
            short="of run",
            least_width=_WITH_SHARE,
        ),
        field_column("wall", "wall", SECONDS, "wall time"),
        field_column("I/O", "io", SECONDS, "on the critical path", least_width=_WITH_IO),
        Column("user", lambda row: row.user, flexible=True, least_width=_WITH_USER),
        field_column("date", "start", DATE, "of the start, UTC", least_width=WIDE),
        count_column("ranks", "ranks", least_width=WIDE),
        Column("", lambda row: (_bar(row, longest),), BARS, least_width=HTML_ONLY),
        Column(
            "verdict",
            lambda row: VERDICTS.get(row.verdict, row.verdict),
            detail=lambda row: row.sentence,
        ),
        Column("top finding", lambda row: row.causes[0].title if row.causes else "", below=True),
        Column(
            "log",
            lambda row: row.path,
            PATH,
            detail=lambda row: row.command,
            aside=lambda row: wording.plural(row.logs, "log") if row.logs > 1 else "",
            below=True,
        ),
    )
    return Table("Runs", columns, rows, noun="run", id="file-table")


def notes(survey: Survey) -> list[str]:
    """Return sentences on the runs that a survey does not show or judge in full."""
    parts = (
        (survey.not_judged, "run", "incomplete logs, or an unknown verdict"),
        (survey.damaged, "log", "cannot be read"),
        (survey.left_out, "run", "left out by the options"),
        (survey.repeated, "log", "given more than once, counted once"),
    )
    return [f"{wording.plural(number, noun)}: {text}" for number, noun, text in parts if number]


def _bar(row: RunRow, longest: float) -> Bar:
    """Return the wall time: seconds lost, other I/O, and the rest."""
    lost = min(row.lost, row.wall)
    other = min(max(row.io - lost, 0.0), row.wall - lost)
    parts = (("io", lost, "lost"), ("io rest", other, "other I/O"))
    rest = ("compute", row.wall - lost - other, "not I/O")
    described = tuple(
        (css, value, f"{word}: {wording.seconds(value)}") for css, value, word in (*parts, rest)
    )
    return Bar(described, longest)


def causes(survey: Survey, rows: Sequence[Total]) -> Table[Total]:
    """Return the seconds lost by cause."""
    return _totals(survey, "Cause", rows, len(survey.causes))


def programs(survey: Survey, rows: Sequence[Total]) -> Table[Total]:
    """Return the seconds lost by program."""
    return _totals(survey, "Program", rows, len(survey.programs))


def users(survey: Survey, rows: Sequence[Total]) -> Table[Total]:
    """Return the seconds lost by user."""
    return _totals(survey, "User", rows, len(survey.users))


def _totals(survey: Survey, title: str, rows: Sequence[Total], total: int) -> Table[Total]:
    whole = survey.total.wall
    columns: tuple[Column[Total], ...] = (
        Column(title, lambda row: row.name or wording.NOT_KNOWN, TEXT, flexible=True),
        count_column("runs", "runs"),
        field_column("wall", "wall", SECONDS, "wall time of these runs", zeros=True),
        field_column(
            "I/O",
            "io",
            SECONDS,
            "of these runs, on the critical path",
            least_width=WIDE,
            zeros=True,
        ),
        field_column("lost", "lost", SECONDS, "seconds that repairs would save", zeros=True),
        Column(
            "of all",
            lambda row: row.lost / whole if whole > 0 else 0.0,
            SHARE,
            "part of the wall time of all runs",
        ),
        field_column(
            "× ranks", "rank_seconds", SECONDS, "seconds lost, times ranks", least_width=WIDE
        ),
    )
    return Table(
        f"Seconds lost by {title.lower()}",
        columns,
        rows,
        total=total,
        noun=title.lower(),
    )
