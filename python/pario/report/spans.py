"""What ranks were doing over time, as an SVG picture that needs nothing else: panels with a time axis each, one legend. Pure text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from pario import wording
from pario.analyze.spans import Kind, Panel, Spans
from pario.report.lines import FRAME

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 470, 62, 14, 30, 34
ROWS_HEIGHT, HIGHEST, LOWEST, LABEL = 112, 18.0, 2.0, 11.0
_TICKS = 4


def figure(panels: Sequence[Panel], kinds: Sequence[Kind], across: int = 2) -> str:
    """The picture."""
    across = min(across, len(panels))
    lines = [panels[begin : begin + across] for begin in range(0, len(panels), across)]
    heights = [TOP + BOTTOM + max(_row(panel) * len(panel.rows) for panel in line) for line in lines]
    body = [FRAME.format(across * WIDTH, math.ceil(sum(heights)) + 30), '<rect width="100%" height="100%" fill="#fff"/>']
    for number, kind in enumerate(kinds):
        x = LEFT + number * 170
        body.append(
            f'<rect x="{x}" y="9" width="24" height="12" fill="{kind.colour}"/><text x="{x + 30}" y="19">{escape(kind.name)}</text>'
        )
    y = 30.0
    for line, height in zip(lines, heights, strict=True):
        for number, panel in enumerate(line):
            body += [f'<g transform="translate({number * WIDTH},{y:.1f})">', *_panel(panel, kinds), "</g>"]
        y += height
    return "\n".join([*body, "</svg>"]) + "\n"


def ticks(seconds: float) -> list[float]:
    """Round times from 0 on, some of them."""
    step = 10.0 ** math.floor(math.log10(seconds / _TICKS))
    step = next(step * factor for factor in (1, 2, 5, 10) if step * factor * _TICKS >= seconds * 0.999)
    return [number * step for number in range(int(seconds / step * 1.001) + 1)]


def _row(panel: Panel) -> float:
    return min(max(ROWS_HEIGHT / max(len(panel.rows), 1), LOWEST), HIGHEST)


def _panel(panel: Panel, kinds: Sequence[Kind]) -> Iterator[str]:
    high, wide = _row(panel), WIDTH - LEFT - RIGHT
    bottom = TOP + high * len(panel.rows)
    yield f'<text x="{LEFT}" y="20" font-size="13" font-weight="600">{escape(panel.title)}</text>'
    for tick in ticks(panel.seconds):
        x = LEFT + wide * tick / panel.seconds
        yield f'<path d="M{x:.1f} {TOP}V{bottom:.1f}" stroke="#dde1e6"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{escape(wording.seconds(tick))}</text>'
    every = math.ceil(LABEL / high)
    for number, (label, row) in enumerate(zip(panel.labels, panel.rows, strict=True)):
        top = TOP + number * high
        if number % every == 0:
            yield f'<text x="{LEFT - 6}" y="{top + high / 2 + 4:.1f}" text-anchor="end">{escape(label)}</text>'
        for kind in kinds:
            yield from _bars(kind, row.get(kind.name, ()), top, high, wide / panel.seconds)


def _bars(kind: Kind, spans: Spans, top: float, high: float, scale: float) -> Iterator[str]:
    if not spans:
        return
    tall = max((high - 1) * kind.height, 1.0)
    first = top + (high - tall) / 2
    path = "".join(
        f"M{LEFT + begin * scale:.1f} {first:.1f}h{max((end - begin) * scale, 0.4):.1f}v{tall:.1f}H{LEFT + begin * scale:.1f}z"
        for begin, end in spans
    )
    yield f'<path d="{path}" fill="{kind.colour}"><title>{escape(kind.name)}</title></path>'
