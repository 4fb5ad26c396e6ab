"""Files that several test modules use, and the settings of hypothesis."""

import os
from pathlib import Path

import hypothesis
import pytest

from pario.see.analyze import idioms
from tests.python.support.lines import LINES

# On a busy machine any example may take long to make and to test; tests/support/limits.py bounds a
# whole test. CI tries the same examples of a version again; make test-all tries others each time.
hypothesis.settings.register_profile(
    "pario",
    deadline=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,  # examples overwrite the files of others
    ],
    derandomize="PARIO_TEST_RANDOM" not in os.environ,
)
hypothesis.settings.load_profile("pario")


#: Microseconds of the idioms on the machine of the tests' figures.
IDIOMS = {
    idioms.ask_for_a_name: 5.0,
    idioms.read_a_file: 12.0,
    idioms.append_compressed: 80.0,
    idioms.select_a_name: 2.0,
    idioms.print_a_number: 0.5,
    idioms.read_a_number: 0.1,
    idioms.parse_a_table: 5.0,
    idioms.write_a_line: 1.0,
    idioms.pass_a_byte: 1.0,
    idioms.pass_an_object: 10.0,
}


@pytest.fixture(autouse=True)
def known_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives findings of this process the costs of one machine, except in tests that measure."""
    if "measured" not in request.keywords:
        monkeypatch.setattr(idioms, "measure", lambda idiom: IDIOMS[idiom] * 1e-6)
        monkeypatch.setattr(idioms, "measure_start", lambda: 0.6e-3)
        monkeypatch.setattr(idioms, "measure_answer", lambda: 20e-6)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(LINES) + b"\n")
    return path
