"""Commands with a time limit end with all their descendants at the limit, and when their starter
ends."""

from __future__ import annotations

import os
import signal
import sys
from math import inf
from pathlib import Path

import pytest

from pario.see.launch import limited
from pario.see.launch.limited import Limit, run_limited
from tests.support.commands import run_command, start_command
from tests.support.waiting import wait_until

SHELL = Path("/bin/sh")
#: Three processes: the first, one in a session of its own, and one that ignores SIGTERM. Each
#: writes its process id to a file.
FAMILY = """
import os, signal, subprocess, sys, time
def tell(name):
    with open(name + ".tmp", "w") as file: file.write(str(os.getpid()))
    os.rename(name + ".tmp", name)
for name in ("deaf", "apart"):
    if os.fork() == 0:
        os.setsid() if name == "apart" else signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell(name)
        time.sleep(1000)
tell("first")
time.sleep(1000)
"""
NAMES = ("first", "deaf", "apart")


def alive(place: Path) -> list[str]:
    """Returns the names of the family's processes that still run."""

    def state(name: str) -> str:
        try:
            return (
                Path("/proc", (place / name).read_text(), "stat")
                .read_text()
                .rpartition(")")[2]
                .split()[0]
            )
        except OSError:
            return "X"

    return [name for name in NAMES if state(name) not in "ZX"]


def wait_for_the_end_of_family(place: Path) -> None:
    wait_until(lambda: not alive(place), "the end of the family")


def wait_for_family(place: Path) -> None:
    wait_until(lambda: all((place / name).exists() for name in NAMES), "all of the family")


def family(place: Path) -> list[str]:
    return ["sh", "-c", f"cd '{place}'; exec '{sys.executable}' -c '{FAMILY}'"]


#: Runs the family with a limit that begins when all its processes run.
WITH_FAMILY = """
import os, signal, sys
from pathlib import Path
from pario.see.launch import limited
from tests.python import test_launch_limited as own
place, over = Path(sys.argv[1]), limited._wait_for_end
def later(child, seconds):
    own.wait_for_family(place)
    return over(child, seconds)
limited._wait_for_end, limited.GRACE_SECONDS = later, 0.3
def asked(number, _frame):
    raise SystemExit(128 + number)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, asked)
limit = limited.Limit(float(sys.argv[2]), place / "said")
assert limited.run_limited(own.SHELL, own.family(place), os.environ, limit).late
"""


@pytest.mark.parametrize(("script", "status", "number"), [("exit 3", 3, 0), ("kill -9 $$", 137, 9)])
def test_a_command_that_ends_in_time_keeps_its_status(
    tmp_path: Path, script: str, status: int, number: int
) -> None:
    ending = run_limited(SHELL, ["sh", "-c", script], os.environ, Limit(inf, tmp_path / "said"))
    assert (ending.status, ending.signal, ending.late) == (status, number, False)


@pytest.mark.system
def test_a_command_over_the_limit_ends_with_its_descendants(tmp_path: Path) -> None:
    ending = run_limited(
        SHELL, ["sh", "-c", "sleep 1000"], os.environ, Limit(0.1, tmp_path / "said")
    )
    assert ending.late and ending.signal == signal.SIGTERM
    run_command([sys.executable, "-c", WITH_FAMILY, str(tmp_path), "0.1"], status=0)
    wait_for_the_end_of_family(tmp_path)


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_terminated_launcher_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    with start_command([sys.executable, "-c", WITH_FAMILY, tmp_path, "inf"]) as process:
        wait_for_family(tmp_path)
        process.send_signal(number)
        assert process.wait_for_end() == 128 + number
    wait_for_the_end_of_family(tmp_path)


@pytest.mark.system
def test_a_launcher_terminated_twice_leaves_no_process(tmp_path: Path) -> None:
    """The second signal may be delivered to another thread, such as those that libraries start."""
    again = """
import threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
end = limited.end
def asked_again(child):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    end(child)
limited.end = asked_again
"""
    before, call = WITH_FAMILY.rsplit("\n", 2)[0], WITH_FAMILY.rsplit("\n", 2)[1]
    program = f"{before}{again}{call}"
    with start_command([sys.executable, "-c", program, tmp_path, "inf"]) as process:
        wait_for_family(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait_for_end() == 128 + signal.SIGTERM
    wait_for_the_end_of_family(tmp_path)


def process(pid: int, parent: int, start: str, state: str = "S") -> limited._Process:
    return limited._Process(pid, state, parent, pid, 1, start)


def test_a_process_with_a_recycled_pid_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known: dict[int, str] = {}
    there = [process(10, 1, "5"), process(11, 10, "6"), process(12, 11, "7"), process(13, 1, "7")]
    monkeypatch.setattr(limited, "_processes", lambda: iter(there))
    assert [one.pid for one in limited._family(10, known)] == [10, 11, 12]
    there = [
        process(10, 1, "5", "Z"),
        process(11, 1, "9"),
        process(12, 1, "7"),
        process(14, 11, "10"),
    ]
    assert [one.pid for one in limited._family(10, known)] == [12]


def test_a_command_ends_also_without_a_list_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "_processes", lambda: iter(()))
    ending = run_limited(
        SHELL, ["sh", "-c", "sleep 1000"], os.environ, Limit(0.1, tmp_path / "said")
    )
    assert ending.late and ending.signal == signal.SIGKILL


def test_a_limited_command_reads_no_terminal_and_prints_to_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        run_limited(
            SHELL,
            ["sh", "-c", "cat; echo said; echo wrong >&2"],
            os.environ,
            Limit(inf, tmp_path / "said"),
        ).status
        == 0
    )
    assert (tmp_path / "said").read_text() == "said\nwrong\n"
    assert capfd.readouterr() == ("", "")
