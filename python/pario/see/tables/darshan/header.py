"""Checks a Darshan log before its library reads it, because the library prints its errors and does
not detect all damage."""

from __future__ import annotations

from pathlib import Path

from pario.see.tables.errors import ReadError

MAGIC = 6567223
EXPECTED = "a Darshan log, format 3.00 or later"
_MAGIC_AT = 8
# bytes in format 3.21; headers of other formats have a similar size, and more than half of it
_HEADER_SIZE = 360
_FOREIGN = {
    b"\x1f\x8b": "a gzip file (perhaps a log of Darshan 2)",
    b"BZ": "a bzip2 file (perhaps a log of Darshan 2)",
}


def check(path: Path) -> None:
    """Check the header. Raises ReadError if the file cannot be a log of Darshan 3."""
    with path.open("rb") as file:
        head = file.read(_HEADER_SIZE)
    if not head:
        raise ReadError(path, "an empty file", EXPECTED)
    if _magic(head) != MAGIC:
        raise ReadError(
            path, _FOREIGN.get(head[:2], f"a file that begins with {head[:16].hex(' ')}"), EXPECTED
        )
    if len(head) < _HEADER_SIZE // 2:
        raise ReadError(path, f"a log cut off after {len(head)} bytes", EXPECTED)


def _magic(head: bytes) -> int:
    """Return the magic number, for both byte orders."""
    field = head[_MAGIC_AT : _MAGIC_AT + 8]
    little = int.from_bytes(field, "little")
    return little if little == MAGIC else int.from_bytes(field, "big")
