"""Draws lines over an axis as a self-contained SVG picture: several panels, one legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pario.see.report import svg

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 460, 300, 76, 34, 46, 14
_LINE = 18  # of the legend
#: Distinct in lightness and hue; further lines differ by dashes.
_COLOURS = ("#0b5cad", "#c7401d", "#00846a", "#8f5fb0", "#bd8a10", "#59616c", "#d0688f", "#3aa0c0")
_DASHES = ("", "6 3", "2 3")


@dataclass(frozen=True)
class Panel:
    """Lines by name: points in drawing order, from left to right; all values are above zero."""

    title: str
    lines: dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Axes:
    """The axes of all panels, both logarithmic: labels, and texts of values."""

    x: str
    y: str
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]


def figure(panels: Sequence[Panel], axes: Axes) -> str:
    """Return the panels and their legend as an SVG picture."""
    names = names_of(panels)
    across = min(svg.ACROSS, len(panels))
    rows, per_row = math.ceil(len(panels) / across), max(across * _WIDTH // 170, 1)
    legend = math.ceil(len(names) / per_row) * _LINE + 10
    entries = [
        _legend_entry(name, number, number % per_row, rows * _HEIGHT + number // per_row * _LINE)
        for number, name in enumerate(names)
    ]
    drawn = [
        svg.panel(
            number % across * _WIDTH,
            number // across * _HEIGHT,
            _LEFT,
            panel.title,
            *_panel(panel, axes, names),
        )
        for number, panel in enumerate(panels)
    ]
    return svg.document(across * _WIDTH, rows * _HEIGHT + legend, *entries, *drawn)


def _legend_entry(name: str, number: int, column: int, top: int) -> Markup:
    x, y = column * 170 + 14, top + 12
    return svg.path(f"M{x} {y}h24", **_stroke(number)) + svg.text(x + 30, y + 4, name)


def look(number: int) -> tuple[str, str]:
    """Return colour and dashes of the n-th line."""
    return _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)]


def names_of(panels: Sequence[Panel]) -> list[str]:
    """Return the names of all lines, in the order of the legend."""
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _stroke(number: int) -> dict[str, object]:
    colour, dash = look(number)
    return {"fill": "none", "stroke": colour, "stroke_width": 1.8, "stroke_dasharray": dash or None}


def _panel(panel: Panel, axes: Axes, names: Sequence[str]) -> Iterator[Markup]:
    points = [point for line in panel.lines.values() for point in line]
    if not points:
        return
    xs = sorted({x for x, _ in points})
    across = _scale(xs[0], xs[-1], _LEFT + 12, _WIDTH - _RIGHT - 12)
    ticks = _ticks(min(y for _, y in points), max(y for _, y in points))
    up = _scale(ticks[0], ticks[-1], _HEIGHT - _BOTTOM, _TOP)
    for tick in ticks:
        yield svg.rule(f"M{_LEFT} {up(tick):.1f}H{_WIDTH - _RIGHT}")
        yield svg.text(_LEFT - 6, up(tick) + 4, axes.y_text(tick), text_anchor="end")
    for x in xs:
        yield svg.text(across(x), _HEIGHT - _BOTTOM + 16, axes.x_text(x), text_anchor="middle")
    middle, below = (_LEFT + _WIDTH) / 2, _HEIGHT - 12
    labels = f"{axes.x}; up: {axes.y}"
    yield svg.text(middle, below, labels, text_anchor="middle", fill="#59616c")
    for name, line in panel.lines.items():
        places = [f"{across(x):.1f} {up(y):.1f}" for x, y in line]
        values = ", ".join(f"{axes.x_text(x)}: {axes.y_text(y)}" for x, y in line)
        stroke = _stroke(names.index(name))
        dots = "".join(f"M{place}h0" for place in places)
        yield svg.element(
            "g",
            svg.element("title", f"{name}: {values}"),
            svg.path("M" + " L".join(places), **stroke),
            svg.path(dots, **stroke, stroke_linecap="round", style="stroke-width:5"),
        )


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    if high <= low:
        return lambda value: (begin + end) / 2
    return lambda value: begin + (end - begin) * math.log(value / low) / math.log(high / low)


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten around the values; the powers alone over
    three or more decades."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1,) if last - first > 2 else (1, 2, 5)
    every = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    below = max(tick for tick in every if tick <= low * 1.0001)
    above = min((tick for tick in every if tick >= high * 0.9999), default=every[-1])
    inside = [tick for tick in every if below <= tick <= above]
    return inside if len(inside) > 1 else [below, below * 10]
