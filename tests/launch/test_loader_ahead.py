"""``run.loader_ahead``: the files of a DataLoader are copied before its workers open them."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.filesystems.conftest import Labs
from tests.filesystems.conftest import labs as labs
from tests.launch.conftest import PARIO, PROGRAMS
from tests.support.commands import run_command

FILES = 240

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]


def train(folder: Path, log: Path, *arguments: object, ahead: bool) -> Any:
    """Returns the samples in their order, the opened copies, a random number, and the cache."""
    settings = log.with_suffix(".toml")
    settings.write_text("[run]\nloader_ahead = true\n" if ahead else "")
    done = run_command(
        [*PARIO, "run", "-o", log, "--no-report", "--with", settings, "--", sys.executable,
         PROGRAMS / "small_files.py", folder, *arguments],
        status=0,
    )  # fmt: skip
    return json.loads(done.stdout)


def make_files(folder: Path) -> None:
    folder.mkdir()
    for number in range(FILES):
        (folder / f"sample{number:04}").write_text(f"{number} text")


@pytest.mark.parametrize(
    ("workers", "kind"),
    [
        pytest.param(0, "pairs", marks=pytest.mark.exhaustive),
        (2, "names"),
        pytest.param(2, "subset", marks=pytest.mark.exhaustive),
    ],
)
def test_workers_open_copies_in_the_order_of_the_sampler(
    labs: Labs, tmp_path: Path, workers: int, kind: str
) -> None:
    lab = labs(metadata=2_000_000, cache=True)
    make_files(lab / "data")
    plain = train(lab / "data", tmp_path / "plain", workers, kind, ahead=False)
    fast = train(lab / "data", tmp_path / "fast", workers, kind, ahead=True)
    assert (plain[0], plain[2]) == (fast[0], fast[2])  # the same order, the same random numbers
    assert plain[1] == 0 and fast[1] > FILES  # of both epochs
    assert all(index == word for index, word in fast[0])
    assert fast[3] and not Path(fast[3]).exists()


@pytest.mark.exhaustive
def test_fix_chooses_to_read_ahead_and_proves_that_it_helps(
    labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lab = labs(metadata=5_000_000, cache=True)
    make_files(lab / "data")
    done = run_command(
        [*PARIO, "run", "--fix", "--measure", "0", "-o", tmp_path / "loop", "--", sys.executable,
         PROGRAMS / "small_files.py", lab / "data", 2, "names"],
        status=0,
    )  # fmt: skip
    # the third run is only made if the second one was clearly faster
    before, ahead, *after = (
        json.loads(line) for line in done.stdout.splitlines() if line[0] == "["
    )
    assert all(run[0] == before[0] for run in (ahead, *after))
    assert before[1] == 0 and ahead[1] > FILES
    assert "loader_ahead = true" in (tmp_path / "loop/pario.toml").read_text()
    assert "The run with settings takes " in done.stderr


def test_a_file_that_the_job_writes_is_read_from_its_file_system(tmp_path: Path) -> None:
    make_files(tmp_path / "data")
    seen, copies, *_ = train(tmp_path / "data", tmp_path / "log", 0, "change", ahead=True)
    epoch = seen[FILES:]
    assert copies > FILES / 2
    assert all(index == word for index, word in epoch[:8])
    assert all(word == 10_000 + index for index, word in epoch[8:])
