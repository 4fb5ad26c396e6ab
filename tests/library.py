"""Which library is tested."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pario.errors import ParioError
from pario.see.launch import environment


def find_library() -> Path | None:
    """PARIO_LIBRARY (a build folder's libpario.so), or the installed one; None where pario's native
    parts are not built."""
    if named := os.environ.get("PARIO_LIBRARY"):
        return Path(named).resolve()
    try:
        return environment.library()
    except ParioError:
        return None


def need_library() -> Path:
    """The same; who asks is skipped where there is none."""
    if found := find_library():
        return found
    return pytest.skip("no libpario.so: set PARIO_LIBRARY, or install pario")
