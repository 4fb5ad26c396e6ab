"""Usual ways in which programs make calls, and the processor time that these need on this machine.

They are run in Python, once per process and only for findings that need them: a few milliseconds
each. Their calls are on /dev, so that most of the time is the program's own: arguments, objects,
results.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_FOLDER, _FILE = Path("/dev"), "null"
_NAME, _LINE, _NUMBER = "000123", "a line of text\n", 1 / 3
_DIGITS = repr(_NUMBER)
TABLE = "".join(f"item{number},{number / 7:.3f}\n" for number in range(20))
_BATCHES = 5
_BATCH_SECONDS = 1e-3
_TRIVIAL_PROGRAM = "/bin/true"
_STARTS = 10
_ANSWERING_PROGRAM = "/bin/cat"
_ANSWERS = 50

#: Programs in a compiled language need about this part of Python's time (assumed).
COMPILED_SHARE = 0.1


def ask_for_a_name() -> None:
    """Join a path and ask whether it exists."""
    (_FOLDER / f"{_FILE}{_NAME}").exists()


def read_a_file() -> None:
    """Join a path, open it as text, read and close it."""
    with (_FOLDER / _FILE).open(encoding="utf-8") as file:
        file.read()


def append_compressed() -> None:
    """Open a compressed file, write a line and close it."""
    import gzip  # some builds of Python lack it

    with gzip.open(_FOLDER / _FILE, "at", compresslevel=1) as file:
        file.write(_LINE)


def select_a_name() -> None:
    """Compare a name with a pattern and join its path."""
    if fnmatch.fnmatch(_NAME, "0*"):
        _FOLDER / _NAME


def print_a_number() -> None:
    """Turn a number into all of its digits, by code in C."""
    repr(_NUMBER)


def read_a_number() -> None:
    """Turn all digits of a number into the number, by code in C."""
    float(_DIGITS)


def parse_a_table() -> None:
    """Split lines of text, and keep the number in each of them by its name."""
    {name: float(value) for name, value in (line.split(",") for line in TABLE.splitlines())}


def write_a_line() -> None:
    """Write a line to a stream and flush it."""
    stream = _open_stream()
    stream.write(_LINE)
    stream.flush()


@cache
def _open_stream() -> TextIO:
    return (_FOLDER / _FILE).open("w", encoding="utf-8")


def pass_a_byte() -> None:
    """Write a byte to a pipe and read it."""
    reader, writer = _make_pipe()
    os.write(writer, b"x")
    os.read(reader, 1)


@cache
def _make_pipe() -> tuple[int, int]:
    return os.pipe()


def pass_an_object() -> None:
    """Send a number through a connection of multiprocessing and receive it."""
    reader, writer = _make_connection()
    writer.send(1)
    reader.recv()


@cache
def _make_connection() -> tuple[Connection, Connection]:
    from multiprocessing import Pipe

    return Pipe(duplex=False)


@cache
def measure(idiom: Callable[[], None]) -> float:
    """Return the processor time of an idiom in seconds, without that of the loop around it."""
    idiom()
    return max(_best(idiom) - _best(_do_nothing), 0.0)


def _do_nothing() -> None:
    pass


def _best(idiom: Callable[[], None]) -> float:
    """Return the seconds of one call in the fastest batch."""
    count = 1
    while (seconds := _time(idiom, count)) < _BATCH_SECONDS:
        count *= 4
    return min(seconds, *(_time(idiom, count) for _ in range(_BATCHES - 1))) / count


def _time(idiom: Callable[[], None], count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        idiom()
    return time.thread_time() - start


@cache
def measure_start() -> float:
    """Return the processor time of a start of a program that does nothing: copy of a process, exec,
    dynamic linking and end. The least of several, in parent and child together; 0 without such a
    program."""
    return min(_start_program() for _ in range(_STARTS))


def _start_program() -> float:
    start = time.thread_time()
    try:
        child = os.posix_spawn(_TRIVIAL_PROGRAM, [_TRIVIAL_PROGRAM], {})
    except OSError:
        return 0.0
    usage = os.wait4(child, 0)[2]
    return time.thread_time() - start + usage.ru_utime + usage.ru_stime


@cache
def measure_answer() -> float:
    """Return the seconds that pass until another process has answered a byte through pipes: two
    changes of process, which wake another processor if there are two. The mean of the fastest
    batch; 0 without such a program."""
    import subprocess  # 10 ms, for this measurement alone

    try:
        peer = subprocess.Popen(
            [_ANSWERING_PROGRAM], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
        )
    except OSError:
        return 0.0
    with peer, _separate(peer.pid):
        return min(_ask(peer.stdin, peer.stdout) for _ in range(_BATCHES)) / _ANSWERS


@contextmanager
def _separate(peer: int) -> Iterator[None]:
    """Keeps this thread and a process on different processors, where the kernel might choose one
    for both, which makes them six times as fast."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        first, second, *_ = sorted(allowed)
        os.sched_setaffinity(peer, {second})
        os.sched_setaffinity(0, {first})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _ask(out: IO[bytes] | None, answers: IO[bytes] | None) -> float:
    """Return the seconds of a batch of questions of a byte and their answers."""
    assert out is not None and answers is not None
    start = time.perf_counter()
    for _ in range(_ANSWERS):
        out.write(b"x")
        answers.read(1)
    return time.perf_counter() - start
