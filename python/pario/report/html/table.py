"""What a table of the page is: columns that know how their cells read and by what they sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from markupsafe import Markup

from pario import wording

Row = TypeVar("Row")
Text = Markup | str


@dataclass(frozen=True)
class Cell:
    """What is shown, and the number to sort by (None: the text itself)."""

    text: Text
    value: float | None
    css: str


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A heading, how a row's cell reads, and the number that it sorts by; text columns have none. ``tip`` says what the numbers are."""

    heading: str
    cell: Callable[[Row], Text]
    value: Callable[[Row], float] | None = None
    tip: str = ""
    css: str = "n"


@dataclass(frozen=True)
class Table:
    """A table ready for the template. The first cell of a row is its heading."""

    label: str
    heads: tuple[tuple[str, str, str], ...]  # heading, class, tip
    rows: tuple[tuple[Cell, ...], ...]
    id: str = ""
    foldable: bool = True


def table(label: str, columns: Sequence[Column[Row]], rows: Sequence[Row], id: str = "", foldable: bool = True) -> Table:
    """The table without the columns in which every cell is empty."""
    cells = [[_cell(column, row) for row in rows] for column in columns]
    used = [index for index, column in enumerate(cells) if any(cell.text for cell in column)]
    heads = tuple((columns[index].heading, columns[index].css, columns[index].tip) for index in used)
    return Table(label, heads, tuple(zip(*(cells[index] for index in used), strict=True)), id, foldable)


def _cell(column: Column[Row], row: Row) -> Cell:
    return Cell(column.cell(row), None if column.value is None else column.value(row), column.css)


def bytes_text(value: float) -> Markup:
    """Bytes in SI units, to the last one when pointed at; nothing for none."""
    return Markup('<span title="{}">{}</span>').format(wording.exact_size(value), wording.size(value)) if value else Markup("")


def count_text(value: float) -> str:
    """A count; nothing for none."""
    return wording.count(value) if value else ""


def path_text(path: str, length: int) -> Markup:
    """A path whose last part stands out. Isolated: a name may be written from right to left."""
    folder, slash, name = wording.elided(path, length).rpartition("/")
    return Markup('<bdi class="path"><span>{}</span><b>{}</b></bdi>').format(folder + slash, name)
