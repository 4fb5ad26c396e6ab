"""The schema block of a process log: the layout of its rows and the names of its functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

_NEEDED = ("process", "record", "functions", "layers", "ops")
_NEEDED_COUNTERS = {"path", "layer", "row", "folded", "kind", "filesystem"}


@dataclass(frozen=True)
class Function:
    """A traced function; ``op`` is its effect on a file."""

    name: str
    category: str
    op: str


UNKNOWN = Function("(unknown)", "mpi", "other")


@dataclass(frozen=True)
class Schema:
    """The schema of a log. The index of ``functions`` is their ID."""

    pario: str
    process: np.dtype[Any]
    record: np.dtype[Any]
    units: Mapping[str, str]  # of the fields of a record
    functions: Sequence[Function]
    layers: Sequence[str]
    calls_in_progress: int = 0  # rows of them in a thread block; 0: an earlier version


@lru_cache(maxsize=8)
def parse_schema(text: bytes) -> Schema:
    """Parse the payload of a schema block; the processes of a job share the result. Raises
    ValueError with the missing parts."""
    found = json.loads(text)
    missing = [name for name in _NEEDED if name not in found]
    missing += sorted(_NEEDED_COUNTERS - {name for name, _ in found.get("record", [])})
    if missing:
        raise ValueError(f"a schema without {', '.join(missing)}")
    functions = {
        int(f["id"]): Function(str(f["name"]), str(f["category"]), str(f.get("op", "other")))
        for f in found["functions"]
    }
    return Schema(
        pario=str(found.get("pario", "")),
        process=_row(found["process"]),
        record=_row(found["record"]),
        units=dict(found["record"]),
        functions=[
            functions.get(number, UNKNOWN) for number in range(max(functions, default=-1) + 1)
        ],
        layers=list(found["layers"]),
        calls_in_progress=int(found.get("calls_in_progress", 0)),
    )


def _row(fields: Sequence[Sequence[str]]) -> np.dtype[Any]:
    return np.dtype([(name, "<u8") for name, _ in fields])
