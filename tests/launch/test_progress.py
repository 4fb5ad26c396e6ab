"""Reports on programs that run, hang or were killed: the calls that they are in, and the ranks that
others wait for."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pario import wording
from tests.launch.conftest import PARIO, PROGRAMS
from tests.mpi.conftest import MPIS, Mpi, need
from tests.support.commands import run_command, start_command
from tests.support.waiting import wait_until

pytestmark = pytest.mark.system
_HANGS = 1.0  # seconds after which a call counts as hanging


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of ``programs/blocks.c``."""
    program = tmp_path_factory.mktemp("blocks") / "blocks"
    run_command(["cc", "-w", "-o", str(program), str(PROGRAMS / "blocks.c")], status=0)
    return str(program)


def report(directory: Path) -> dict[str, Any]:
    done = run_command([*PARIO, "report", str(directory), "--json"], status=0)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wait_for(directory: Path, *texts: str) -> dict[str, Any]:
    """Reports on a run again and again, until its calls hang and the verdict holds the texts.

    Earlier calls may hang, too, on a slow machine.
    """

    def look() -> dict[str, Any]:
        if not list(directory.glob("*.plog")):
            return {}
        found = report(directory)
        sentence = found["verdict"]["sentence"]
        return found if found["progress"]["stuck"] and all(map(sentence.count, texts)) else {}

    return wait_until(look, f"{texts} in the report on {directory}")


@contextmanager
def running(words: list[str], place: Path) -> Iterator[Any]:
    with start_command([*PARIO, "run", "-o", "logs", "--", *words], cwd=place) as command:
        yield command


def kill_all(found: dict[str, Any]) -> None:
    """Kills the processes of a report, all in their calls; mpiexec ends the others."""
    pids = {call["pid"] for call in found["progress"]["calls"]}
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def test_opening_of_a_pipe_that_nobody_writes_is_named(blocks: str, tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with running([blocks, "fifo", str(fifo)], tmp_path) as command:
        found = wait_for(tmp_path / "logs", "inside open() of ")
        assert found["progress"]["state"] == "running"
        (call,) = found["progress"]["calls"]
        assert (call["function"], call["path"]) == ("open", str(fifo))
        assert call["seconds"] >= _HANGS
        sentence = found["verdict"]["sentence"]
        assert sentence.startswith("Running for "), sentence
        assert "waiting for another process to open the other end of this FIFO" in sentence
        assert found["verdict"]["bound"] == "unknown"
        assert "worth changing" not in sentence
        fifo.open("w").close()
        command.wait()
    assert report(tmp_path / "logs")["progress"]["state"] == "ended"


def test_killed_program_is_reported_with_its_last_call(blocks: str, tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with running([blocks, "fifo", str(fifo)], tmp_path) as command:
        kill_all(wait_for(tmp_path / "logs", "inside open() of "))
        command.wait()
    found = report(tmp_path / "logs")
    assert found["progress"]["state"] == "killed"
    assert found["progress"]["calls"][0]["seconds"] >= _HANGS
    assert found["verdict"]["sentence"].startswith("Killed after "), found["verdict"]
    assert "had been inside open() of " in found["verdict"]["sentence"]
    assert found["verdict"]["bound"] == "unknown"


def test_waiting_for_a_lock_is_named(blocks: str, tmp_path: Path) -> None:
    with running([blocks, "lock", str(tmp_path / "locked")], tmp_path) as command:
        found = wait_for(tmp_path / "logs", "inside flock() of ")
        assert "waiting for a lock that another process holds" in found["verdict"]["sentence"]
        command.send_signal(signal.SIGTERM)


def test_python_program_is_seen_while_it_reads_a_pipe(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    words = ["python3", "-c", f"import os; os.read(os.open({str(fifo)!r}, os.O_RDWR), 10)"]
    with running(words, tmp_path) as command:
        found = wait_for(tmp_path / "logs", f"inside read() of {wording.name(str(fifo))}")
        assert "waiting for another process to write to this pipe" in found["verdict"]["sentence"]
        kill_all(found)
        command.wait()


@pytest.mark.mpi
@pytest.mark.parametrize(
    "mpi", [pytest.param(mpi, id=mpi.name) for mpi in MPIS.values() if "abi" not in mpi.name]
)
def test_ranks_that_skip_a_collective_call_are_named(mpi: Mpi, tmp_path: Path) -> None:
    need(mpi)
    program = tmp_path / "skips"
    run_command([mpi.cc, "-w", "-o", str(program), str(PROGRAMS / "skips.c")], status=0)
    expected = (
        "ranks 1-2 have not arrived: rank 1 is inside read() of ",
        "rank 2 is outside of I/O and MPI",
    )
    with running(mpi.start(str(program), ranks=4), tmp_path) as command:
        found = wait_for(tmp_path / "logs", *expected)
        (meeting,) = found["progress"]["meetings"]
        assert meeting["function"] == "MPI_File_write_at_all"
        assert meeting["path"] == str(tmp_path / "out.dat")
        assert (meeting["arrived"], meeting["missing"]) == ([0, 3], [1, 2])
        sentence = found["verdict"]["sentence"]
        assert "Ranks 0, 3 have been inside MPI_File_write_at_all of " in sentence, sentence
        assert found["verdict"]["bound"] == "unknown"
        kill_all(found)
        command.wait()
    after = report(tmp_path / "logs")
    assert after["progress"]["state"] == "killed"
    assert "ranks 1-2 had not arrived: rank 1 was inside read() of " in after["verdict"]["sentence"]
