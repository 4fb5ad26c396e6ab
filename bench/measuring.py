"""Steps that several benchmarks share: timing, caches, processor time, ratios, options."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from recording import add_recording_arguments

Result = TypeVar("Result")


class NoResultError(Exception):
    """A way failed or did not end; the text is the reason."""


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options of recording, which prints a module's docstring as help."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_recording_arguments(parser)
    return parser


def add_library_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option --library."""
    parser.add_argument("--library", type=resolve_path, required=True, help="libpario.so")


def resolve_path(text: str) -> Path:
    """Returns an absolute path."""
    return Path(text).resolve()


def time_call(work: Callable[[], object]) -> float:
    """Returns the wall-clock seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sum_processor_seconds(*, own: bool = True) -> float:
    """Returns the processor seconds of all child processes that ended, and of this process."""
    whose = [resource.RUSAGE_CHILDREN, *([resource.RUSAGE_SELF] if own else [])]
    used = [resource.getrusage(who) for who in whose]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def drop_caches() -> None:
    """Empties the page cache and the caches of inodes and directories (root)."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def find_median_ratio(numerators: Iterable[float], denominators: Iterable[float]) -> float:
    """Returns the median of the ratios round by round."""
    pairs = zip(numerators, denominators, strict=True)
    return statistics.median(one / other for one, other in pairs)


def call_with_limit(work: Callable[[], Result], seconds: float) -> Result:
    """Returns the result of a call in a process of its own, which is ended with its children.

    Raises NoResultError if it takes longer than ``seconds``, raises an exception or crashes.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_send_result, args=(work, sender))
    process.start()
    assert process.pid is not None
    with suppress(OSError):  # the process does the same, whichever is first
        os.setpgid(process.pid, process.pid)
    sender.close()
    try:
        if not receiver.poll(seconds):
            raise NoResultError(f"it did not end within {seconds:g} s")
        result, error = receiver.recv()
    except EOFError:
        process.join()
        raise NoResultError(f"its process ended with status {process.exitcode}") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    if error:
        raise NoResultError(error)
    found: Result = result
    return found


def measure_or_name(way: str, work: Callable[[], Result], seconds: float) -> Result | None:
    """The same; prints the way and the reason if there is no result, and returns None."""
    try:
        return call_with_limit(work, seconds)
    except NoResultError as error:
        print(f"no result: {way}: {error}", file=sys.stderr, flush=True)
        return None


def _send_result(work: Callable[[], object], sender: Connection) -> None:
    with suppress(OSError):
        os.setpgid(0, 0)
    try:
        sender.send((work(), ""))
    except Exception as error:
        sender.send((None, f"{type(error).__name__}: {error}".splitlines()[0]))
