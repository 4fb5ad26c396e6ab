"""The line numbers of keys in a TOML file, which the parser of the standard library does not
report."""

from __future__ import annotations

import re

#: A place in the document: ("file", 0, "streams", "size").
Place = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def line_of(text: str, place: Place) -> int:
    """Return the line (from 1) of the key, or of the nearest enclosing table; 0 for none."""
    best, length = 0, 0
    for number, path in _keys(text):
        common = min(len(path), len(place))
        if path[:common] == place[:common] and common > length:
            best, length = number, common
    return best


def _keys(text: str) -> list[tuple[int, Place]]:
    """Return the lines with a key or a header, and the place of each."""
    table: Place = ()
    counts: dict[str, int] = {}
    found: list[tuple[int, Place]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _table(header[1] == "[[", _parts(header[2]), counts)
            found.append((number, table))
        elif key := _KEY.match(line):
            found.append((number, (*table, *_parts(key[1]))))
    return found


def _table(repeated: bool, parts: tuple[str, ...], counts: dict[str, int]) -> Place:
    """Return the place of a header: of a repeated table a new one, below it the last one."""
    if repeated:
        counts[parts[0]] = counts.get(parts[0], -1) + 1
    return (parts[0], counts[parts[0]], *parts[1:]) if parts[0] in counts else parts


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
