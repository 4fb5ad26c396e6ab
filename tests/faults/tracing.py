"""Runs work in a forked child and counts, fails or records its system calls (tracer.c).

The caller must have no other threads and no other children: it forks and waits for all children.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SOURCE = Path(__file__).with_name("tracer.c")
_BUILD = Path(__file__).parents[2] / "build" / "faults"
_TRACEME = 0
#: Families of calls, in the order of tracer.c.
FAMILIES = "write read fsync open close mmap truncate mkdir unlink rename link copy".split()
_NOTHING, _FAIL, _SHORTEN, _KILL = range(4)
SHORT, KILL = "short", "kill"
_ACTIONS = {SHORT: _SHORTEN, KILL: _KILL}
_RECORD = struct.Struct("<16sq6QQQQIIQ")


@dataclass(frozen=True)
class Fault:
    """A fault of one call, with `onwards` also of all later calls of its family.

    `error` is the name of an error number, "short" (half of a transfer) or "kill".
    """

    call: str
    error: str
    index: int
    onwards: bool = False


@dataclass(frozen=True)
class Outcome:
    """The end of a run. `counts`: calls on files beneath the root, by family."""

    status: int  # as in subprocess: negative for a signal
    late: bool
    injected: int
    counts: dict[str, int]
    output: str


@dataclass(frozen=True)
class Record:
    """A successful call. `before`: the inode of its (last) path before the call; 0: none."""

    name: str
    result: int
    arguments: tuple[int, ...]
    offset: int
    before: int
    inode: int
    path: str
    other: str
    data: bytes


class _Plan(ctypes.Structure):
    _fields_ = [
        ("root", ctypes.c_char_p),
        *((name, ctypes.c_int32) for name in ("action", "family", "index", "onwards")),
        *((name, ctypes.c_int32) for name in ("error", "seconds", "record")),
    ]


class _Outcome(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("status", "late", "injected")),
        ("counts", ctypes.c_int32 * len(FAMILIES)),
    ]


class TracerError(Exception):
    """The tracer cannot run here."""


@cache
def load_tracer() -> ctypes.CDLL:
    """Loads the tracer; builds it first if it is out of date. Raises TracerError."""
    if platform.machine() != "x86_64":
        raise TracerError(f"the tracer knows x86_64, not {platform.machine()}")
    library = _BUILD / "libtracer.so"
    if not library.exists() or library.stat().st_mtime < _SOURCE.stat().st_mtime:
        _BUILD.mkdir(parents=True, exist_ok=True)
        aside = library.with_suffix(f".{os.getpid()}")
        command = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", str(_SOURCE), "-o", str(aside)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TracerError(f"{' '.join(command)}: {done.stderr}")
        aside.replace(library)
    return ctypes.CDLL(str(library), use_errno=True)


def run_traced(
    work: Callable[[], int | None],
    root: Path,
    fault: Fault | None = None,
    *,
    record: int = -1,
    seconds: int = 30,
) -> Outcome:
    """Runs `work` in a child and applies the fault to its calls on files beneath `root`.

    `record`: a descriptor that receives a record of each call (read_records). After `seconds` the
    child and all of its descendants are killed.
    """
    tracer = load_tracer()
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _run_child(work, output.fileno())
        plan = _make_plan(root, fault, record, seconds)
        outcome = _Outcome()
        if tracer.trace_tree(child, ctypes.byref(plan), ctypes.byref(outcome)) != 0:
            os.kill(child, signal.SIGKILL)
            raise TracerError("ptrace is not allowed here")
        output.seek(0)
        text = output.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(outcome.status)
    counts = dict(zip(FAMILIES, outcome.counts, strict=True))
    return Outcome(status, bool(outcome.late), outcome.injected, counts, text)


def _make_plan(root: Path, fault: Fault | None, record: int, seconds: int) -> _Plan:
    plan = _Plan(root=os.fsencode(root), seconds=seconds, record=record)
    if fault is not None:
        plan.action = _ACTIONS.get(fault.error, _FAIL)
        plan.error = 0 if fault.error in _ACTIONS else getattr(errno, fault.error)
        plan.family, plan.index = FAMILIES.index(fault.call), fault.index
        plan.onwards = fault.onwards
    return plan


def _run_child(work: Callable[[], int | None], output: int) -> None:
    """Runs the work and exits like an interpreter: an exception prints a traceback, status 1."""
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        if ctypes.CDLL(None).ptrace(_TRACEME, 0, 0, 0) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            status = work() or 0
            threading._shutdown()  # type: ignore[attr-defined]
            sys.stdout.flush()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def read_records(data: bytes) -> Iterator[Record]:
    """Yields the records of a run."""

    at = 0
    while at < len(data):
        name, result, *rest = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        *arguments, offset, before, inode, path, other, size = rest
        texts = []
        for length in (path, other):
            texts.append(os.fsdecode(data[at : at + length]))
            at += length
        content = data[at : at + size]
        at += size
        word = name.rstrip(b"\0").decode()
        yield Record(word, result, tuple(arguments), offset, before, inode, *texts, content)
