"""Pictures of lines, and of rows over time, as files: SVG and HTML by pario, PNG by matplotlib if
it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from pario import wording
from pario.errors import ParioError
from pario.publishing import write_text
from pario.see.analyze.spans import Kind
from pario.see.analyze.spans import Panel as SpanPanel
from pario.see.report import spans
from pario.see.report.lines import Axes, Panel, figure, look, names_of
from pario.see.report.svg import ACROSS

SUFFIXES = (".svg", ".html", ".png")
_LABELS = 8


def check(path: Path) -> None:
    """Check the name of a picture, before the measurement. Raises ParioError for an unknown suffix
    or a missing directory."""
    if path.suffix not in SUFFIXES:
        raise ParioError(
            f"--plot {path}: expected a name that ends in {', '.join(SUFFIXES[:-1])} or"
            f" {SUFFIXES[-1]}"
        )
    if not path.absolute().parent.is_dir():
        raise ParioError(f"--plot {path}: no directory {path.parent}")
    if path.suffix == ".png":
        pyplot()


def pyplot() -> Any:
    """Return ``matplotlib.pyplot`` for drawing into files. Raises ParioError if it is not
    installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise ParioError("--plot needs matplotlib for PNG: pip install matplotlib") from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot


def save(drawn: Any, path: Path) -> None:
    """Write a figure of matplotlib. Raises ParioError."""
    try:
        drawn.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise ParioError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        pyplot().close(drawn)


def draw(path: Path, title: str, panels: Sequence[Panel], axes: Axes, caption: str = "") -> None:
    """Write a picture of lines in the format of its suffix; HTML has ``caption`` below it. Raises
    ParioError."""
    if path.suffix == ".png":
        save(_plot_panels(panels, axes), path)
    else:
        write(path, title, figure(panels, axes), caption)


def draw_spans(
    path: Path, title: str, panels: Sequence[SpanPanel], kinds: Sequence[Kind], caption: str
) -> None:
    """Write a picture of rows over time. Raises ParioError."""
    if path.suffix == ".png":
        save(_plot_spans(panels, kinds), path)
    else:
        write(path, title, spans.figure(panels, kinds), caption)


def write(path: Path, title: str, picture: str, caption: str) -> None:
    """Write an SVG picture, or HTML around it if the suffix is .html. Raises ParioError."""
    if path.suffix == ".html":
        head = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        )
        picture = f"{head}<body>\n{picture}<pre>{escape(caption)}</pre></body></html>\n"
    write_text(path, picture)


def _make_places(panels: Sequence[Any], height: float, rest: float = 0.0) -> tuple[Any, Any]:
    """Return a figure of matplotlib and its rows of places for panels. Heights, those of a row and
    of the rest, are in inches."""
    across = min(ACROSS, len(panels))
    rows = -(-len(panels) // across)
    drawn, places = pyplot().subplots(
        rows,
        across,
        figsize=(6.4 * across, height * rows + rest),
        squeeze=False,
        layout="constrained",
    )
    for place in places.flat[len(panels) :]:
        place.set_axis_off()
    return drawn, places


def _plot_panels(panels: Sequence[Panel], axes: Axes) -> Any:
    """Return the same panels and legend as a figure of matplotlib."""
    drawn, places = _make_places(panels, 4.4)
    names = names_of(panels)
    lines: dict[str, Any] = {}
    for place, panel in zip(places.flat, panels, strict=False):
        lines |= _lines(place, panel, axes, names)
    if lines:
        columns = 3 * places.shape[1]
        drawn.legend(
            [lines[name] for name in names], names, loc="outside lower center", ncols=columns
        )
    return drawn


def _lines(place: Any, panel: Panel, axes: Axes, names: Sequence[str]) -> dict[str, Any]:
    """Plot one panel; return its lines by name."""
    found = {}
    for name, line in panel.lines.items():
        colour, dash = look(names.index(name))
        style = (0, tuple(map(int, dash.split()))) if dash else "-"
        (found[name],) = place.plot(
            *zip(*line, strict=True), color=colour, linestyle=style, marker="o", markersize=3
        )
    place.set(title=panel.title, xlabel=axes.x, ylabel=axes.y, xscale="log", yscale="log")
    ticks = sorted({x for line in panel.lines.values() for x, _ in line})
    place.set_xticks(ticks, [axes.x_text(x) for x in ticks])
    place.minorticks_off()
    place.yaxis.set_major_formatter(lambda value, _: axes.y_text(value))
    place.grid(visible=True, alpha=0.3)
    return found


def _plot_spans(panels: Sequence[SpanPanel], kinds: Sequence[Kind]) -> Any:
    """Return the same rows and legend as a figure of matplotlib."""
    drawn, places = _make_places(panels, 1.9, rest=0.5)
    for place, panel in zip(places.flat, panels, strict=False):
        for number, row in enumerate(panel.rows):
            for kind in kinds:
                bars = [(begin, end - begin) for begin, end in row.get(kind.name, ())]
                place.broken_barh(bars, (number - kind.height / 2, kind.height), color=kind.colour)
        place.set(title=panel.title, xlim=(0, panel.seconds), ylim=(len(panel.rows) - 0.5, -0.5))
        place.set_xticks(
            spans.ticks(panel.seconds),
            [wording.seconds(tick) for tick in spans.ticks(panel.seconds)],
        )
        every = max(len(panel.rows) // _LABELS, 1)
        place.set_yticks(range(0, len(panel.rows), every), panel.labels[::every])
    patches = [pyplot().Rectangle((0, 0), 1, 1, color=kind.colour) for kind in kinds]
    drawn.legend(
        patches, [kind.name for kind in kinds], loc="outside lower center", ncols=len(kinds)
    )
    return drawn
