"""The parts of ELF files (64 bits, little endian) that need no other program: build ID and
symbols."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"\x7fELF\x02\x01"
_SECTION = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("align", "<u8"),
        ("entry", "<u8"),
    ]
)
_SYMBOL = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)
_SYMBOL_TABLE, _NOTE, _DYNAMIC_SYMBOLS = 2, 7, 11  # types of sections
_BUILD_ID = b"\x04\0\0\0"
_FUNCTION = 2


@dataclass(frozen=True)
class Symbol:
    """The function of an address, and the bytes from its beginning."""

    name: str
    offset: int


def is_readable(path: str) -> bool:
    """Tell whether a path is an ELF file that this process may read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


@lru_cache(maxsize=256)
def build_id(path: str) -> str:
    """Return the build ID in hexadecimal; empty if the file has none."""
    data = _map(path)
    for section in _sections(data):
        if section["type"] != _NOTE:
            continue
        note = data[int(section["offset"]) :][: int(section["size"])].tobytes()
        if note[:4] == _BUILD_ID and note[8:16] == b"\x03\0\0\0GNU\0":
            return note[16 : 16 + int.from_bytes(note[4:8], "little")].hex()
    return ""


class Symbols:
    """The functions of a file."""

    def __init__(self, path: str) -> None:
        data = _map(path)
        sections = _sections(data)
        tables = [row for row in sections if row["type"] == _SYMBOL_TABLE] or [
            row for row in sections if row["type"] == _DYNAMIC_SYMBOLS
        ]
        self._symbols = np.zeros(0, _SYMBOL)
        self._names = b""
        if tables and int(tables[0]["link"]) < len(sections):
            table, names = tables[0], sections[int(tables[0]["link"])]
            symbols = _rows(data, _SYMBOL, table["offset"], int(table["size"]) // _SYMBOL.itemsize)
            symbols = symbols[((symbols["info"] & 15) == _FUNCTION) & (symbols["value"] > 0)]
            self._symbols = np.sort(symbols, order="value")
            self._names = data[int(names["offset"]) :][: int(names["size"])].tobytes()

    def find(self, address: int) -> Symbol | None:
        """Return the function with an address; None if it has no symbol."""
        at = int(np.searchsorted(self._symbols["value"], address, "right")) - 1
        if at < 0:
            return None
        row = self._symbols[at]
        offset = address - int(row["value"])
        if offset >= max(int(row["size"]), 1):
            return None
        start = int(row["name"])
        name = self._names[start : self._names.find(b"\0", start)]
        return Symbol(name.decode("utf-8", "backslashreplace"), offset)


def _map(path: str) -> NDArray[np.uint8]:
    """Map a file; empty if it cannot be read."""
    try:
        if not is_readable(path) or Path(path).stat().st_size < 64:
            return np.zeros(0, np.uint8)
        return np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        return np.zeros(0, np.uint8)


def _sections(data: NDArray[np.uint8]) -> NDArray[Any]:
    header = data[:64].tobytes()
    if len(header) < 64:
        return np.zeros(0, _SECTION)
    offset, count = int.from_bytes(header[40:48], "little"), int.from_bytes(header[60:62], "little")
    return _rows(data, _SECTION, offset, count)


def _rows(data: NDArray[np.uint8], dtype: np.dtype[Any], offset: Any, count: int) -> NDArray[Any]:
    """Return rows of a file; none if they exceed it."""
    part = data[int(offset) : int(offset) + count * dtype.itemsize]
    return part.view(dtype) if len(part) == count * dtype.itemsize else np.zeros(0, dtype)
