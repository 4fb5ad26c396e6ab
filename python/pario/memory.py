"""The memory that this process may use."""

from __future__ import annotations

from pathlib import Path

_FACTS = "/proc/meminfo"
#: Limits of the memory of this process's group, as containers have them.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def free_memory() -> int:
    """The bytes available on this machine, at most the limit of the process's group."""
    lines = Path(_FACTS).read_text(encoding="ascii").splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    limits = (Path(name) for name in _LIMITS)
    texts = (path.read_text(encoding="ascii").strip() for path in limits if path.exists())
    return min([available, *(int(text) for text in texts if text.isdecimal())])
