"""The activity of ranks over time, call by call: rows of spans, for a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Begins and ends in seconds since the start of the panel, sorted and disjoint.
Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Kind:
    """A kind of activity: its name, its colour, and its part (0..1) of a row's height."""

    name: str
    colour: str
    height: float


@dataclass(frozen=True)
class Panel:
    """Rows over ``seconds``; each row maps the name of a kind to its spans."""

    title: str
    seconds: float
    labels: Sequence[str]
    rows: Sequence[Mapping[str, Spans]]


def merge_spans(begins: NDArray[Any], ends: NDArray[Any], apart: float) -> Spans:
    """Return the spans, merged where they are at most ``apart`` seconds apart."""
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
