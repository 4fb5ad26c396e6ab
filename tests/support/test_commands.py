from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.support.commands import LAST_OUTPUT, run_command, start_command
from tests.support.processes import describe_processes, find_processes
from tests.support.waiting import LateError, wait_until

PYTHON = [sys.executable, "-c"]


def test_output_and_status_are_returned() -> None:
    done = run_command(["sh", "-c", "cat; echo wrong >&2; exit 3"], input="said\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "wrong\n")


def test_standard_input_is_empty_and_bytes_are_bytes() -> None:
    assert run_command(["cat"], text=False).stdout == b""
    assert run_command(["cat"], text=False, input=b"\xff").stdout == b"\xff"


def test_another_status_fails_with_command_status_and_last_output() -> None:
    script = f"print('x' * {LAST_OUTPUT + 100} + 'end'); raise SystemExit(3)"
    with pytest.raises(AssertionError) as caught:
        run_command([*PYTHON, script], status=0)
    first, _, output, *_ = str(caught.value).splitlines()
    assert first.startswith(f"status 3 instead of 0: {sys.executable} -c ")
    assert output == "x" * (LAST_OUTPUT - 4) + "end"


#: Prints a word, starts a process in a session of its own, and sleeps with it.
FAMILY = """
import subprocess, sys, time
print("said", flush=True)
print("wrong", file=sys.stderr, flush=True)
subprocess.Popen(["sleep", "1000"], start_new_session=True)
time.sleep(1000)
"""


@pytest.mark.system
def test_at_the_limit_the_state_is_reported_and_all_processes_are_ended() -> None:
    marked, pipes = {**os.environ, "NAME": "of the family"}, {"stdout": -1, "stderr": -1}
    with start_command([*PYTHON, FAMILY], env=marked, **pipes) as running:
        wait_until(
            lambda: re.search(
                r"sleep 1000\n.*nanosleep", describe_processes(running.pid, running.mark), re.S
            ),
            "the process that sleeps",
        )
        with pytest.raises(LateError) as caught:
            running.finish(limit=0.2)
    text = str(caught.value)
    assert text.startswith(f"did not end within 0.2 s: {sys.executable} -c ")
    assert "--- last output\nsaid\n" in text and "--- last errors\nwrong\n" in text
    assert "sleep 1000\n" in text and "nanosleep" in text
    assert not [one for one in find_processes(mark="NAME=of the family") if one.lives]


@pytest.mark.system
def test_a_background_process_that_keeps_the_output_open_is_named() -> None:
    with start_command(["sh", "-c", "sleep 1001 & exit 0"], stdout=subprocess.PIPE) as running:
        assert running.wait_for_end() == 0
        wait_until(
            lambda: "sleep 1001\n" in describe_processes(running.pid, running.mark),
            "the process in the background",
        )
        with pytest.raises(LateError, match=r"^ended with status 0, but its output was") as caught:
            running.finish(limit=0.2)
    assert "sleep 1001" in str(caught.value)


def test_descendants_of_a_command_are_ended_on_request() -> None:
    script = "sleep 1000 > /dev/null 2>&1 & echo $!"
    for end_rest in (True, False):
        number = int(run_command(["sh", "-c", script], end_rest=end_rest).stdout)
        assert [one.lives for one in find_processes(number)] in (
            [[], [False]] if end_rest else [[True]]
        )
    os.kill(number, 9)


def test_a_command_in_the_background_is_ended_after_the_body() -> None:
    with start_command([*PYTHON, FAMILY], stdout=subprocess.PIPE) as running:
        assert running.stdout and running.stdout.readline() == "said\n"
    assert running.returncode == -9
    assert not [one for one in find_processes(mark=running.mark) if one.lives]


def test_the_end_of_a_command_in_the_background_is_waited_for() -> None:
    with start_command(["sh", "-c", "read line; exit 4"], stdin=subprocess.PIPE) as running:
        assert running.stdin
        with pytest.raises(LateError, match=r"^did not end within 0.1 s: sh -c"):
            running.wait_for_end(limit=0.1)
    with start_command(["sh", "-c", "exit 4"]) as running:
        assert running.wait_for_end() == 4
