"""Fits the parameters of a machine to rows of published tables that are marked for it.
Deterministic."""

from __future__ import annotations

import math
from collections.abc import Callable

from pario.prove.model.machine import WHOLE, Machine
from pario.prove.model.published import Row, Table, tables

#: Search intervals around a value, in decades, one after the other; and the number of cuts of an
#: interval.
_REACH = (1.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
_CUTS = 14
_SAME = "the same value as "


def rows_of(machine: Machine) -> list[tuple[Table, Row]]:
    """The rows that the machine's parameters are fitted to."""
    return [
        (table, row)
        for table in tables()
        if table.machine == machine.name
        for row in table.rows
        if row.fits
    ]


def fit(machine: Machine) -> Machine:
    """Minimize the squared errors of the logarithms, one parameter after the other."""
    rows = rows_of(machine)
    free = [name for name in machine.fitted if not machine.sources[name].startswith(_SAME)]

    def error(candidate: Machine) -> float:
        return sum(
            math.log(table.predict(candidate, row) / row.published) ** 2 for table, row in rows
        )

    for reach in _REACH:
        for name in free:
            machine = _improve(machine, name, reach, error)
    return _round_fitted(machine)


def _improve(
    machine: Machine, name: str, reach: float, error: Callable[[Machine], float]
) -> Machine:
    """Search the best value of one parameter within ``reach`` decades, by ternary search."""
    low, high = (math.log10(machine.values[name]) + side * reach for side in (-1, 1))
    for _ in range(_CUTS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if error(_with(machine, name, 10**left)) <= error(_with(machine, name, 10**right)):
            high = right
        else:
            low = left
    found = _with(machine, name, 10 ** ((low + high) / 2))
    return found if error(found) < error(machine) else machine


def _with(machine: Machine, name: str, value: float) -> Machine:
    same = [other for other in machine.fitted if machine.sources[other] == _SAME + name]
    return machine.with_values(
        dict.fromkeys([name, *same], float(max(round(value), 1)) if name in WHOLE else value)
    )


def _round_fitted(machine: Machine) -> Machine:
    return machine.with_values(
        {name: float(f"{machine.values[name]:.4g}") for name in machine.fitted}
    )
