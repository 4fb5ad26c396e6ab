"""Pieces of SVG as escaped markup, for charts of the HTML page and for pictures as files.

The charts of the page hold only shapes; their text is HTML beside them, so that a chart can be
scaled without its letters.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

Colour = tuple[int, int, int]
#: Panels side by side in a picture.
ACROSS = 2
#: Steps of a heat map's scale, without the step for nothing.
LEVELS = 15


def document(width: float, height: float, *children: Markup) -> str:
    """Return a standalone picture on white, with text of 11 pixels."""
    background = element("rect", width="100%", height="100%", fill="#fff")
    picture = element(
        "svg",
        background,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family="sans-serif",
        font_size=11,
    )
    return f"{picture}\n"


def text(x: float, y: float, words: str, **attributes: object) -> Markup:
    """Return a text at a position."""
    return element("text", words, x=x, y=y, **attributes)


def path(d: str, *children: Markup, **attributes: object) -> Markup:
    """Return a path with the data ``d``."""
    return element("path", *children, d=d, **attributes)


def panel(x: float, y: float, left: float, title: str, *children: Markup) -> Markup:
    """Return a part of a picture at a position, below its title."""
    named = text(left, 20, title, font_size=13, font_weight=600)
    return element("g", named, *children, transform=f"translate({_short(x)},{_short(y)})")


def rule(d: str) -> Markup:
    """Return a line of the grid."""
    return path(d, stroke="#dde1e6")


def element(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """Return ``<name attribute="...">children</name>``. Attributes lose a trailing underscore;
    other underscores become hyphens. An attribute with the value None is left out."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(str(escape(child)) for child in children)
    return Markup(f"<{name}{named}>{inside}</{name}>" if inside else f"<{name}{named}/>")


def _short(value: object) -> object:
    """Round coordinates to at most three decimals."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def box(css: str, x: float, y: float, width: float, height: float, tip: str = "") -> Markup:
    """Return a rectangle; ``tip`` is its tooltip."""
    title = [element("title", tip)] if tip else []
    return element(
        "rect", *title, class_=css, x=float(x), y=float(y), width=float(width), height=float(height)
    )


def stacked_bar(
    parts: Sequence[tuple[str, float, str]], whole: float, css: str = "bar", label: str = ""
) -> Markup:
    """Return a stretchable horizontal bar of (class, value, tip); ``whole`` is its full length."""
    boxes, start = [], 0.0
    for name, value, tip in parts:
        if value > 0 and whole > 0:
            boxes.append(box(name, start / whole * 1000, 0, value / whole * 1000, 10, tip))
            start += value
    access: dict[str, object] = (
        {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    )
    return element(
        "svg", *boxes, class_=css, viewBox="0 0 1000 10", preserveAspectRatio="none", **access
    )


def steps(values: Sequence[float], high: float) -> str:
    """Return the path of a filled step line over bins of width 1 in a box of height 100."""
    tops = [100 - 100 * value / high if high else 100.0 for value in values]
    moves = "".join(f"V{top:.1f}h1" for top in tops)
    return f"M0 100{moves}V100z"


def picture(pixels: bytes, columns: int, colours: Iterable[Colour], css: str = "") -> Markup:
    """Return a grid as an image of one pixel per cell inside the SVG; as rectangles it would be ten
    times as large.

    A pixel is 0 for nothing, otherwise ``1 + LEVELS * colour + level``, the level below ``LEVELS``.
    """
    rows = len(pixels) // columns
    link = (
        "data:image/png;base64,"
        + base64.b64encode(_png(pixels, columns, _palette(colours))).decode()
    )
    return element(
        "image",
        class_=css or None,
        href=link,
        width=columns,
        height=rows,
        preserveAspectRatio="none",
    )


def pixel(colour: int, part: float) -> int:
    """Return the pixel for a part (0..1) of the scale of a colour; less than 0.01 is nothing."""
    if part < 0.01:
        return 0
    return 1 + LEVELS * colour + min(round(part * LEVELS), LEVELS - 1)


def _palette(colours: Iterable[Colour]) -> list[tuple[int, int, int, int]]:
    shades = [
        (*colour, round(255 * (0.1 + 0.9 * level / (LEVELS - 1))))
        for colour in colours
        for level in range(LEVELS)
    ]
    return [(0, 0, 0, 0), *shades]


def _png(pixels: bytes, columns: int, palette: Sequence[tuple[int, int, int, int]]) -> bytes:
    """Return an indexed PNG with transparency."""
    lines = b"".join(
        b"\0" + pixels[start : start + columns] for start in range(0, len(pixels), columns)
    )
    header = struct.pack(">IIBBBBB", columns, len(pixels) // columns, 8, 3, 0, 0, 0)
    colours = b"".join(bytes(entry[:3]) for entry in palette)
    opacity = bytes(entry[3] for entry in palette)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", colours),
        (b"tRNS", opacity),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
