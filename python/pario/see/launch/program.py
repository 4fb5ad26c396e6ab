"""Checks of the program that a command names: that it exists, and that a preloaded library can
trace it."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from pario.errors import ParioError

_PT_INTERP = 3


def resolve(name: str) -> Path:
    """Return the executable file of a command's first word.

    Raises ParioError with the word and the error: not found, a directory, or not executable.
    """
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    path = Path(name)
    if os.sep in name and path.is_dir():
        raise ParioError(f"{name} is a directory; expected a program")
    if os.sep in name and path.exists():
        raise ParioError(f"{name} is not executable; expected a program (chmod +x {name}?)")
    raise ParioError(f"{name}: no such program{'' if os.sep in name else ' in PATH'}")


def is_static(path: Path) -> bool:
    """True for an ELF file without a dynamic loader (PT_INTERP), into which no library can be
    preloaded. False for scripts and unreadable files."""
    try:
        with path.open("rb") as file:
            return _lacks_interpreter(file.read(4096))
    except OSError:
        return False


def _lacks_interpreter(head: bytes) -> bool:
    if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2:
        return False
    kind, offset, size, count = struct.unpack_from("<H14xQ", head, 16) + struct.unpack_from(
        "<HH", head, 54
    )
    if kind not in (2, 3):
        return False
    headers = (head[offset + i * size : offset + i * size + 4] for i in range(count))
    return all(len(raw) == 4 and struct.unpack("<I", raw)[0] != _PT_INTERP for raw in headers)


def warnings(command: Sequence[str], executable: Path) -> Iterator[str]:
    """Yield warnings on the programs of a command (`mpiexec -n 4 ./app`: also app) that cannot be
    traced."""
    names = [executable, *(Path(word) for word in command[1:])]
    for path in dict.fromkeys(names):
        if _is_program(path):
            if is_static(path):
                yield (
                    f"{path} is statically linked: its calls cannot be seen (link it dynamically;"
                    " Go programs: no remedy)"
                )
            if path.stat().st_mode & 0o6000:
                yield (
                    f"{path} is set-user-ID or set-group-ID: the system does not preload libraries"
                    " into it"
                )


def _is_program(path: Path) -> bool:
    """Return True if an argument names a program. Text that is no valid file name (of `python -c`)
    does not."""
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False
