"""``pario run --stage``: new files of an unmodified program stay on the node until it has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.conftest import PARIO, PROGRAMS
from tests.mpi.conftest import MPIS, need
from tests.support.commands import run_command, start_command

PROGRAM = [sys.executable, str(PROGRAMS / "staged.py")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Makes a directory with old files, a link to it, and a directory on the node."""
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    for name in ("old", "replaced", "unwanted", "moved"):
        (out / name).write_text("old")
        os.utime(out / name, (1e9, 1e9))
    (tmp_path / "elsewhere").touch()
    (out / "link out").symlink_to("../elsewhere")
    (tmp_path / "seen").symlink_to(out)
    (tmp_path / "node").mkdir()
    return tmp_path


def words(place: Path, *launcher: str) -> list[str]:
    run = [
        *PARIO,
        "run",
        "--no-report",
        "-o",
        str(place / "log"),
        "--stage",
        "out/*=$NODE",
        "--",
        *PROGRAM,
    ]
    return [*launcher, *run, str(place / "out"), str(place / "seen")]


def environment(place: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "NODE": str(place / "node"), **more}


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def check(place: Path, ranks: int) -> None:
    """Checks that the directory holds the expected files with their contents and no others."""
    out = place / "out"
    for rank in range(ranks):
        assert (out / f"new.{rank}").read_text() == "new"
        assert (out / f"final.{rank}").read_text() == "renamed"
        assert names(out / f"made.{rank}" / "deep") == {"kept", "link", "second"}
        assert (out / f"made.{rank}" / "deep" / "link").readlink() == Path("kept")
        assert (out / f"made.{rank}" / "deep" / "second").read_text() == "temporary"
    assert (out / "old").read_text() == "old more"
    assert (out / "replaced").read_text() == "by new"
    assert (out / "sub" / "of old").read_text() == "sub"
    assert (place / "elsewhere").read_text() == "through a link"
    assert (out / "link out").is_symlink()
    of_ranks = {f"{name}.{rank}" for name in ("new", "final", "made") for rank in range(ranks)}
    assert names(out) == of_ranks | {"old", "replaced", "moved again", "sub", "link out"}
    assert names(place / "node") == set()


@pytest.mark.system
def test_new_files_are_on_the_node_and_then_brought_back(place: Path) -> None:
    done = run_command(words(place), cwd=place, env=environment(place))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    check(place, 1)


@pytest.mark.system
def test_files_of_a_terminated_program_are_brought_back(place: Path) -> None:
    waits = environment(place, STAGED="--wait")
    with start_command(words(place), cwd=place, env=waits, stdout=subprocess.PIPE) as run:
        assert run.stdout and run.stdout.readline() == "ready\n"
        run.send_signal(signal.SIGTERM)
        assert run.wait_for_end() == -signal.SIGTERM
    check(place, 1)


#: Sends itself a signal while it brings files back.
DISTURBED = """
import os, signal, sys
from pario.cli import main
from pario.move.staging import Staged
bring_back = Staged.bring_back
def disturbed(*arguments):
    os.kill(os.getpid(), int(sys.argv[1]))
    return bring_back(*arguments)
Staged.bring_back = disturbed
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_wait_until_files_are_brought_back(place: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", DISTURBED, str(int(number)), *words(place)[len(PARIO) :]]
    done = run_command(command, cwd=place, env=environment(place))
    assert done.returncode == -number, done.stderr
    check(place, 1)


@pytest.mark.system
def test_files_of_a_killed_launcher_are_brought_back_later(place: Path) -> None:
    options = {"env": environment(place, STAGED="--wait"), "stdout": subprocess.PIPE}
    with start_command(words(place), cwd=place, **options, process_group=0) as run:
        assert run.stdout and run.stdout.readline() == "ready\n"
        os.killpg(run.pid, signal.SIGKILL)
    assert not (place / "out" / "new.0").exists()
    (left,) = (place / "node").iterdir()
    done = run_command([*PARIO, "stage", "out", str(left), "--remove"])
    assert done.returncode == 0, done.stderr
    check(place, 1)


@pytest.mark.system
@pytest.mark.mpi
def test_one_of_several_ranks_brings_back(place: Path) -> None:
    mpi = MPIS["mpich-5"]
    need(mpi)
    command = mpi.start(*words(place), ranks=3)
    done = run_command(command, cwd=place, env=environment(place))
    assert done.returncode == 0, done.stderr
    check(place, 3)


@pytest.mark.system
def test_a_stage_that_cannot_be_made_leaves_no_log_directory(place: Path) -> None:
    done = run_command(words(place), cwd=place, env=environment(place, NODE="/nowhere"))
    assert done.returncode == 2 and "/nowhere is no directory on this node" in done.stderr
    assert not (place / "log").exists()


@pytest.mark.system
def test_the_end_is_recorded_if_files_stay_on_the_node(place: Path) -> None:
    script = "open('out/new', 'w').write('by the program'); import os; os.system(os.environ['ANY'])"
    other = "env -i /bin/sh -c 'echo by another one > out/new'"
    options = ["--no-report", "-o", "log", "--stage", "out/*=$NODE", "--", sys.executable, "-c"]
    command = [*PARIO, "run", *options, script]
    done = run_command(command, cwd=place, env=environment(place, ANY=other))
    assert done.returncode == 2 and "was changed there since it was staged" in done.stderr
    job = json.loads((place / "log" / "job.json").read_text())
    assert job["exit_status"] == 0 and job["end"] > job["start"]
