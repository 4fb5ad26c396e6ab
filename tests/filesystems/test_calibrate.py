"""``pario bench --calibrate`` measures the parameters of a lab; ``pario whatif --machine this``
uses the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.prove.lab.mount import Model
from pario.prove.model.machine import load
from tests.filesystems.conftest import Labs


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.exhaustive
def test_a_lab_is_found_to_be_what_it_was_told(labs: Labs, tmp_path: Path) -> None:
    told = Model(targets=2, latency=4_000_000, lock_handover=12_000_000, process=True)
    point = labs(**vars(told))
    assert main(["bench", "--calibrate", str(point), "-o", str(tmp_path / "lab.toml")]) == 0
    found = load(str(tmp_path / "lab.toml"))
    assert (found.kind, found.values["targets"]) == ("lustre", 2)
    # a busy machine can only be slower
    assert 0.1 * told.rate < found.values["write_rate"] < 1.1 * told.rate
    assert 0.1 * told.rate < found.values["read_rate"] < 1.1 * told.rate
    assert 0.0035 < found.values["request_seconds"] < 0.04
    assert 0.009 < found.values["handover_seconds"] < 0.1
    assert load("this").values == found.values


def test_without_a_measurement_this_machine_is_not_known() -> None:
    with pytest.raises(
        ParioError, match="this machine has not been measured; pario bench --calibrate DIR"
    ):
        load("this")
