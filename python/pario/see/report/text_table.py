"""Renders tables for the terminal: columns are as wide as their widest cell, and a narrow terminal
shortens the flexible column."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from pario.see.report.page import heading, more
from pario.see.report.table import PATH, Column, Row, Table
from pario.wording import elide

GAP = 2
LEAST = 12
_BELOW = "    "


def terminal_width() -> int:
    """Return the columns of the terminal at standard output; 120 for a file or a pipe."""
    return os.get_terminal_size().columns if sys.stdout.isatty() else 120


def section(table: Table[Row], width: int) -> Iterator[Text]:
    """Yield the table below its title and note; nothing if it has no rows."""
    if table.rows:
        yield heading(table.title, table.note)
        yield from lines(table, width)


def lines(table: Table[Row], width: int, titles: bool = True) -> Iterator[Text]:
    """Yield the line of titles, a line per row, and the number of the remaining rows."""
    if not table.rows:
        return
    columns = [column for column in table.columns if column.least_width <= width]
    shown = [column for column in columns if not column.below]
    first, *others = align_columns(shown, table.rows, width)
    if titles:
        yield first
    below = [column for column in columns if column.below]
    for row, line in zip(table.rows, others, strict=True):
        if table.style:
            line.stylize(table.style(row))
        yield line
        for column in below:
            if text := column.cell_with_aside(row):
                yield Text(_fill(text, width, is_path=column.format is PATH), style="dim")
    yield from more(table.rest, table.noun)


def _fill(text: str, width: int, *, is_path: bool) -> str:
    """Return a text as indented lines; a path is shortened to one."""
    if is_path:
        return _BELOW + elide(text, width - len(_BELOW))
    return textwrap.fill(
        text, width, initial_indent=_BELOW, subsequent_indent=_BELOW, break_on_hyphens=False
    )


def align_columns(
    columns: Sequence[Column[Row]], rows: Sequence[Row], width: int
) -> Iterator[Text]:
    """Yield the line of titles, then a line per row. No line is wider than ``width`` unless the
    fixed columns alone are. Columns without text are left out."""
    cells = [[column.cell_with_aside(row) for row in rows] for column in columns]
    kept = [
        (column, [column.title if column.short is None else column.short, *texts])
        for column, texts in zip(columns, cells, strict=True)
        if any(texts)
    ]
    widths = [max(map(cell_len, texts)) for _, texts in kept]
    for index, (column, _) in enumerate(kept):
        if column.flexible:
            free = width - sum(widths) + widths[index] - GAP * (len(kept) - 1)
            widths[index] = min(widths[index], max(free, LEAST))
    for number in range(len(rows) + 1):
        line = (" " * GAP).join(
            _cell(texts[number], size, left=not column.format.numeric)
            for (column, texts), size in zip(kept, widths, strict=True)
        )
        yield Text(line.rstrip(), style="" if number else "bold")


def _cell(text: str, width: int, left: bool) -> str:
    short = elide(text, width)
    while cell_len(short) > width:  # wide characters
        short = elide(text, len(short) - 1)
    padding = " " * (width - cell_len(short))
    return short + padding if left else padding + short
