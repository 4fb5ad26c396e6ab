"""What ranks were doing over time, call by call: rows of spans, for a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Begins and ends, in seconds from the panel's beginning, in order and apart.
Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Kind:
    """Of what is done: its name, its colour, and which part of a row's height it takes."""

    name: str
    colour: str
    height: float


@dataclass(frozen=True)
class Panel:
    """Rows over so many seconds; of each row its spans by the name of their kind."""

    title: str
    seconds: float
    labels: Sequence[str]
    rows: Sequence[Mapping[str, Spans]]


def merged(begins: NDArray[Any], ends: NDArray[Any], apart: float) -> Spans:
    """Spans of which none is nearer to the next one than that."""
    order = np.argsort(begins)
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.append(True, begins[1:] - ends[:-1] > apart))
    return list(
        zip(
            begins[first].tolist(),
            ends[np.append(first[1:] - 1, len(ends) - 1)].tolist(),
            strict=True,
        )
    )
