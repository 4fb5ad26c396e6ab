"""The schema block of a process log: how its rows are laid out and what its functions are called."""

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
    """A traced function; ``op`` is what it does to a file."""

    name: str
    category: str
    op: str


UNKNOWN = Function("(unknown)", "mpi", "other")


@dataclass(frozen=True)
class Schema:
    """What a log says of its rows. ``functions`` are at the places of their ids."""

    pario: str
    process: np.dtype[Any]
    record: np.dtype[Any]
    units: Mapping[str, str]  # of the fields of a record
    functions: Sequence[Function]
    layers: Sequence[str]


@lru_cache(maxsize=8)
def parse_schema(text: bytes) -> Schema:
    """The schema in the payload of a schema block; the processes of a job share it. Raises ValueError naming what is missing."""
    found = json.loads(text)
    missing = [name for name in _NEEDED if name not in found]
    missing += sorted(_NEEDED_COUNTERS - {name for name, _ in found.get("record", [])})
    if missing:
        raise ValueError(f"a schema without {', '.join(missing)}")
    functions = {int(f["id"]): Function(str(f["name"]), str(f["category"]), str(f.get("op", "other"))) for f in found["functions"]}
    return Schema(
        pario=str(found.get("pario", "")),
        process=_row(found["process"]),
        record=_row(found["record"]),
        units=dict(found["record"]),
        functions=[functions.get(number, UNKNOWN) for number in range(max(functions, default=-1) + 1)],
        layers=list(found["layers"]),
    )


def _row(fields: Sequence[Sequence[str]]) -> np.dtype[Any]:
    return np.dtype([(name, "<u8") for name, _ in fields])
