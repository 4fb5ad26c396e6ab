"""Finds, describes and ends the processes of a test, including orphans that carry its mark.

A mark is a random word in the environment variable ``TEST_PROCESS_MARKS``. Descendants inherit it,
also the ranks that launchers put into sessions of their own.
"""

from __future__ import annotations

import os
import platform
import re
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MARKS = "TEST_PROCESS_MARKS"
_PROC = Path("/proc")
_ENDED = "ZX"
_SECONDS_TO_DIE = 10.0
_LONGEST_COMMAND = 200
_OF_DESCRIPTORS = re.compile(
    r"p?(read|write)(v|v2|64)?|f(data)?sync|ftruncate|flock|fcntl|ioctl|lseek|fallocate"
    r"|getdents64|fstat|recv\w*|send\w*|accept4?|epoll_p?wait2?"
)


@dataclass(frozen=True)
class Process:
    """A process, from /proc/PID/stat."""

    pid: int
    parent: int
    state: str
    cpu_seconds: float

    @property
    def lives(self) -> bool:
        """False for a zombie, which only its parent can remove."""
        return self.state not in _ENDED

    @property
    def command(self) -> str:
        words = _read(_PROC / str(self.pid) / "cmdline").replace("\0", " ").strip()
        return words or f"[{_read(_PROC / str(self.pid) / 'comm').strip()}]"

    def carries(self, mark: str) -> bool:
        return mark in _read(_PROC / str(self.pid) / "environ")


def add_mark(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """Returns the environment of a process that carries a mark besides those of its ancestors."""
    earlier = environment.get(MARKS, os.environ.get(MARKS, ""))
    return {**environment, MARKS: f"{earlier}:{mark}"}


def create_mark() -> str:
    return uuid.uuid4().hex


def find_processes(pid: int | None = None, mark: str = "") -> list[Process]:
    """Finds a process, its descendants, the processes that carry a mark, and their descendants.

    Parents precede their children. This process is not among them.
    """
    everything = {process.pid: process for process in _list_processes()}
    children: dict[int, list[Process]] = {}
    for process in everything.values():
        children.setdefault(process.parent, []).append(process)
    roots = [everything[pid]] if pid in everything else []
    roots += [process for process in everything.values() if mark and process.carries(mark)]
    found: dict[int, Process] = {}

    def add(process: Process) -> None:
        if process.pid not in found:
            found[process.pid] = process
            for child in sorted(children.get(process.pid, []), key=lambda child: child.pid):
                add(child)

    of_found = {process.pid for process in roots}
    for process in sorted(roots, key=lambda process: (process.parent in of_found, process.pid)):
        add(process)
    found.pop(os.getpid(), None)
    return list(found.values())


def describe_processes(pid: int | None = None, mark: str = "") -> str:
    """Describes the processes of find_processes(): states, command lines, current system calls, CPU
    time, threads.

    The indent shows the depth of a descendant.
    """
    processes = find_processes(pid, mark)
    if not processes:
        return "(no processes)"
    depths: dict[int, int] = {}
    lines = []
    for process in processes:
        depth = depths[process.pid] = depths.get(process.parent, -1) + 1
        lines += ["  " * depth + line for line in _describe(process)]
    return "\n".join(lines)


def end_processes(mark: str = "", pid: int | None = None) -> None:
    """Kills the processes of find_processes(), and those that they start meanwhile."""
    deadline = time.monotonic() + _SECONDS_TO_DIE
    while living := [process for process in find_processes(pid, mark) if process.lives]:
        for process in living:
            with suppress(OSError):  # the process has just ended
                os.kill(process.pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _list_processes() -> Iterator[Process]:
    for path in _PROC.glob("[0-9]*"):
        if (rest := _read(path / "stat").rpartition(")")[2].split()) != []:
            ticks = int(rest[11]) + int(rest[12])
            seconds = ticks / os.sysconf("SC_CLK_TCK")
            yield Process(int(path.name), int(rest[1]), rest[0], seconds)


def _describe(process: Process) -> Iterator[str]:
    command = process.command
    if len(command) > _LONGEST_COMMAND:
        command = command[:_LONGEST_COMMAND] + "..."
    start = f"{process.pid} (parent {process.parent}) {process.state} {process.cpu_seconds:.2f} s"
    yield f"{start} of CPU: {command}"
    if not process.lives:
        return
    tasks = sorted((_PROC / str(process.pid) / "task").glob("*"), key=lambda path: int(path.name))
    for task in tasks:
        state = _read(task / "stat").rpartition(")")[2].split()[:1]
        name = _read(task / "comm").strip()
        at = _read(task / "wchan").strip("0\n") or "-"
        call = describe_call(task)
        yield f"  thread {task.name} {name} {''.join(state)} in {call}, kernel function {at}"


def describe_call(task: Path) -> str:
    """Names the system call that a thread is in; ``task`` is its folder in /proc."""
    words = _read(task / "syscall").split()
    if not words or not words[0].lstrip("-").isdigit():
        return words[0] if words else "an unknown state"
    number = int(words[0])
    if number < 0:
        return "no system call"
    name = _call_names().get(number, f"system call {number}")
    if _OF_DESCRIPTORS.fullmatch(name) and len(words) > 1:
        descriptor = int(words[1], 16)
        return f"{name}({descriptor}: {_target(task, descriptor)})"
    return name


def _target(task: Path, descriptor: int) -> str:
    try:
        return str((task / "fd" / str(descriptor)).readlink())
    except OSError:
        return "?"


@cache
def _call_names() -> dict[int, str]:
    """Returns the names of system calls by number, from the headers of the C library; empty if
    there are none."""
    machine = platform.machine()
    headers = [
        Path(f"/usr/include/{machine}-linux-gnu/asm/unistd_64.h"),
        Path("/usr/include/asm/unistd_64.h"),
    ]
    if machine != "x86_64":
        headers.append(Path("/usr/include/asm-generic/unistd.h"))
    text = next((path.read_text() for path in headers if path.exists()), "")
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.MULTILINE)
    return {int(number): name for name, number in found}


def _read(path: Path) -> str:
    """Returns a file's text; empty if the process has ended or is another user's."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
