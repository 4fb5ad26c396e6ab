"""Renders tables for the HTML page: columns with style classes, and cells as markup with their sort
keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pario import wording
from pario.see.report import svg
from pario.see.report.table import BARS, BYTES, CODE, PATH, ZOOM, Bar, Column, Row, Table

#: Longer names are shortened in the middle.
NAME_LENGTH = 400


@dataclass(frozen=True)
class Cell:
    """The markup of a cell, its sort key (None: it sorts by its text), and its style class."""

    text: Markup | str
    value: float | None
    css: str


@dataclass(frozen=True)
class Page:
    """A table ready for the template; the first cell of a row is its heading."""

    label: str
    note: str
    heads: tuple[tuple[str, str, str], ...]  # title, style class, note
    rows: tuple[tuple[Cell, ...], ...]
    id: str
    foldable: bool


def render_table(table: Table[Row]) -> Page:
    """Render a table, without the columns in which every cell is empty."""
    cells = [[_cell(column, row, table) for row in table.rows] for column in table.columns]
    used = [index for index, column in enumerate(cells) if any(cell.text for cell in column)]
    columns = [table.columns[index] for index in used]
    return Page(
        table.title,
        table.note,
        tuple((column.title, _css(column), column.note) for column in columns),
        tuple(zip(*(cells[index] for index in used), strict=True)),
        table.id,
        table.foldable,
    )


def render_nonempty(*tables: Table[Any]) -> list[Page]:
    """Render the tables that have rows."""
    return [render_table(table) for table in tables if table.rows]


def _css(column: Column[Any]) -> str:
    special = {BARS.name: "wide", ZOOM.name: "needs-script"}
    return special.get(column.format.name, "n" if column.format.numeric else "")


def _cell(column: Column[Row], row: Row, table: Table[Row]) -> Cell:
    number = column.sort or (column.value if column.format.numeric else None)
    return Cell(_markup(column, row, table.name_length), number and number(row), _css(column))


def _markup(column: Column[Row], row: Row, length: int) -> Markup | str:
    drawn = _DRAWN.get(column.format.name)
    if drawn:
        return drawn(column.value(row))
    text = column.cell(row)
    if not text:
        return ""
    shown = _MARKUP.get(column.format.name, wording.elide)(text, length)
    detail = column.detail(row) if column.detail else ""
    if not detail and column.format is BYTES and text == wording.size(column.value(row)):
        detail = wording.exact_size(column.value(row))
    if detail:
        shown = Markup('<span title="{}">{}</span>').format(detail, shown)
    aside = column.aside(row) if column.aside else ""
    if aside:
        shown = Markup("{} <small>({})</small>").format(shown, aside)
    return Markup("<b>{}</b>").format(shown) if column.strong and column.strong(row) else shown


def _bars(pair: Sequence[Bar]) -> Markup:
    return Markup("").join(svg.stacked_bar(bar.parts, bar.whole) for bar in pair)


def _zoom_button(span: tuple[float, float]) -> Markup:
    return Markup('<button type="button" data-from="{}" data-to="{}">Zoom</button>').format(*span)


def _code(text: str, length: int) -> Markup:
    return Markup("<code>{}</code>").format(wording.elide(text, length))


def path_text(path: str, length: int = NAME_LENGTH) -> Markup:
    """Return a path with an emphasised last part. Its text direction is isolated, because names may
    be written from right to left."""
    folder, slash, name = wording.elide(path, length).rpartition("/")
    return Markup('<bdi class="path"><span>{}</span><b>{}</b></bdi>').format(folder + slash, name)


def bytes_text(value: float) -> Markup:
    """Return bytes in SI units, with the exact number as tooltip; empty for zero."""
    return (
        Markup('<span title="{}">{}</span>').format(wording.exact_size(value), wording.size(value))
        if value
        else Markup("")
    )


_DRAWN: dict[str, Callable[[Any], Markup]] = {BARS.name: _bars, ZOOM.name: _zoom_button}
_MARKUP: dict[str, Callable[[str, int], Markup | str]] = {PATH.name: path_text, CODE.name: _code}
