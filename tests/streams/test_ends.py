"""Ends of programs with buffered files: each written byte is in the file, once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.streams.conftest import Done, Start

Build = Callable[[str], Path]
STREAMS = "*.dat:size=64K"
DEADLY = [
    number
    for number in (*range(1, 32), signal.SIGRTMIN, signal.SIGRTMAX)
    if number
    not in (
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGCHLD,
        signal.SIGCONT,
        signal.SIGURG,
        signal.SIGWINCH,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    )
]


@pytest.fixture(autouse=True)
def _no_ignored_signals() -> Iterator[None]:
    """Programs inherit that a signal is ignored, as nohup and background jobs of a shell do."""
    signals = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    ignored = [number for number in signals if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def outcome(done: Done) -> tuple[int, list[str], dict[str, bytes]]:
    return done.status, done.stdout.splitlines(), done.files


@pytest.mark.parametrize("number", DEADLY)
def test_the_default_action_of_each_signal_loses_no_byte(
    start: Start, build: Build, number: int
) -> None:
    plain = start(build("ends.c"), "signal", number)
    assert outcome(start(build("ends.c"), "signal", number, streams=STREAMS)) == outcome(plain)
    assert (plain.status, plain.files["out.dat"]) == (-number, b"before the signal\n")


@pytest.mark.parametrize("how", ["restored", "default", "once", "sysv"])
def test_a_default_action_that_the_program_restores_loses_no_byte(
    start: Start, build: Build, how: str
) -> None:
    plain = start(build("ends.c"), how, signal.SIGTERM)
    assert outcome(start(build("ends.c"), how, signal.SIGTERM, streams=STREAMS)) == outcome(plain)
    assert plain.status == -signal.SIGTERM


def test_a_program_sees_its_own_actions_of_signals(start: Start, build: Build) -> None:
    plain = start(build("ends.c"), "actions")
    assert outcome(start(build("ends.c"), "actions", streams=STREAMS)) == outcome(plain)


def test_python_raises_keyboard_interrupt(start: Start) -> None:
    script = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = start(sys.executable, "-c", script, streams=STREAMS)
    assert (done.status, done.stdout) == (0, "interrupted\n")


def test_a_full_stack_loses_no_byte(start: Start, build: Build) -> None:
    plain = start(build("ends.c"), "overflow")
    assert outcome(start(build("ends.c"), "overflow", streams=STREAMS)) == outcome(plain)
    assert plain.status == -signal.SIGSEGV


@pytest.mark.system
@pytest.mark.parametrize("how", ["handler__exit", "handler_exit"])
def test_a_handler_that_ends_the_process_loses_no_byte(
    start: Start, build: Build, how: str
) -> None:
    done = start(build("ends.c"), how, 40, streams=STREAMS)
    assert done.stdout == "complete 40\n"


@pytest.mark.parametrize("how", ["stream__exit", "stream_quick_exit", "stream_exec"])
def test_an_end_that_does_not_flush_streams_loses_no_more_than_without_pario(
    start: Start, build: Build, how: str
) -> None:
    lines = b"".join(b"line %6d\n" % i for i in range(20000))
    plain = start(build("ends.c"), how).files["out.dat"]
    assert lines.startswith(plain)
    assert start(build("ends.c"), how, streams="*.dat:size=1M").files["out.dat"] == lines


def test_a_child_that_a_signal_ends_does_not_write_the_bytes_of_its_parent(
    start: Start, build: Build
) -> None:
    plain = start(build("ends.c"), "child_with_stream")
    assert outcome(start(build("ends.c"), "child_with_stream", streams=STREAMS)) == outcome(plain)
