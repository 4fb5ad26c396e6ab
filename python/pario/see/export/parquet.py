"""A job as Parquet files, one per table, events in row groups."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from pario.errors import ParioError
from pario.paths import local_path, resolve
from pario.publishing import new_directory, temporary_directory
from pario.see.export.tables import Column, columns, facts, is_missing, table_names
from pario.see.tables.model import Job

_ROWS_PER_GROUP = 1 << 20


def parquet(job: Job, directory: str | os.PathLike[str]) -> None:
    """Write TABLE.parquet for every table of the job, and job.parquet with one row of facts. Makes
    the directory if it is missing. The files appear when all are complete. Raises ParioError."""
    directory = resolve(local_path(directory))
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ParioError(
            f"writing Parquet needs the package pyarrow ({error}): pip install pyarrow"
        ) from error
    try:
        if not directory.exists():
            with new_directory(directory) as part:
                _write_tables(job, part)
            return
        with temporary_directory(directory / "tables") as part:
            _write_tables(job, part)
            for path in part.iterdir():
                path.replace(directory / path.name)
    except OSError as error:
        raise ParioError(f"cannot write {directory}: {error.strerror or error}") from error


def _write_tables(job: Job, directory: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet as files

    single = {
        name: [value if isinstance(value, int | float | None) else str(value)]
        for name, value in facts(job).items()
    }
    files.write_table(arrow.table(single), directory / "job.parquet")
    for table in table_names():
        rows = len(getattr(job, table))
        first = _table(arrow, job, table, slice(0, _ROWS_PER_GROUP))
        with files.ParquetWriter(
            directory / f"{table}.parquet", first.schema, compression="zstd"
        ) as writer:
            writer.write_table(first)
            for start in range(_ROWS_PER_GROUP, rows, _ROWS_PER_GROUP):
                writer.write_table(_table(arrow, job, table, slice(start, start + _ROWS_PER_GROUP)))


def _table(arrow: Any, job: Job, table: str, rows: slice) -> Any:
    return arrow.table({column.name: _array(arrow, column) for column in columns(job, table, rows)})


def _array(arrow: Any, column: Column) -> Any:
    values = np.ascontiguousarray(column.values)
    if column.names is not None:
        names = list(column.names)
        numbers = values.astype(np.int32)
        outside = (numbers < 0) | (numbers >= len(names))
        return arrow.DictionaryArray.from_arrays(
            arrow.array(numbers, mask=outside), arrow.array(names, arrow.string())
        )
    if values.ndim > 1:
        return arrow.FixedSizeListArray.from_arrays(arrow.array(values.ravel()), values.shape[1])
    if values.dtype.kind == "U":
        return arrow.array(values.tolist(), arrow.string())
    return arrow.array(values, mask=is_missing(values))
