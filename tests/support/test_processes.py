from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support import processes
from tests.support.commands import Command, start_command
from tests.support.processes import (
    add_mark,
    create_mark,
    describe_processes,
    end_processes,
    find_processes,
)
from tests.support.waiting import wait_until

#: Starts a process in a session of its own, whose parent ends; prints its process id.
ORPHAN = """
import os, subprocess, sys
subprocess.run(["sh", "-c", "setsid sleep 4321 & echo $!"], check=True)
sys.stdin.read()
"""


def names_of_calls_are_known() -> bool:
    return bool(describe_processes.__globals__["_call_names"]())


@pytest.fixture
def reader() -> Iterator[Command]:
    """Starts a process that waits in two threads for bytes from a pipe."""
    code = "import os, threading\nthreading.Thread(target=lambda: os.read(0, 1)).start()\n"
    code += "print(flush=True)\nos.read(0, 1)"
    with start_command([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE) as running:
        assert running.stdout
        running.stdout.readline()
        yield running


def test_each_thread_is_named_with_its_state_and_call(reader: Command) -> None:
    pipe = Path(f"/proc/{reader.pid}/fd/0").readlink()
    read = rf"read\(0: {re.escape(str(pipe))}\)" if names_of_calls_are_known() else r"system call 0"
    pattern = rf"thread \d+ .* S in {read}, kernel function "
    start = rf"{reader.pid} \(parent {os.getpid()}\) S \d+\.\d\d s of CPU: {sys.executable} -c "

    def both_read() -> bool:
        text = describe_processes(reader.pid)
        return bool(re.match(start, text)) and len(re.findall(pattern, text)) == 2

    wait_until(both_read, "two threads that read")


def test_a_busy_process_is_in_no_call() -> None:
    with start_command([sys.executable, "-c", "while True: pass"]) as busy:
        wait_until(
            lambda: re.search(r" R in (running|no system call)", describe_processes(busy.pid)),
            "the state of a busy process",
        )


def test_an_orphan_with_the_mark_is_found_and_ended() -> None:
    with start_command([sys.executable, "-c", ORPHAN], stdin=PIPE, stdout=PIPE) as running:
        assert running.stdout
        orphan = int(running.stdout.readline())

        def found() -> list[int]:
            return [one.pid for one in find_processes(mark=running.mark) if one.lives]

        wait_until(lambda: found() == [running.pid, orphan], "the orphan")
        wait_until(
            lambda: ": sleep 4321\n" in describe_processes(running.pid, running.mark),
            "the orphan's command line",
        )
        assert ": sleep 4321\n" not in describe_processes(running.pid)
        end_processes(running.mark)
        assert found() == []


def test_processes_carry_the_marks_of_their_ancestors() -> None:
    outer, inner = create_mark(), create_mark()
    environment = add_mark(add_mark(os.environ, outer), inner)
    with start_command(["sleep", "1000"], env=environment) as running:
        for mark in (outer, inner, running.mark):
            wait_until(lambda mark=mark: [one.pid for one in find_processes(mark=mark)], mark)
    assert not find_processes(mark=outer)


@pytest.mark.timeout(60)
def test_a_zombie_is_shown_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        wait_until(lambda: f"{child} (parent {os.getpid()}) Z" in describe_processes(child), "Z")
        monkeypatch.setattr(processes, "_SECONDS_TO_DIE", math.inf)
        end_processes(pid=child)  # returns although the zombie remains
    finally:
        os.waitpid(child, 0)
