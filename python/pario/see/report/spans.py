"""Draws the activity of ranks over time as a self-contained SVG picture: panels with their time
axes, and one legend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from pario import wording
from pario.see.analyze.spans import Kind, Panel, Spans
from pario.see.report import svg

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 470, 62, 14, 30, 34
ROWS_HEIGHT, HIGHEST, LOWEST, LABEL = 112, 18.0, 2.0, 11.0
_TICKS, _LEGEND = 4, 30.0


def figure(panels: Sequence[Panel], kinds: Sequence[Kind]) -> str:
    """Return the panels and their legend as an SVG picture."""
    across = min(svg.ACROSS, len(panels))
    lines = [panels[begin : begin + across] for begin in range(0, len(panels), across)]
    heights = [
        TOP + BOTTOM + max(_row(panel) * len(panel.rows) for panel in line) for line in lines
    ]
    entries = [_legend_entry(kind, LEFT + number * 170) for number, kind in enumerate(kinds)]
    drawn, y = [], _LEGEND
    for line, height in zip(lines, heights, strict=True):
        drawn += [
            svg.panel(number * WIDTH, y, LEFT, panel.title, *_panel(panel, kinds))
            for number, panel in enumerate(line)
        ]
        y += height
    return svg.document(across * WIDTH, math.ceil(y), *entries, *drawn)


def _legend_entry(kind: Kind, x: float) -> Markup:
    sample = svg.element("rect", x=x, y=9, width=24, height=12, fill=kind.colour)
    return sample + svg.text(x + 30, 19, kind.name)


def ticks(seconds: float) -> list[float]:
    """Return about four round times from 0 on."""
    step = 10.0 ** math.floor(math.log10(seconds / _TICKS))
    step = next(
        step * factor for factor in (1, 2, 5, 10) if step * factor * _TICKS >= seconds * 0.999
    )
    return [number * step for number in range(int(seconds / step * 1.001) + 1)]


def _row(panel: Panel) -> float:
    return min(max(ROWS_HEIGHT / max(len(panel.rows), 1), LOWEST), HIGHEST)


def _panel(panel: Panel, kinds: Sequence[Kind]) -> Iterator[Markup]:
    high, wide = _row(panel), WIDTH - LEFT - RIGHT
    bottom = TOP + high * len(panel.rows)
    for tick in ticks(panel.seconds):
        x = LEFT + wide * tick / panel.seconds
        yield svg.rule(f"M{x:.1f} {TOP}V{bottom:.1f}")
        yield svg.text(x, bottom + 15, wording.seconds(tick), text_anchor="middle")
    every = math.ceil(LABEL / high)
    for number, (label, row) in enumerate(zip(panel.labels, panel.rows, strict=True)):
        top = TOP + number * high
        if number % every == 0:
            yield svg.text(LEFT - 6, top + high / 2 + 4, label, text_anchor="end")
        for kind in kinds:
            yield from _bars(kind, row.get(kind.name, ()), top, high, wide / panel.seconds)


def _bars(kind: Kind, spans: Spans, top: float, high: float, scale: float) -> Iterator[Markup]:
    if not spans:
        return
    tall = max((high - 1) * kind.height, 1.0)
    first = top + (high - tall) / 2
    d = "".join(
        f"M{LEFT + begin * scale:.1f}"
        f" {first:.1f}h{max((end - begin) * scale, 0.4):.1f}v{tall:.1f}H{LEFT + begin * scale:.1f}z"
        for begin, end in spans
    )
    yield svg.path(d, svg.element("title", kind.name), fill=kind.colour)
