"""The tables of a comparison of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pario import wording
from pario.see.analyze.comparison import (
    Comparison,
    FileChange,
    FindingChange,
    Measure,
    OutputChange,
    Side,
)
from pario.see.report.table import (
    BARS,
    BYTES,
    COUNT,
    HTML_ONLY,
    PATH,
    SECONDS,
    SHARE,
    SHORT_COUNT,
    Bar,
    Column,
    Format,
    Table,
    field_column,
)
from pario.see.report.words import OUTPUTS, amount, change, format_spread, of_noise

#: The terminal's style of a finding.
STYLES = {"gone": "green", "smaller": "green", "same": "dim", "larger": "red", "new": "red"}


def measures(it: Comparison) -> Table[Measure]:
    """Return the table of the figures of the whole run."""

    def median(side: Side, b: bool) -> Column[Measure]:
        def value(row: Measure) -> float:
            return (row.b if b else row.a).median

        return Column(
            side.name,
            value,
            COUNT,
            text=lambda row: amount(row, value(row)),
            detail=lambda row: wording.exact_size(value(row)) if row.unit == "bytes" else "",
        )

    columns: tuple[Column[Measure], ...] = (
        Column("", lambda row: row.name),
        median(it.a, b=False),
        median(it.b, b=True),
        Column(
            "change",
            lambda row: row.change,
            SHARE,
            text=lambda row: change(row.a.median, row.b.median),
        ),
        Column(
            "runs differ",
            lambda row: max(row.a.spread, row.b.spread),
            COUNT,
            "half the difference between the largest and the smallest value of one side",
            text=format_spread,
        ),
        Column("", of_noise, note="whether the difference counts"),
        Column("all runs", _all_runs, note="in the order in which they ran", least_width=HTML_ONLY),
    )
    return Table("Figures of the whole run", columns, it.measures, foldable=False)


def _all_runs(row: Measure) -> str:
    """Return the values of all runs, if a side has several and they differ."""
    if max(len(row.a.values), len(row.b.values)) < 2 or row.noise == "equal":
        return ""
    return " / ".join(
        ", ".join(amount(row, value) for value in sample.values) for sample in (row.a, row.b)
    )


def findings(it: Comparison, rows: Sequence[FindingChange]) -> Table[FindingChange]:
    """Return the table of the findings of both sides."""
    columns: tuple[Column[FindingChange], ...] = (
        _pair("seconds lost", rows, it),
        Column(
            it.a.name,
            lambda row: row.seconds_a,
            SECONDS,
            text=lambda row: wording.seconds(row.seconds_a) if row.change != "new" else "",
        ),
        Column(
            it.b.name,
            lambda row: row.seconds_b,
            SECONDS,
            text=lambda row: wording.seconds(row.seconds_b) if row.change != "gone" else "",
        ),
        Column("", lambda row: row.change, strong=lambda row: True),
        Column("cause", lambda row: row.title, flexible=True),
    )
    return Table(
        "Findings",
        columns,
        rows,
        "seconds lost",
        len(it.findings),
        "finding",
        style=lambda row: STYLES[row.change],
    )


def files(it: Comparison, rows: Sequence[FileChange]) -> Table[FileChange]:
    """Return the table of files by the change of their time."""
    per_rank = "time per rank" if max(it.a.ranks, it.b.ranks) > 1 else "time"
    mean = "mean of the ranks that use it"
    same = Column[FileChange](
        it.b.name,
        lambda row: row.bytes_b,
        BYTES,
        "read and written",
        text=lambda row: (
            ""
            if not row.bytes_b and not row.bytes_a
            else "="
            if row.bytes_b == row.bytes_a
            else wording.size(row.bytes_b)
        ),
        short="then",
    )
    columns: tuple[Column[FileChange], ...] = (
        Column("File", lambda row: row.path, PATH, flexible=True),
        _pair(per_rank, rows, it),
        *_both("time", "seconds", SECONDS, mean, it),
        *_both("calls", "calls", SHORT_COUNT, "of all ranks", it),
        _both("bytes", "bytes", BYTES, "read and written", it)[0],
        same,
        field_column(
            f"system writes, {it.a.name}",
            "system_writes_a",
            SHORT_COUNT,
            "of pario's MPI-IO and buffers",
            least_width=HTML_ONLY,
        ),
        field_column(
            f"system writes, {it.b.name}",
            "system_writes_b",
            SHORT_COUNT,
            "of pario's MPI-IO and buffers",
            short="system writes",
        ),
    )
    return Table(
        "Files by time that changed",
        columns,
        rows,
        total=it.file_total,
        noun="file",
        id="file-table",
    )


def _both(
    title: str, field: str, format: Format, note: str, it: Comparison
) -> tuple[Column[FileChange], Column[FileChange]]:
    """Return a column per side."""
    zeros = format is not BYTES
    return (
        field_column(f"{title}, {it.a.name}", f"{field}_a", format, note, short=title, zeros=zeros),
        field_column(it.b.name, f"{field}_b", format, note, short="then", zeros=zeros),
    )


def _pair(
    title: str, rows: Sequence[FindingChange] | Sequence[FileChange], it: Comparison
) -> Column[Any]:
    """Return a column of two bars, one below the other: A pale, B full."""
    high = max((max(row.seconds_a, row.seconds_b) for row in rows), default=0.0)

    def pair(row: FindingChange | FileChange) -> tuple[Bar, Bar]:
        a = ("io rest", row.seconds_a, f"{it.a.name}: {wording.seconds(row.seconds_a)}")
        b = ("io", row.seconds_b, f"{it.b.name}: {wording.seconds(row.seconds_b)}")
        return Bar((a,), high), Bar((b,), high)

    return Column(title, pair, BARS, sort=lambda row: row.seconds_a, least_width=HTML_ONLY)


def outputs(it: Comparison, rows: Sequence[OutputChange]) -> Table[OutputChange]:
    """Return the table of the output files of both sides."""
    columns: tuple[Column[OutputChange], ...] = (
        Column("File", lambda row: row.path, PATH, flexible=True),
        Column("", lambda row: OUTPUTS[row.state], strong=lambda row: row.state != "identical"),
        Column(f"bytes, {it.a.name}", lambda row: max(row.size_a, 0), BYTES),
        Column(it.b.name, lambda row: max(row.size_b, 0), BYTES),
    )
    return Table("Output files", columns, rows, noun="file")
