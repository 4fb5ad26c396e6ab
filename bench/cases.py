"""Reads the recorded results of benchmarks, and compares pario with peers and limits."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from areas import Area

from pario import wording

Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Row:
    """A case of an area with its values; None: not recorded."""

    case: str
    ours: float
    peer: float | None
    peer_name: str
    limit: float | None
    rounds: int
    spread: float  # the largest value of a round in smallest ones

    rate: bool = False  # values, of which larger ones are better

    @property
    def ratio(self) -> float | None:
        """The cost of the best peer in costs of pario: above one, pario is better."""
        return self._compare(self.peer)

    @property
    def share(self) -> float | None:
        """The share of the limit that pario reaches."""
        return self._compare(self.limit)

    def _compare(self, other: float | None) -> float | None:
        if not other or not self.ours:
            return None
        return self.ours / other if self.rate else other / self.ours


def read_area(area: Area, results: Path) -> tuple[list[Row], Path | None, Rows]:
    """Returns the cases of an area, its file and its rows; none if nothing is recorded."""
    for file, rows in read_newest(results, area.name, "commit").values():
        cases = dict.fromkeys(tuple(row[column] for column in area.case) for row in rows)
        found = [_read_case(area, rows, case) for case in cases]
        return [row for row in found if row], file, rows
    return [], None, []


def read_newest(
    results: Path, name: str, column: str, each: str = ""
) -> dict[str, tuple[Path, Rows]]:
    """Returns the newest file of a benchmark, and its rows with the last value of `column`.

    With `each`, another column, these are found for each value of it, which is the key; otherwise
    the key is empty.
    """
    newest: dict[str, tuple[Path, Rows]] = {}
    for file in sorted(results.glob(f"*/{name}.csv")):
        with file.open(newline="", encoding="utf-8") as text:
            rows = list(csv.DictReader(text))
        for key, last in {row.get(each, ""): row[column] for row in rows}.items():
            found = [row for row in rows if (row.get(each, ""), row[column]) == (key, last)]
            newest[key] = file, found
    return newest


def _read_case(area: Area, rows: Rows, case: tuple[str, ...]) -> Row | None:
    own = [row for row in rows if tuple(row[column] for column in area.case) == case]
    others = (area.limit, *area.peers)
    own = [
        row
        for row in own
        if row["way"] in others or all(row[key] == cell for key, cell in area.only.items())
    ]
    ours = _values(own, area.ours, area.value)
    if not ours:
        return None
    peers = {way: _median(_values(own, way, area.value)) for way in area.peers}
    known = {way: value for way, value in peers.items() if value is not None}
    best = (max if area.is_rate else min)(known, key=lambda way: known[way], default="")
    limit = (
        _median(_values(own, area.ours, area.limit))
        if area.limit in rows[0]
        else _median(_values(own, area.limit, area.value))
    )
    return Row(
        case=_name(area, case),
        ours=statistics.median(ours),
        peer=known.get(best),
        peer_name=area.labels.get(best, best),
        limit=limit,
        rounds=len(ours),
        spread=max(ours) / (min(ours) or 1.0),
        rate=area.is_rate,
    )


def _values(rows: Rows, way: str, column: str) -> list[float]:
    return [float(row[column]) for row in rows if row["way"] == way and row[column]]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _name(area: Area, case: tuple[str, ...]) -> str:
    cells = zip(area.case, case, strict=True)
    return ", ".join(
        wording.size(float(cell)) if "bytes" in column else cell for column, cell in cells
    )
