"""Checks of the program that a command names: that it exists, and that a preloaded library can
trace it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pario.errors import ParioError

_ELF = b"\x7fELF"
_PT_INTERP = 3
#: A segment of a 64-bit ELF file: its kind, its offset and its size in the file.
_SEGMENT = struct.Struct("<I4xQ16xQ")
_HEAD = 4096
#: Builtin commands of shells that users give as a program.
_SHELL = frozenset(
    "alias cd eval exec exit export module read set shift source trap type ulimit umask unset wait"
    " . : for if while until case function".split()
)


def resolve(name: str) -> Path:
    """Return the executable file of a command's first word.

    Raises ParioError with the word and the error: not found, a directory, or not executable.
    """
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    path = Path(name)
    if os.sep not in name:
        raise ParioError(f"{name}: no such program in PATH{_suggest(name)}")
    if path.is_dir():
        raise ParioError(f"{name} is a directory; expected a program")
    if path.exists():
        remedy = "python" if path.suffix == ".py" else "chmod +x"
        raise ParioError(f"{name} is not executable; expected a program ({remedy} {name}?)")
    raise ParioError(f"{name}: no such program")


def _suggest(name: str) -> str:
    """The remedy for a word that shells understand, and that is no program in PATH; or nothing."""
    if name in _SHELL:
        return f"; {name} is a command of the shell: pario run -- bash -c '{name} ...'"
    if re.match(r"[A-Za-z_]\w*=", name):
        return f"; set variables before pario: {name} pario run -- COMMAND"
    if Path(name).is_file():
        command = f"python {name}" if name.endswith(".py") else f"./{name}"
        return f"; for the file in this directory: pario run -- {command}"
    if name in ("mpiexec", "mpirun"):
        return "; load the module of an MPI, or install one: pip install mpich"
    return ""


def describe_failure(path: Path, error: OSError) -> str:
    """The reason why an executable file did not start; empty for a script without ``#!``, which
    shells run."""
    head = _read_head(path)
    if error.errno == errno.ENOEXEC:
        is_elf = head.startswith(_ELF)
        return (
            f"{path} is built for another processor; rebuild it on this machine" if is_elf else ""
        )
    name = _read_interpreter(head)
    if error.errno == errno.ENOENT and name and not Path(name).exists():
        source = "its first line" if head.startswith(b"#!") else "it, built on another system,"
        return f"cannot start {path}: there is no {name!r}, which {source} names"
    return f"cannot start {path}: {error.strerror}"


def _read_interpreter(head: bytes) -> str:
    """The interpreter that the first bytes of a script or of an ELF file name; empty: none."""
    if head.startswith(b"#!"):
        line = head[2:].partition(b"\n")[0].strip(b" \t")
        return os.fsdecode(re.split(rb"[ \t]", line)[0])
    for kind, offset, size in _read_segments(head):
        if kind == _PT_INTERP:
            return os.fsdecode(head[offset : offset + size].rstrip(b"\0"))
    return ""


def is_static(path: Path) -> bool:
    """True for an ELF file without a dynamic loader (PT_INTERP), into which no library can be
    preloaded. False for scripts and unreadable files."""
    segments = _read_segments(_read_head(path))
    return bool(segments) and all(kind != _PT_INTERP for kind, _, _ in segments)


def _read_head(path: Path) -> bytes:
    """The first bytes of a file, which hold the headers of a program; empty if unreadable."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(_HEAD)
    return b""


def _read_segments(head: bytes) -> list[tuple[int, int, int]]:
    """The kind, offset and size of each segment of a 64-bit ELF program; empty for other files, and
    where the headers do not lie in the first bytes."""
    if len(head) < 64 or head[:4] != _ELF or head[4] != 2:
        return []
    kind, offset = struct.unpack_from("<H14xQ", head, 16)
    size, count = struct.unpack_from("<HH", head, 54)
    if kind not in (2, 3) or size < _SEGMENT.size or offset + size * count > len(head):
        return []
    return [_SEGMENT.unpack_from(head, offset + size * number) for number in range(count)]


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
                    " into it (run pario as that user, behind sudo, or run a copy without the bit)"
                )


def _is_program(path: Path) -> bool:
    """Return True if an argument names a program. Text that is no valid file name (of `python -c`)
    does not."""
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:
        return False
