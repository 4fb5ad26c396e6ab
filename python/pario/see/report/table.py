"""The definition of a table: columns with title, value and format, and rows.

A table is defined once, in :mod:`pario.see.report.tables`. :mod:`pario.see.report.text_table`
renders it for the terminal, :mod:`pario.see.report.html.table` for the HTML page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pario import wording

Row = TypeVar("Row")
#: The least width of a terminal that shows the wider tables in full.
WIDE = 96
#: As ``least_width`` of a column: the terminal never shows it.
HTML_ONLY = 1_000_000


@dataclass(frozen=True)
class Format:
    """The conversion of a value to the text of a cell. Numbers are aligned to the right and sort by
    value, texts are aligned to the left and sort alphabetically."""

    name: str
    text: Callable[[Any], str]
    numeric: bool = True


TEXT = Format("text", str, numeric=False)
PATH = Format("path", str, numeric=False)
CODE = Format("code", str, numeric=False)
COUNT = Format("count", wording.count)
SHORT_COUNT = Format("short count", wording.short_count)
BYTES = Format("bytes", wording.size)
BLOCK = Format("block", wording.block)
SECONDS = Format("seconds", wording.seconds)
SHARE = Format("share", wording.share)
RATE = Format("rate", wording.rate)
DATE = Format("date", wording.date)
#: The value is a tuple of :class:`Bar`, drawn one below the other; HTML only.
BARS = Format("bars", lambda _: "")
#: The value is a pair of seconds, to which a button zooms the timeline; HTML only.
ZOOM = Format("zoom", lambda _: "", numeric=False)


@dataclass(frozen=True)
class Bar:
    """A horizontal bar: parts as (style class, value, description), ``whole`` its full length."""

    parts: tuple[tuple[str, float, str], ...]
    whole: float


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column. A zero is an empty cell unless ``zeros`` is set; a column of empty cells is left
    out.

    ``note`` explains the numbers. ``text`` replaces the formatted value, ``aside`` follows it in
    parentheses; on the HTML page ``detail`` is a tooltip, and ``strong`` sets the cell in bold.
    ``short`` is the title on the terminal, if it differs. The terminal shortens the ``flexible``
    column first, leaves a column out if it has fewer than ``least_width`` columns, and prints a
    ``below`` column as a line below its row.
    """

    title: str
    value: Callable[[Row], Any]
    format: Format = TEXT
    note: str = ""
    text: Callable[[Row], str] | None = None
    aside: Callable[[Row], str] | None = None
    detail: Callable[[Row], str] | None = None
    strong: Callable[[Row], bool] | None = None
    sort: Callable[[Row], float] | None = None
    zeros: bool = False
    short: str | None = None
    flexible: bool = False
    least_width: int = 0
    below: bool = False

    def cell(self, row: Row) -> str:
        """Return the text of a cell, without its aside."""
        if self.text:
            return self.text(row)
        value = self.value(row)
        return self.format.text(value) if value or (self.zeros and value is not None) else ""

    def cell_with_aside(self, row: Row) -> str:
        """Return the text of a cell with its aside, as on the terminal."""
        aside = self.aside(row) if self.aside else ""
        return f"{self.cell(row)} ({aside})" if aside else self.cell(row)


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Columns and rows with a title.

    ``note`` is a sentence on the figures. ``total`` is the number of rows of the run, of which
    ``rows`` may be only the first; 0: all. ``noun`` names one row. HTML shortens names longer than
    ``name_length`` in the middle.
    """

    title: str
    columns: tuple[Column[Row], ...]
    rows: Sequence[Row]
    note: str = ""
    total: int = 0
    noun: str = "row"
    id: str = ""
    foldable: bool = True
    name_length: int = 400
    style: Callable[[Row], str] | None = None

    @property
    def rest(self) -> int:
        """The number of rows of the run that the table does not have."""
        return max(self.total - len(self.rows), 0)


def count_column(title: str, field: str, note: str = "", **more: Any) -> Column[Any]:
    """Return a column of counts from a field of the rows."""
    return field_column(title, field, COUNT, note, **more)


def field_column(
    title: str, field: str, format: Format, note: str = "", **more: Any
) -> Column[Any]:
    """Return a column that shows a field of the rows."""
    return Column(title, lambda row: getattr(row, field), format, note, **more)
