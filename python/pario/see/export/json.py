"""A job without its events as one JSON document (docs/export.md describes it)."""

from __future__ import annotations

import json as encoder
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pario.see.export.tables import columns, facts, is_missing, names_of, table_names
from pario.see.tables.model import Job
from pario.version import version

SCHEMA = 1
_SPARSE = {"records"}  # tables in which zeros are left out


def json(job: Job) -> str:
    """Return the document as text."""
    document: dict[str, Any] = {"pario": version(), "schema": SCHEMA, "job": facts(job)}
    for table in table_names():
        if table != "events":
            document[table] = list(_rows(job, table))
    document["layouts"] = [asdict(layout) for layout in job.layouts]
    document["communicators"] = [asdict(communicator) for communicator in job.communicators]
    document["hints"] = [asdict(hint) for hint in job.hints]
    document["audit"] = [asdict(outcome) for outcome in job.audit]
    return encoder.dumps(document, indent=None, separators=(",", ":"), allow_nan=False, default=str)


def _rows(job: Job, table: str) -> Iterator[dict[str, Any]]:
    """Yield rows as objects, without unknown values, and in sparse tables without zeros."""
    names, lists = [], []
    for column in columns(job, table):
        names.append(column.name)
        lists.append(names_of(column) if column.names is not None else _plain(column.values))
    for values in zip(*lists, strict=True):
        row = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        yield (
            {name: value for name, value in row.items() if _says_something(value)}
            if table in _SPARSE
            else row
        )


def _plain(values: Any) -> list[Any]:
    if values.ndim > 1:
        return list(values.tolist())
    return [
        None if missing else value
        for value, missing in zip(values.tolist(), is_missing(values).tolist(), strict=True)
    ]


def _says_something(value: Any) -> bool:
    return any(value) if isinstance(value, list) else value != 0 or isinstance(value, str)
