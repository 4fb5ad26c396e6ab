"""The model's predictions of published figures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pario.errors import ParioError
from pario.prove.model.fit import fit
from pario.prove.model.load import Flow, Phase, call, cost, simulate_turns, situation_on
from pario.prove.model.machine import WHOLE, Machine, load, names, text_of
from pario.prove.model.page import list_misses, page
from pario.prove.model.published import Table, off, tables

DOCS = Path(__file__).parents[2] / "docs" / "model.md"
#: Machines with too few published figures to check more rows than there are parameters.
SCARCE = {"blue-waters", "marenostrum4", "atpesc", "cray-iobuf", "hal", "frontier"}
TABLES = list(tables())
#: Tables in which several fitted rows share a parameter, and the largest error of these.
SHARED = {"lattice": 0.04}


@pytest.mark.system
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_predictions_are_within_a_quarter_or_known_to_miss(table: Table) -> None:
    machine = load(table.machine)
    assert [row.name for row in list_misses(machine, table)] == [
        row.name for row in table.rows if row.reason
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_that_parameters_are_fitted_to_are_met(table: Table) -> None:
    machine = load(table.machine)
    # A fitted count is off by up to one half, and the rates fitted with it absorb the difference.
    whole = [machine.values[key] for key in machine.fitted if key in WHOLE]
    near = 0.5 / min(whole) if whole else SHARED.get(table.name, 0.01)
    assert all(
        abs(off(row.published, table.predict(machine, row))) < near
        for row in table.rows
        if row.fits
    )


@pytest.mark.parametrize("name", sorted(set(names()) - SCARCE))
def test_more_rows_are_checked_than_parameters_fitted(name: str) -> None:
    machine = load(name)
    own = [table for table in TABLES if table.machine == name]
    assert not machine.fitted or len(machine.fitted) + sum(
        table.volume_fitted for table in own
    ) < sum(len(table.checked) for table in own)


@pytest.mark.system
@pytest.mark.parametrize("name", ["hal", "cray-iobuf", "marenostrum4", "atpesc", "shaheen"])
def test_the_values_in_the_files_are_what_fitting_finds(name: str) -> None:
    machine = load(name)
    found = fit(machine)
    assert {key: found.values[key] for key in machine.fitted} == pytest.approx(
        {key: machine.values[key] for key in machine.fitted}, rel=0.01
    )


@pytest.mark.system
def test_the_page_shows_all_tables() -> None:
    assert "\n".join(page()) in DOCS.read_text(encoding="utf-8")


def test_a_file_of_a_machine_says_where_each_value_is_from(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    head = 'title = "mine"\nkind = "lustre"\nunit = 1048576\nranks_per_node = 4\n[parameters]\n'
    path.write_text(head + 'targets = { value = 8, source = "the manual" }\n')
    assert load(str(path)).values == {"targets": 8}
    path.write_text(head + "targets = { value = 8 }\n")
    with pytest.raises(ParioError, match="targets: either source or fitted"):
        load(str(path))
    path.write_text(head + 'rate = { value = 8, source = "the manual" }\n')
    with pytest.raises(ParioError, match="no such parameter: rate; there are targets, write_rate"):
        load(str(path))
    path.write_text(head)
    with pytest.raises(ParioError, match="targets is missing"):
        load(str(path))
    with pytest.raises(ParioError, match=r"no machine here; there are ascent, .*shaheen"):
        load("here")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("unit = 1048576", "unit = 0", "unit: 0; expected a whole number from 512 to"),
        ("unit = 1048576", "unit = 1e30", "unit: 1e.30; expected"),
        ("unit = 1048576", "unit = 4096.5", "unit: 4096.5; expected a whole number"),
        ("ranks_per_node = 4", "ranks_per_node = 0", "ranks_per_node: 0; expected"),
        ("ranks_per_node = 4", "", "ranks_per_node is missing"),
        ("value = 8", "value = 0", "targets: 0; expected a whole number from 1 to 1e.06"),
        ("value = 8", "value = nan", "targets: nan; expected"),
        ("value = 8", "value = 1e9", "targets: 1000000000.0; expected"),
        ("value = 8", "value = true", "targets: True; expected"),
        ("value = 8", 'value = "many"', "targets: many; expected"),
        ("value = 8,", "", "targets: value is missing"),
        ('"x" }', '"" }', "targets: either source or fitted"),
        (
            "[parameters]",
            "[parameters]\nwrite_rate = { value = 1e-300, source = 'x' }",
            "write_rate: 1e-300; expected 0 .no limit. or",
        ),
        (
            "[parameters]",
            "[parameters]\nround_trip = { value = inf, source = 'x' }",
            "round_trip: inf; expected a number from 0 to",
        ),
        ('"lustre"', '"lister"', "kind: lister; expected one of local, .*lustre"),
        ('"lustre"', "7", "kind: 7; expected text"),
        ('title = "mine"', "", "title is missing"),
        ("[parameters]", "[others]", "parameters is missing"),
        (
            'targets = { value = 8, source = "x" }',
            "targets = 8",
            "parameters: expected a table of tables",
        ),
    ],
)
def test_a_machine_that_cannot_be_is_refused(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    path = tmp_path / "mine.toml"
    text = (
        'title = "mine"\nkind = "lustre"\nunit = 1048576\nranks_per_node = 4\n[parameters]\ntargets'
        ' = { value = 8, source = "x" }\n'
    )
    path.write_text(text.replace(right, wrong))
    with pytest.raises(ParioError, match=said):
        load(str(path))


def test_a_machine_is_written_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "again.toml"
    for name in names():
        machine = load(name)
        path.write_text(text_of(machine), encoding="utf-8")
        assert load(str(path)) == dataclasses.replace(machine, name="again")


MACHINE = Machine(
    "m",
    "m",
    "lustre",
    1 << 20,
    2,
    {"targets": 4, "write_rate": 100.0, "handover_seconds": 1.0},
    {},
    (),
)


def test_phases_cost_what_the_native_model_says() -> None:
    found = cost(MACHINE, Phase(True, (Flow(bytes=1000), Flow(node=1, first_target=1, bytes=500))))
    assert (found.seconds, found.bound) == (10, "targets")
    assert simulate_turns(MACHINE, [[(0, 100)] * 2, [(0, 100)] * 2]) == (7, 3)


def test_calls_are_planned_as_the_engine_does() -> None:
    parts = range(0, 48 * 10**6, 10**6)
    collective = call(
        situation_on(MACHINE, 48, 4), True, True, "1000000", parts, {"romio_cb_write": "enable"}
    )
    alone = call(situation_on(MACHINE, 48, 4), True, False, "1000000", parts)
    assert (collective.requests, alone.requests, collective.bytes, alone.bytes) == (
        46,
        48 + 45,
        48 * 10**6,
        48 * 10**6,
    )
    with pytest.raises(ValueError, match="cb_nodes"):
        call(situation_on(MACHINE, 48, 4), True, True, "1000000", parts, {"cb_nodes": "many"})
