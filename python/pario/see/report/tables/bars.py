"""The bars inside tables and beside the verdict: their parts and styles."""

from __future__ import annotations

from pario import wording
from pario.see.analyze.model import FileRow, FunctionRow, Split
from pario.see.report.table import Bar
from pario.see.report.words import split_parts

#: The part of the split that gives a function's bar its colour, by category; I/O for all others.
FUNCTION_CLASSES = {
    "p2p": "communication",
    "wait": "communication",
    "collective": "communication",
    "rma": "communication",
    "mpi": "communication",
    "waiting": "waiting",
    "peers": "waiting",
}


def split_bar(split: Split, longest: float = 0.0) -> Bar:
    """Return the wall time of a split as a full bar, or as its part of ``longest`` seconds."""
    parts = tuple((name, word, getattr(split, name)) for name, word in split_parts(split))
    shares = split.wall > 0 and not longest
    return Bar(
        tuple(
            (
                name,
                value,
                f"{word}: {wording.seconds(value)}"
                + (f", {wording.share(value / split.wall)}" if shares else ""),
            )
            for name, word, value in parts
        ),
        longest or split.wall,
    )


def function_bar(row: FunctionRow, high: float, many: bool) -> Bar:
    """Return the mean rank's time with its waiting, then in a lighter shade the rest of the slowest
    rank's; without ranks the time of one process."""
    css = FUNCTION_CLASSES.get(row.category, "io")
    if not many:
        return Bar(((css, row.slowest, f"{row.name}: {wording.seconds(row.slowest)}"),), high)
    ranks = row.seconds / row.mean if row.mean else 1.0
    waiting = min(row.waiting / ranks, row.mean)
    tip = f"{row.name}: mean rank {wording.seconds(row.mean)}"
    if row.slowest_rank >= 0:
        tip += f", rank {row.slowest_rank} {wording.seconds(row.slowest)}"
    parts = (
        (css, row.mean - waiting, tip),
        ("waiting", waiting, f"{tip}; waiting {wording.seconds(waiting)}"),
        (f"{css} rest", row.slowest - row.mean, tip),
    )
    return Bar(parts, high)


def mean_seconds(row: FileRow) -> float:
    """Return the mean seconds of the ranks that use the file."""
    return row.seconds / max(row.ranks, 1)


def file_bar(row: FileRow, high: float, many: bool) -> Bar:
    """Return the mean rank's seconds of writing, reading and metadata, then in a lighter shade the
    rest of the slowest rank's; without ranks the sums."""
    kinds = (
        ("write", row.write_seconds, "writing"),
        ("read", row.read_seconds, "reading"),
        ("meta", row.meta_seconds, "other calls"),
    )
    ranks = max(row.ranks, 1) if many else 1
    parts = [(css, value / ranks, word) for css, value, word in kinds]
    most = max(parts, key=lambda part: part[1])[0]
    own = tuple((css, value, f"{word}: {wording.seconds(value)}") for css, value, word in parts)
    if not many:
        return Bar(own, high)
    rest = (
        f"{most} rest",
        row.slowest_seconds - mean_seconds(row),
        f"rank {row.slowest_rank}: {wording.seconds(row.slowest_seconds)}",
    )
    return Bar((*own, rest), high)
