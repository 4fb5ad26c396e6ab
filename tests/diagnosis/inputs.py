"""Input files of the corpus: the same bytes for the same size, each kind by one function."""

from __future__ import annotations

import array
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20
#: Keys whose number is multiplied by the program's size if the input is `per_unit`.
_COUNTS = ("bytes", "lines", "files", "members", "elements", "rows", "numbers")

Row = Mapping[str, Any]


def create(row: Row, size: int, directory: Path) -> None:
    """Creates one input of the table below a directory, unless it exists."""
    path = directory / str(row.get("file") or row["folder"])
    if path.exists():
        return
    kind = next(kind for kind in _MAKERS if kind in row)
    scaled = dict(row)
    if row.get("per_unit"):
        counted = next(
            key for key in _COUNTS if key in row and not (key == "bytes" and kind != key)
        )
        scaled[counted] = row[counted] * size
    _MAKERS[kind](path, scaled)


def drop_from_cache(path: Path) -> None:
    """Removes a file's pages from the page cache, after writing them."""
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _bytes(count: int) -> bytes:
    """Returns bytes that depend on their position; the same block of 1 MiB again and again."""
    one = b"".join(
        (i * 2654435761 % (1 << 32)).to_bytes(4, "little")
        for i in range(min(count, _BLOCK) // 4 + 1)
    )
    return (one[:_BLOCK] * (count // _BLOCK + 1))[:count]


def _make_bytes(path: Path, row: Row) -> None:
    path.write_bytes(_bytes(row["bytes"]))


def _make_lines(path: Path, row: Row) -> None:
    with path.open("w") as file:
        file.writelines(f"{i:08d} value of station {i % 97}\n" for i in range(row["lines"]))


def _make_files(path: Path, row: Row) -> None:
    path.mkdir()
    content = _bytes(row["bytes"])
    for i in range(row["files"]):
        (path / f"{i:06d}").write_bytes(content)


def _make_members(path: Path, row: Row) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(row["members"]):
            archive.writestr(f"member{i:05d}", _bytes(row["bytes"]))


def _make_array(path: Path, row: Row) -> None:
    import numpy as np

    np.save(path, np.arange(row["elements"], dtype="i4"))


def _make_columns(path: Path, row: Row) -> None:
    """Makes a compressed data set of HDF5 whose chunks are columns."""
    import h5py
    import numpy as np

    rows, columns = row["rows"], row["columns"]
    values = np.arange(rows * columns, dtype="f4").reshape(rows, columns)
    with h5py.File(path, "w") as file:
        chunks = (rows, 8)
        file.create_dataset(
            "temperature", data=values, chunks=chunks, compression="gzip", compression_opts=1
        )


def _make_numbers(path: Path, row: Row) -> None:
    """Makes a file of numbers, as lines of text or in binary by its name; the same numbers."""
    values = [1 / (i + 3) for i in range(row["numbers"])]
    if path.suffix == ".txt":
        path.write_text("".join(f"{value!r}\n" for value in values))
    else:
        path.write_bytes(array.array("d", values).tobytes())


def _make_text(path: Path, row: Row) -> None:
    path.write_text(row["text"])


#: By the first of these keys that an input has.
_MAKERS: dict[str, Callable[[Path, Row], None]] = {
    "text": _make_text,
    "lines": _make_lines,
    "files": _make_files,
    "members": _make_members,
    "elements": _make_array,
    "rows": _make_columns,
    "numbers": _make_numbers,
    "bytes": _make_bytes,
}
