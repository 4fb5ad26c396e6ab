"""Histogram of access sizes."""

from __future__ import annotations

import math

from markupsafe import Markup

from pario import wording
from pario.see.analyze.model import SizeRow
from pario.see.report import svg
from pario.see.report.html.charts.chart import Axis, Chart, Tick, decades
from pario.see.tables.model import LAYER_NAMES, SIZE_BINS, SIZE_NAMES


def histogram(row: SizeRow) -> Chart:
    """Return calls per size class on a logarithmic scale, which shows a few large calls beside
    millions of small ones."""
    axis, power = decades("log scale", max(*row.reads, *row.writes))
    series = [
        (css, word, calls)
        for css, word, calls in (("write", "writes", row.writes), ("read", "reads", row.reads))
        if any(calls)
    ]
    shapes = [
        _bar(css, word, index, place, len(series), calls[index], power)
        for place, (css, word, calls) in enumerate(series)
        for index in range(len(SIZE_NAMES))
        if calls[index]
    ]
    return Chart(
        id=f"sizes-{row.layer}",
        title=f"{LAYER_NAMES.get(row.layer, row.layer)} calls",
        summary="; ".join(f"{word}: {_in_words(calls)}" for _, word, calls in series),
        x=_classes(),
        y=axis,
        body=Markup("").join(shapes),
        columns=len(SIZE_NAMES),
        rows=100,
        height=150,
        legend=tuple((css, word) for css, word, _ in series),
    )


def _classes() -> Axis:
    """Return an axis with ticks at the borders of the classes."""
    ends = (0, *SIZE_BINS)
    return Axis(
        "bytes per call",
        tuple(
            Tick(100 * index / len(SIZE_NAMES), wording.short_count(end))
            for index, end in enumerate(ends)
        ),
    )


def _bar(
    css: str, word: str, index: int, place: int, places: int, calls: int, power: int
) -> Markup:
    height = 100 * (math.log10(calls) / power) if calls > 1 else 0.0
    width = 0.8 / places
    tip = f"{wording.count(calls)} {word} of {SIZE_NAMES[index]} bytes"
    return svg.box(
        css,
        index + 0.1 + place * width,
        100 - max(height, 1.5),
        width * 0.94,
        max(height, 1.5),
        tip,
    )


def _in_words(calls: tuple[int, ...]) -> str:
    return ", ".join(
        f"{wording.count(number)} of {name}"
        for number, name in zip(calls, SIZE_NAMES, strict=True)
        if number
    )
