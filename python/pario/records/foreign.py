"""Formats whose records only their own packages find: Parquet and ArrayRecord. Converted, they can be read by number."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pario.errors import ParioError


@dataclass(frozen=True)
class Foreign:
    """A format, by the endings of its files, the package that reads it, and its records as bytes: of a path, and a column or none."""

    name: str
    endings: tuple[str, ...]
    package: str
    records: Callable[[str, str | None], Iterator[bytes]]

    def read(self, path: str, column: str | None = None) -> Iterator[bytes]:
        """All records in order. Raises ParioError where the package is missing, or cannot read the file."""
        try:
            yield from self.records(path, column)
        except ImportError as error:
            raise ParioError(f"{path}: reading {self.name} needs the package {self.package}: pip install {self.package}") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise ParioError(f"{path}: not read as {self.name}: {error}") from error


def foreign_format(path: str) -> Foreign | None:
    """By the ending of a file's name."""
    return next((one for one in FORMATS if path.endswith(one.endings)), None)


def refuse(path: str) -> None:
    """Raises ParioError where records cannot be read by number."""
    if found := foreign_format(path):
        made = Path(path).with_suffix(".prec").name
        raise ParioError(
            f"{path}: records of {found.name} are compressed together and cannot be read by number; "
            f"pario records convert --to prec -o {made} makes a file of them that can"
        )


def _rows(path: str, column: str | None) -> Iterator[bytes]:
    """Rows as JSON objects, or the bytes of one column."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        if column and column not in file.schema_arrow.names:
            raise ParioError(f"{path}: column {column}: expected one of {', '.join(file.schema_arrow.names)}")
        for batch in file.iter_batches(columns=[column] if column else None):
            yield from _values(path, column, batch.column(0).to_pylist()) if column else map(_json, batch.to_pylist())


def _values(path: str, column: str, values: list[Any]) -> Iterator[bytes]:
    for value in values:
        if not isinstance(value, str | bytes):
            raise ParioError(f"{path}: column {column} holds {type(value).__name__}: expected bytes or text in each row")
        yield value.encode() if isinstance(value, str) else value


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> str:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)


def _array_records(path: str, column: str | None) -> Iterator[bytes]:
    if column:
        raise ParioError(f"{path}: records of ArrayRecord have no columns")
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(path)
    try:
        yield from (reader.read() for _ in range(reader.num_records()))
    finally:
        reader.close()


FORMATS = (
    Foreign("Parquet", (".parquet", ".pq"), "pyarrow", _rows),
    Foreign("ArrayRecord", (".arrayrecord", ".array_record"), "array_record", _array_records),
)
