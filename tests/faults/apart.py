"""Calls functions in a child process, which damaged files may kill."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

_MOST = 60_000  # bytes of an answer; fit into a pipe, so that the write never blocks


def run_apart(function: Callable[[], list[str]], seconds: int = 60) -> list[str]:
    """Returns a function's result from a child; or its exception, signal or overrun as a text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(function, seconds, writing)
    os.close(writing)
    with Path(f"/proc/self/fd/{reading}").open("rb") as answer:
        os.close(reading)
        text = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        return [f"not over within {seconds} s"]
    if status or not text:
        return [f"died of {signal.Signals(-status).name}" if status < 0 else f"status {status}"]
    problems: list[str] = json.loads(text)
    return problems


def _answer(function: Callable[[], list[str]], seconds: int, to: int) -> None:
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        problems = function()
    except BaseException as error:
        problems = [f"{type(error).__name__}: {error}"]
    os.write(to, json.dumps([problem[:1000] for problem in problems[:20]]).encode()[:_MOST])
    os._exit(0)
