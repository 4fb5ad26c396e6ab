"""What training loops waited for, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from pario import wording
from pario.analyze.model import Analysis, LoaderRow
from pario.report.columns import Column, aligned
from pario.wording import if_any

#: Loaders on one screen.
_FEW = 3


def figures(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    """The table with its heading; nothing where no loop was seen."""
    rows = analysis.loaders if all else analysis.loaders[:_FEW]
    if not rows:
        return
    yield Text.assemble(("Data loaders", "bold"), ("   what training loops waited for batches", "dim"))
    yield from aligned(_columns(), rows, width)
    if len(analysis.loaders) > len(rows):
        yield Text(f"and {wording.plural(len(analysis.loaders) - len(rows), 'more loader')}", style="dim")


def name(row: LoaderRow) -> str:
    """``DataLoader(Images)``, as it stands in the program."""
    return f"{row.loader.rpartition('.')[2]}({wording.name(row.data)})"


def workers(row: LoaderRow) -> str:
    """``4``, or pario's threads."""
    return "threads" if row.workers < 0 else str(row.workers)


def _columns() -> list[Column[LoaderRow]]:
    return [
        Column("Loader", name, left=True, flexible=True),
        Column("loops", lambda row: str(row.loops) if row.loops > 1 else ""),
        Column("workers", workers),
        Column("batches", lambda row: wording.count(row.batches)),
        Column("waited", lambda row: wording.seconds(row.waited)),
        Column("of step time", lambda row: wording.share(row.stalled)),
        Column("longest", lambda row: if_any(wording.seconds, row.longest)),
        Column("first", lambda row: wording.seconds(row.first_seconds)),
        Column("samples/s", lambda row: if_any(wording.count, round(row.samples_per_second))),
    ]
