"""The tables of a job with names in place of numbers, for all exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import EVENT_KINDS, LAYERS, Job


@dataclass(frozen=True)
class Column:
    """A column: plain values, or numbers of ``names`` (out of range: no name)."""

    name: str
    values: NDArray[Any]
    names: Sequence[str] | None = None


def table_names() -> tuple[str, ...]:
    """Return the names of the tables of a job, events last."""
    return (*_TABLES, "events")


def columns(job: Job, table: str, rows: slice | None = None) -> Iterator[Column]:
    """Yield the columns of a table, or of some of its rows."""
    source = getattr(job, table)
    source = source[rows] if rows is not None else source
    named = _NAMED[table](job)
    for name in source.dtype.names:
        yield Column(name, source[name], named.get(name))


def facts(job: Job) -> dict[str, Any]:
    """Return the facts of the whole job."""
    names = (
        "source",
        "format",
        "command",
        "start",
        "wall",
        "ranks",
        "exit_status",
        "mpi_library",
        "hosts",
        "metadata",
        "messages",
    )
    return {name: getattr(job, name) for name in names} | {"has": sorted(job.has)}


def _events(job: Job) -> Mapping[str, Sequence[str]]:
    layers = [*LAYERS, *[""] * (255 - len(LAYERS)), "mpi"]
    return {"function": job.function_names, "kind": EVENT_KINDS, "layer": layers}


_NAMED: Mapping[str, Callable[[Job], Mapping[str, Sequence[str]]]] = {
    "processes": lambda job: {"host": job.hosts, "exe": job.programs},
    "files": lambda job: {"path": job.paths},
    "records": lambda job: {"layer": LAYERS},
    "functions": lambda job: {"name": job.function_names},
    "filesystems": lambda job: {"host": job.hosts},
    "mpiio": lambda job: {"path": job.paths},
    "events": _events,
}
_TABLES = tuple(name for name in _NAMED if name != "events")


def names_of(column: Column) -> list[str | None]:
    """Return the names of a column of numbers; None for a number without a name."""
    names = list(column.names or ())
    return [names[i] if 0 <= i < len(names) else None for i in column.values.tolist()]


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """True for the rows in which a column of floats has no value."""
    missing: NDArray[np.bool_] = (
        np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, np.bool_)
    )
    return missing
