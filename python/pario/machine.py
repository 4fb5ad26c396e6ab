"""The processors and the memory that this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_FACTS = Path("/proc/meminfo")
#: The control groups of this process, and the place of their limits.
_GROUPS, _CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def count_processors() -> int:
    """The processors on which this process may run."""
    return len(os.sched_getaffinity(0))


def free_memory() -> int:
    """The bytes available on this machine, at most the limits of the process's control group and
    of the groups around it."""
    lines = _FACTS.read_text(encoding="ascii").splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    return min([available, *_limits()])


def _limits() -> Iterator[int]:
    """The limits of memory of the process's control groups (cgroups(7), versions 1 and 2)."""
    for line in _read(_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _limits_above(_CGROUPS, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_above(_CGROUPS / "memory", path, "memory.limit_in_bytes")


def _limits_above(root: Path, path: str, name: str) -> Iterator[int]:
    """The limits of a group and of the groups around it. A container may show only its own, as
    root."""
    place = root / path.lstrip("/")
    for folder in (place, *place.parents):
        text = _read(folder / name).strip()
        if text.isdecimal():
            yield int(text)
        if folder == root:
            return


def _read(path: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    return ""
