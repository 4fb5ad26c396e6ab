"""Finds the library under test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pario.errors import ParioError
from pario.see.launch import environment


def find_library() -> Path | None:
    """Returns PARIO_LIBRARY (libpario.so of a build folder) or the installed library; None if
    pario's native parts are not built."""
    if named := os.environ.get("PARIO_LIBRARY"):
        return Path(named).resolve()
    try:
        return environment.library()
    except ParioError:
        return None


def need_library() -> Path:
    """Returns find_library(), or skips the test if there is none."""
    if found := find_library():
        return found
    return pytest.skip("no libpario.so: set PARIO_LIBRARY, or install pario")
