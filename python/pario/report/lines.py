"""Lines over an axis as an SVG picture that needs nothing else: a figure of several panels, one legend. Pure text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 460, 300, 76, 34, 46, 14
_LINE = 18  # of the legend
#: Told apart by lightness and hue, and by their dashes when there are more.
_COLOURS = ("#0b5cad", "#c7401d", "#00846a", "#8f5fb0", "#bd8a10", "#59616c", "#d0688f", "#3aa0c0")
_DASHES = ("", "6 3", "2 3")
#: Begins a picture of a width and a height.
FRAME = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" font-family="sans-serif" font-size="11">'


@dataclass(frozen=True)
class Panel:
    """Lines, by name: points that are drawn from left to right; values above zero."""

    title: str
    lines: dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Axes:
    """What all panels have: words at the axes, texts of values; both are logarithmic."""

    x: str
    y: str
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]


def figure(panels: Sequence[Panel], axes: Axes, across: int = 2) -> str:
    """The picture."""
    names = names_of(panels)
    across = min(across, len(panels))
    rows, per_row = math.ceil(len(panels) / across), max(across * _WIDTH // 170, 1)
    legend = math.ceil(len(names) / per_row) * _LINE + 10
    body = [FRAME.format(across * _WIDTH, rows * _HEIGHT + legend), '<rect width="100%" height="100%" fill="#fff"/>']
    for number, name in enumerate(names):
        x, y = number % per_row * 170 + 14, rows * _HEIGHT + number // per_row * _LINE + 12
        body.append(f'<path d="M{x} {y}h24" {_stroke(number)}/><text x="{x + 30}" y="{y + 4}">{escape(name)}</text>')
    for number, panel in enumerate(panels):
        place = f"translate({number % across * _WIDTH},{number // across * _HEIGHT})"
        body += [f'<g transform="{place}">', *_panel(panel, axes, names), "</g>"]
    return "\n".join([*body, "</svg>"]) + "\n"


def look(number: int) -> tuple[str, str]:
    """Colour and dashes of the n-th line."""
    return _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)]


def names_of(panels: Sequence[Panel]) -> list[str]:
    """Of all lines, in the order of the legend."""
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _stroke(number: int) -> str:
    colour, dash = look(number)
    return f'fill="none" stroke="{colour}" stroke-width="1.8"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _panel(panel: Panel, axes: Axes, names: Sequence[str]) -> Iterator[str]:
    points = [point for line in panel.lines.values() for point in line]
    yield f'<text x="{_LEFT}" y="20" font-size="13" font-weight="600">{escape(panel.title)}</text>'
    if not points:
        return
    xs = sorted({x for x, _ in points})
    across = _scale(xs[0], xs[-1], _LEFT + 12, _WIDTH - _RIGHT - 12)
    ticks = _ticks(min(y for _, y in points), max(y for _, y in points))
    up = _scale(ticks[0], ticks[-1], _HEIGHT - _BOTTOM, _TOP)
    for tick in ticks:
        yield f'<path d="M{_LEFT} {up(tick):.1f}H{_WIDTH - _RIGHT}" stroke="#dde1e6"/>'
        yield f'<text x="{_LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{escape(axes.y_text(tick))}</text>'
    for x in xs:
        yield f'<text x="{across(x):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{escape(axes.x_text(x))}</text>'
    words = escape(f"{axes.x}; up: {axes.y}")
    yield f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 12}" text-anchor="middle" fill="#59616c">{words}</text>'
    for name, line in panel.lines.items():
        places = [f"{across(x):.1f} {up(y):.1f}" for x, y in line]
        told = ", ".join(f"{axes.x_text(x)}: {axes.y_text(y)}" for x, y in line)
        dots = "".join(f"M{place}h0" for place in places)
        stroke = _stroke(names.index(name))
        yield f'<g><title>{escape(f"{name}: {told}")}</title><path d="M{" L".join(places)}" {stroke}/>'
        yield f'<path d="{dots}" {stroke} stroke-linecap="round" style="stroke-width:5"/></g>'


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    if high <= low:
        return lambda value: (begin + end) / 2
    return lambda value: begin + (end - begin) * math.log(value / low) / math.log(high / low)


def _ticks(low: float, high: float) -> list[float]:
    """Ones, twos and fives around the values; ones alone where that is enough."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1,) if last - first > 2 else (1, 2, 5)
    every = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    below = max(tick for tick in every if tick <= low * 1.0001)
    above = min((tick for tick in every if tick >= high * 0.9999), default=every[-1])
    inside = [tick for tick in every if below <= tick <= above]
    return inside if len(inside) > 1 else [below, below * 10]
