"""Tables without lines for the terminal: columns as wide as their widest cell, one of them giving way where the room is short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.text import Text

from pario.wording import elided

Row = TypeVar("Row")
GAP = 2
LEAST = 12


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A heading, and how a row's cell reads. The flexible column takes the room that the others leave."""

    heading: str
    cell: Callable[[Row], str]
    left: bool = False
    flexible: bool = False


def aligned(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> Iterator[Text]:
    """The heading line, then one line per row, none wider than ``width`` unless the fixed columns alone are. Empty columns are left out."""
    columns = [column for column in columns if any(map(column.cell, rows))]
    texts = [[column.heading for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    widths = [max(cell_len(line[index]) for line in texts) for index in range(len(columns))]
    for index, column in enumerate(columns):
        if column.flexible:
            room = width - sum(widths) + widths[index] - GAP * (len(columns) - 1)
            widths[index] = min(widths[index], max(room, LEAST))
    for number, line in enumerate(texts):
        cells = [_cell(text, size, column.left) for text, size, column in zip(line, widths, columns, strict=True)]
        yield Text((" " * GAP).join(cells).rstrip(), style="" if number else "bold")


def _cell(text: str, width: int, left: bool) -> str:
    short = elided(text, width)
    while cell_len(short) > width:  # wide characters
        short = elided(text, len(short) - 1)
    padding = " " * (width - cell_len(short))
    return short + padding if left else padding + short
