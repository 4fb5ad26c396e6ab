"""Charts of I/O over time: a heat map of ranks, and bytes per second. Both share the time axis and
zoom together."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pario import wording
from pario.see.analyze.model import LoaderRow, Timeline
from pario.see.report import svg
from pario.see.report.html.charts.chart import Axis, Chart, bands, linear, span
from pario.see.report.tables.run import loader_name

#: The kinds of the heat map: class, word, colour (of middle lightness, for light and dark pages).
KINDS = (
    ("write", "writing", (214, 77, 38)),
    ("read", "reading", (58, 128, 210)),
    ("meta", "metadata", (178, 77, 144)),
    ("mpi", "MPI communication", (37, 147, 101)),
)
#: The colour of training loops that wait for batches.
_WAITING = (189, 138, 16)
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Mark:
    """A call to mark in the heat map."""

    lane: int
    lanes: int  # 0: as many as the map has rows
    start: float
    seconds: float
    text: str


def heat_map(timeline: Timeline, one: str, marks: Sequence[Mark] = ()) -> Chart:
    """Return a heat map of ranks × time; ``one``: rank or process. Cells of the first picture show
    the kind with most time; each kind has a picture of its own for the filter. Calls of ``marks``
    are outlined."""
    layers = _layers(timeline)
    columns, rows = len(timeline.bytes_read), len(timeline.labels)
    pictures = [svg.picture(_dominant(layers), columns, _colours(), "layer all")]
    pictures += [
        svg.picture(_single(layer, index), columns, _colours(), f"layer {KINDS[index][0]}")
        for index, layer in enumerate(layers)
    ]
    pictures += [_outline(mark, timeline) for mark in marks]
    span = wording.seconds(columns * timeline.bin_seconds)
    return Chart(
        id="timeline",
        title=f"Activity of each {one} over time",
        summary=f"Heat map of {wording.plural(rows, 'row')} over {span}; arrow keys read its cells",
        x=time_axis(timeline),
        y=bands("", timeline.labels, 16),
        body=Markup("").join(pictures),
        columns=columns,
        rows=rows,
        height=max(96, min(26 * rows, 440)),
        kind="time",
        grid=False,
    )


def _outline(mark: Mark, timeline: Timeline) -> Markup:
    """Return the outline of a call, at least one column wide, with its text as a tooltip."""
    rows = len(timeline.labels)
    per_row = -(-mark.lanes // rows) if mark.lanes else 1
    left = (mark.start - timeline.start) / timeline.bin_seconds
    width = max(mark.seconds / timeline.bin_seconds, 1.0)
    return svg.element(
        "rect",
        svg.element("title", mark.text),
        x=round(left, 3),
        y=min(mark.lane // per_row, rows - 1),
        width=round(width, 3),
        height=1,
        class_="slow",
    )


def bandwidth(timeline: Timeline, several: str) -> Chart:
    """Return bytes per second of all ranks together (``several``: ranks or processes)."""
    series = [
        (name, [value / timeline.bin_seconds for value in moved])
        for name, moved in _list_byte_series(timeline)
    ]
    axis, high = linear(
        f"all {several} together",
        max((max(values) for _, values in series), default=0.0),
        wording.rate,
        most=4,
    )
    shapes = [
        svg.element("path", class_=f"area {name}", d=svg.steps(values, high))
        for name, values in series
    ]
    peaks = ", ".join(f"{name} at most {wording.rate(max(values))}" for name, values in series)
    return Chart(
        id="bandwidth",
        title="Bandwidth over time",
        summary=f"Bytes per second over time: {peaks}",
        x=time_axis(timeline),
        y=axis,
        body=Markup("").join(shapes),
        columns=len(timeline.bytes_read),
        rows=100,
        height=150,
        legend=tuple((name, {"write": "written", "read": "read"}[name]) for name, _ in series),
        kind="time",
    )


def loader_waits(timeline: Timeline, rows: Sequence[LoaderRow]) -> Chart:
    """Return a heat map of loaders × time: the part of each moment in which their training loops
    wait for batches. The bins of ``rows`` are those of the timeline."""
    columns, shares = len(timeline.bytes_read), [row.wait_share for row in rows]
    return Chart(
        id="loader-waits",
        title="Waits of training loops for batches over time",
        summary=f"Heat map of {wording.plural(len(rows), 'loader')}; arrow keys read its cells",
        x=time_axis(timeline),
        y=bands("by data set", [wording.name(row.data) for row in rows], 16),
        body=svg.picture(_single(shares, 0), columns, [_WAITING]),
        columns=columns,
        rows=len(rows),
        height=max(32, 26 * len(rows)),
        kind="time",
        grid=False,
    )


def kinds(timeline: Timeline) -> list[tuple[str, str]]:
    """Return class and word of each kind that occurs."""
    return [
        (css, word)
        for (css, word, _), layer in zip(KINDS, _layers(timeline), strict=True)
        if any(map(any, layer))
    ]


def data(timeline: Timeline, loaders: Sequence[LoaderRow] = ()) -> dict[str, object]:
    """Return the values that the script shows on hover: shares in 1/255, by kind, then by row."""
    shares = [row for layer in _layers(timeline) for row in layer]
    return {
        "bin": timeline.bin_seconds,
        "start": timeline.start,
        "labels": timeline.labels,
        "kinds": [word for _, word, _ in KINDS],
        "shares": _encode_shares(shares),
        "written": [round(value) for value in timeline.bytes_written],
        "read": [round(value) for value in timeline.bytes_read],
        "loaders": [loader_name(row) for row in loaders],
        "waits": _encode_shares([row.wait_share for row in loaders]),
    }


def _encode_shares(rows: Rows) -> str:
    """Return shares as bytes of 1/255, in base64."""
    values = bytes(min(255, round(255 * share)) for row in rows for share in row)
    return base64.b64encode(values).decode()


def time_axis(timeline: Timeline) -> Axis:
    """Return the axis of seconds since the start of the job."""
    end = timeline.start + timeline.bin_seconds * len(timeline.bytes_read)
    return span("seconds since the start", timeline.start, end, lambda value: f"{value:g}")


def _layers(timeline: Timeline) -> tuple[Rows, ...]:
    """Return the shares of the kinds, in the order of ``KINDS``."""
    return timeline.write_share, timeline.read_share, timeline.meta_share, timeline.mpi_share


def _list_byte_series(timeline: Timeline) -> list[tuple[str, Sequence[float]]]:
    return [
        (name, moved)
        for name, moved in (("write", timeline.bytes_written), ("read", timeline.bytes_read))
        if any(moved)
    ]


def _colours() -> list[svg.Colour]:
    return [colour for _, _, colour in KINDS]


def _dominant(layers: Sequence[Rows]) -> bytes:
    """Return pixels: the kind with the largest share decides the colour, the sum of all shares its
    strength."""
    pixels = bytearray()
    for rows in zip(*layers, strict=True):
        for shares in zip(*rows, strict=True):
            pixels.append(svg.pixel(shares.index(max(shares)), min(1.0, sum(shares))))
    return bytes(pixels)


def _single(layer: Rows, colour: int) -> bytes:
    return bytes(svg.pixel(colour, share) for row in layer for share in row)
