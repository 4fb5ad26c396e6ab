"""The values of a chart, and its axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pario import wording

LABEL_LENGTH = 18


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis; ``at`` is its distance from the start in per cent."""

    at: float
    text: str


@dataclass(frozen=True)
class Axis:
    """The label of an axis with its unit, and its ticks."""

    label: str
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Chart:
    """A plot with axes. The page draws the frame, the labels in HTML, and ``body`` as SVG that is
    stretched to ``columns`` by ``rows`` units."""

    id: str
    title: str
    summary: str  # for screen readers
    x: Axis
    y: Axis
    body: Markup
    columns: float
    rows: float
    height: int  # CSS pixels
    legend: tuple[tuple[str, str], ...] = ()  # class, text
    kind: str = ""  # "time" (zoom), "grid" (cells): its treatment by the script
    grid: bool = True  # lines at the ticks of y


def linear(
    label: str, high: float, text: Callable[[float], str], most: int = 5
) -> tuple[Axis, float]:
    """Return an axis from 0 to a round number at or above ``high``, and that number."""
    step = round_step(high / most) if high > 0 else 1.0
    number = max(1, math.ceil(high / step - 1e-9))
    ticks = tuple(Tick(100 * index / number, text(index * step)) for index in range(number + 1))
    return Axis(label, ticks), number * step


def span(label: str, low: float, high: float, text: Callable[[float], str]) -> Axis:
    """Return an axis that ends with the data, with ticks at round numbers."""
    step = round_step((high - low) / 8) if high > low else 1.0
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    width = (high - low) or 1.0
    return Axis(
        label,
        tuple(
            Tick(100 * (index * step - low) / width, text(index * step))
            for index in range(first, last + 1)
        ),
    )


def decades(label: str, high: float) -> tuple[Axis, int]:
    """Return a logarithmic axis from 1 to a power of ten above ``high``, and that power."""
    power = max(1, math.ceil(math.log10(high))) if high > 1 else 1
    skip = 1 if power <= 5 else 2
    return Axis(
        label,
        tuple(
            Tick(100 * index / power, wording.short_count(10.0**index))
            for index in range(0, power + 1, skip)
        ),
    ), power


def bands(label: str, names: Sequence[str], most: int) -> Axis:
    """Return an axis of equal bands with their names, or with every n-th name if there are more
    than ``most``."""
    skip = -(-len(names) // most) if names else 1
    named = [
        (100 * (index + 0.5) / len(names), name)
        for index, name in enumerate(names)
        if index % skip == 0
    ]
    return Axis(label, tuple(Tick(at, wording.elide(name, LABEL_LENGTH)) for at, name in named))


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
