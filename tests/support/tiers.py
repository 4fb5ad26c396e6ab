"""The three tiers of tests, and the selection of parameter combinations for CI.

A test without a tier marker is quick: ``make test`` runs it. Marker ``system`` adds the tests of
real systems that ``.ci/run`` runs, marker ``exhaustive`` those of ``make test-all``.

Parameters multiply (MPI x ranks x nodes x option), and CI runs a selection of their combinations:
of quick tests each pair of values of two parameters, of system tests each value of each parameter.
All other combinations are exhaustive. Tests of ``tests/python`` are exempt: their parameters are
cheap.

A module whose ``pytestmark`` puts it into a tier that ``-m`` leaves out is not imported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression

#: One value of one parameter: its name, and a number that no other value of the parameter has.
Value = tuple[str, int]
_EXEMPT = Path(__file__).parents[1] / "python"
#: The parameter that pytest-repeat adds: the number of a repetition, each with the whole selection.
_REPETITION = "__pytest_repeat_step_number"
#: Tiers of the MPIs that are not part of the quick tests.
_TIERS_OF_MPIS = {
    "openmpi-5": "system",
    "mpich-4": "exhaustive",
    "openmpi-4": "exhaustive",
    "intel-mpi": "exhaustive",
}
#: Expensive fixtures by group: tests of a group share one worker of pytest-xdist, and so one of
#: each fixture (--dist loadgroup). All other tests are grouped by file.
_GROUPS = {
    "ceph": "ceph",  # four servers with their data in memory, and five clients
    "slurm": "slurm",  # its daemons, and the hosts beneath
    "hosts": "hosts",
    "four_hosts": "hosts",
    "browser": "browser",
}


_MARKS_OF_MODULE = re.compile(r"^pytestmark = (\[.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"pytest\.mark\.(\w+)")
_TIERS = frozenset({"system", "exhaustive"})


def select_for_ci(values: Sequence[object], count: int) -> list[object]:
    """Parameters of which CI tests the first ``count``."""
    rest = [pytest.param(value, marks=pytest.mark.exhaustive) for value in values[count:]]
    return [*values[:count], *rest]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out modules none of whose tests ``-m`` can select: their imports take seconds."""
    expression = config.option.markexpr
    if not expression or collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    tiers = read_tiers(collection_path.read_text(encoding="utf-8"))
    return None if not tiers or may_select(expression, tiers) else True


def may_select(expression: str, tiers: Collection[str]) -> bool:
    """True if an expression of ``-m`` may select a test of a module whose tests have these tiers,
    and perhaps other marks."""
    compiled = Expression.compile(expression)

    def evaluate(own: Collection[str], others: bool) -> bool:
        def matches(name: str, /, **_: object) -> bool:
            return name in own if name in _TIERS else others

        return compiled.evaluate(matches)

    return any(evaluate(own, others) for own in (tiers, _TIERS) for others in (False, True))


def read_tiers(source: str) -> set[str]:
    """Returns the tiers in ``pytestmark`` of a module's source."""
    found = _MARKS_OF_MODULE.search(source)
    return set(_MARK.findall(found[1])) & _TIERS if found else set()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds the markers for tiers and groups, before ``-m`` deselects."""
    matrices: dict[tuple[str, object], list[pytest.Item]] = {}
    for item in items:
        _add_group(item)
        _add_tier_of_mpi(item)
        parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        repetition = parameters.pop(_REPETITION, None)
        if parameters and not item.path.is_relative_to(_EXEMPT):
            matrices.setdefault((item.nodeid.split("[")[0], repetition), []).append(item)
    for matrix in matrices.values():
        for item in _select_others(matrix):
            item.add_marker(pytest.mark.exhaustive)


def _add_group(item: pytest.Item) -> None:
    if item.get_closest_marker("xdist_group"):
        return
    names = getattr(item, "fixturenames", [])
    groups = (group for name, group in _GROUPS.items() if name in names)
    item.add_marker(pytest.mark.xdist_group(next(groups, item.path.name)))


def _add_tier_of_mpi(item: pytest.Item) -> None:
    """Marks a test by its MPI, unless its parameters have a marker of their own."""
    call = getattr(item, "callspec", None)
    if call is None or {mark.name for mark in call.marks} & {"system", "exhaustive"}:
        return
    for value in call.params.values():
        name = getattr(value, "name", value)
        if isinstance(name, str) and name in _TIERS_OF_MPIS:
            item.add_marker(getattr(pytest.mark, _TIERS_OF_MPIS[name]))


def _select_others(matrix: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests of a matrix that CI does not need."""
    candidates = [item for item in matrix if not item.get_closest_marker("exhaustive")]
    quick = [item for item in candidates if not item.get_closest_marker("system")]
    system = [item for item in candidates if item.get_closest_marker("system")]
    quick_rows = [_values_of(item) for item in quick]
    chosen = select_pairwise(quick_rows)
    seen = {value for number in chosen for value in quick_rows[number]}
    needed = select_each_value([_values_of(item) for item in system], seen)
    others = [item for number, item in enumerate(quick) if number not in chosen]
    return others + [item for number, item in enumerate(system) if number not in needed]


def _values_of(item: Any) -> tuple[Value, ...]:
    """Returns the values of an item's parameters; the combinations share the values as objects.

    The indices of ``callspec`` are no substitute: pytest counts combinations in them.
    """
    values = item.callspec.params.items()
    return tuple(sorted((name, id(value)) for name, value in values if name != _REPETITION))


def select_pairwise(rows: Sequence[tuple[Value, ...]]) -> set[int]:
    """Returns positions of rows that together hold each pair of values that any row holds.

    A matrix with one parameter is selected as a whole.
    """
    return _select_cover([_pairs(row) for row in rows])


def select_each_value(
    rows: Sequence[tuple[Value, ...]], seen: Collection[Value] = frozenset()
) -> set[int]:
    """Returns positions of rows that together hold each value of all rows, except those seen."""
    return _select_cover([set(row).difference(seen) for row in rows])


def _select_cover(rows: Sequence[set[Any]]) -> set[int]:
    """Returns positions of rows whose union is that of all rows.

    Greedy, as in Cohen et al., "The AETG System" (1997): the row with the most missing elements is
    next; among equals the first.
    """
    missing = set().union(*rows)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(rows)), key=lambda number: (len(rows[number] & missing), -number))
        chosen.add(best)
        missing -= rows[best]
    return chosen


def _pairs(row: tuple[Value, ...]) -> set[Any]:
    return set(combinations(row, 2)) if len(row) > 1 else set(row)
