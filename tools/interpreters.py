"""Finds the CPython interpreters of this machine, by version."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_ASK = (
    "import sys, sysconfig; print(*sys.version_info[:2],"
    " 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else '', sysconfig.get_path('include'),"
    " sep='\\n')"
)
_VERSIONS = range(11, 20)
_SECONDS = 60


def find_interpreters(suffix: str = "") -> dict[tuple[int, int], Path]:
    """The interpreters of the PATH and of pyenv that are 3.11 or later, by version; those without a
    global lock by suffix "t"."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: dict[tuple[int, int], Path] = {}
    for minor in _VERSIONS:
        named = shutil.which(f"python3.{minor}{suffix}")
        kept = sorted(pyenv.glob(f"3.{minor}.*{suffix}/bin/python"))
        for place in [*([Path(named)] if named else []), *kept]:
            if _ask(place)[:3] == ["3", str(minor), suffix]:
                found.setdefault((3, minor), place)
    return found


def has_headers(interpreter: Path) -> bool:
    """True if extension modules can be compiled for an interpreter."""
    answer = _ask(interpreter)
    return len(answer) == 4 and Path(answer[3], "Python.h").exists()


def _ask(interpreter: Path) -> list[str]:
    command = [interpreter, "-c", _ASK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    return done.stdout.splitlines()
