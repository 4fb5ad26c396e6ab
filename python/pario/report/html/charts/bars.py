"""Bars inside tables and beside findings."""

from __future__ import annotations

from markupsafe import Markup

from pario import wording
from pario.analyze.model import FileRow, FunctionRow, Split
from pario.report.html.charts import svg

#: The parts of a split in the order in which they are shown: field, word.
PARTS = (("compute", "compute"), ("communication", "communication"), ("waiting", "waiting"), ("io", "I/O"))
#: Which split colour a function's bar takes.
FUNCTION_CLASSES = {
    "p2p": "communication",
    "wait": "communication",
    "collective": "communication",
    "rma": "communication",
    "mpi": "communication",
}


def split_bar(split: Split, label: str) -> Markup:
    """The wall time of one split."""
    parts = [(name, word, getattr(split, name)) for name, word in PARTS]
    texts = [
        (name, value, f"{word}: {wording.seconds(value)}, {wording.share(value / split.wall)}" if split.wall else "")
        for name, word, value in parts
    ]
    said = "; ".join(tip for _, value, tip in texts if value > 0)
    return svg.stacked(texts, split.wall, "bar split", f"{label}: {said}")


def function_bar(row: FunctionRow, high: float, many: bool) -> Markup:
    """The mean rank's time, waiting apart, then in a lighter shade up to the slowest rank's; without ranks that of one process."""
    css = FUNCTION_CLASSES.get(row.category, "io")
    if not many:
        return svg.stacked([(css, row.slowest, f"{row.name}: {wording.seconds(row.slowest)}")], high)
    ranks = row.seconds / row.mean if row.mean else 1.0
    waiting = min(row.waiting / ranks, row.mean)
    tip = f"{row.name}: mean rank {wording.seconds(row.mean)}"
    if row.slowest_rank >= 0:
        tip += f", rank {row.slowest_rank} {wording.seconds(row.slowest)}"
    parts = [
        (css, row.mean - waiting, tip),
        ("waiting", waiting, f"{tip}; waiting {wording.seconds(waiting)}"),
        (f"{css} rest", row.slowest - row.mean, tip),
    ]
    return svg.stacked(parts, high)


def mean_seconds(row: FileRow) -> float:
    """Seconds of the mean rank among those that use the file."""
    return row.seconds / max(row.ranks, 1)


def file_bar(row: FileRow, high: float, many: bool) -> Markup:
    """The mean rank's seconds of writing, reading and metadata, then in a lighter shade up to the slowest's; without ranks the sums."""
    kinds = (("write", row.write_seconds, "writing"), ("read", row.read_seconds, "reading"), ("meta", row.meta_seconds, "other calls"))
    ranks = max(row.ranks, 1) if many else 1
    parts = [(css, value / ranks, word) for css, value, word in kinds]
    most = max(parts, key=lambda part: part[1])[0]
    bars = [(css, value, f"{word}: {wording.seconds(value)}") for css, value, word in parts]
    if not many:
        return svg.stacked(bars, high)
    rest = (f"{most} rest", row.slowest_seconds - mean_seconds(row), f"rank {row.slowest_rank}: {wording.seconds(row.slowest_seconds)}")
    return svg.stacked([*bars, rest], high)
