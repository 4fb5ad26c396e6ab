"""Quotas of a real file system: operations that exceed them keep their promises (quotas.py).

Kernels without quotas are common, so an XFS with quotas is mounted in a user-mode Linux
(quotas.sh), which needs no rights and uses the files of this machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.filesystems.conftest import needs_root_and
from tests.filesystems.quotas import CASES, LIMIT, MIB, Outcome
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
INIT = Path(__file__).with_name("quotas.sh")
IMAGE_MIB = 400
#: Sums of the arrays of the two small checkpoints.
SUMS = {"1": (n := MIB // 8) * (n - 1) / 2, "3": 2 * n * (2 * n - 1) / 2}

pytestmark = [pytest.mark.system, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The output of each case."""
    needs_root_and(["linux.uml", "mkfs.xfs", "xfs_quota"], "user-mode-linux xfsprogs")
    place = tmp_path_factory.mktemp("quotas")
    for folder in (place, *place.parents):
        folder.chmod(folder.stat().st_mode | 0o011)  # users of the cases reach their folders
    (place / "mount").mkdir()
    (place / "cases").write_text("".join(f"{name} {quota}\n" for name, (quota, _) in CASES.items()))
    with (place / "image").open("wb") as image:
        image.truncate(IMAGE_MIB * MIB)
    run_command(["mkfs.xfs", "-q", place / "image"], status=0)
    console = boot(place)
    if "Run " not in console:
        pytest.skip(f"user-mode Linux does not start here: {console[-300:]}")
    assert "cannot mount" not in console, console
    return {name: read(place / f"{name}.out") for name in CASES}


def boot(place: Path) -> str:
    """Runs all cases; returns the text of the console."""
    words = {
        "mem": "768M",
        "rootfstype": "hostfs",
        "rootflags": "/",
        "init": INIT,
        "ubd0": place / "image",
        "con": "null",
        "con0": "fd:0,fd:1",
        "uml_dir": place,
        "PARIO_PLACE": place,
        "PARIO_ROOT": ROOT,
        "PARIO_PYTHON": sys.executable,
        "PARIO_LIMIT": LIMIT,
    }
    command = ["linux.uml", "rw", *(f"{name}={value}" for name, value in words.items())]
    done = run_command(command, limit=4 * PATIENCE)
    return str(done.stdout) + str(done.stderr)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else "the case has not run"


def outcome_of(outcomes: dict[str, str], case: str) -> Outcome:
    lines = outcomes[case].splitlines()
    assert lines and lines[-1].startswith("{"), outcomes[case]
    outcome: Outcome = json.loads(lines[-1])
    return outcome


def test_the_quota_of_the_user_is_read(outcomes):
    ((whose, used, limit, files, _),) = [
        row for row in outcome_of(outcomes, "facts")["quotas"] if row[2]
    ]
    assert whose.startswith("user ") and (used, limit, files) == (0, LIMIT, 1)


def check_saves(outcome: Outcome, name: str, reason: str) -> None:
    """The too large checkpoint is an error of all ranks; the others are complete."""
    assert outcome["loaded"] == SUMS
    for errors in outcome["errors"]:
        assert len(errors) == 1, outcome
        assert errors[0].startswith("2: ") and reason in errors[0] and name in errors[0], errors
    assert not [one for one in outcome["files"] if one.endswith(".part") or "step-00000002" in one]


@pytest.mark.parametrize("case", ["save", "save-columns", "save-parts", "save-async"])
def test_a_quota_that_is_too_small_is_an_error_on_all_ranks(outcomes, case):
    check_saves(outcome_of(outcomes, case), "/ck/step-00000002", "within the quota of user ")


def test_the_quota_of_a_directory_is_named(outcomes):
    outcome = outcome_of(outcomes, "save-in-directory")
    check_saves(outcome, "/ck/step-00000002", "within the quota of a directory")


@pytest.mark.parametrize("case", ["save", "save-columns", "save-parts", "save-async"])
def test_a_quota_that_no_check_foresees_is_an_error_on_all_ranks(outcomes, case):
    outcome = outcome_of(outcomes, f"{case}-unforeseen")
    check_saves(outcome, "/ck/step-00000002", "Disk quota exceeded")


@pytest.mark.parametrize(
    ("case", "left", "made"),
    [
        ("pack", {"tree/data"}, {"out/index", "out/00000.tar.zst"}),
        ("unpack", {"packed/index", "packed/00000.tar.zst"}, {"out/data"}),
        ("shuffle", {"lines.txt", "out.txt"}, set()),
        # Its note says which files are staged: none after the error.
        ("stage", {"shared/data", "node/.pario-stage.json"}, {"node/shared/data"}),
    ],
)
def test_a_command_beyond_the_quota_leaves_nothing_and_can_be_repeated(outcomes, case, left, made):
    outcome = outcome_of(outcomes, case)
    first, again = outcome["first"], outcome["again"]
    assert first["status"] == 2 and "quota" in first["error"] and "/mount/" in first["error"], first
    assert set(outcome["left"]) == left | {"extra"}
    assert (again["status"], set(outcome["files"])) == (0, left | made), again
    if case == "shuffle":
        assert outcome["changed"] and outcome["same"]
