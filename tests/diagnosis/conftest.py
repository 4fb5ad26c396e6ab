"""Directories of the programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A working directory, whose files are deleted after the test: they are large."""
    directory = tmp_path / "work"
    directory.mkdir()
    yield directory
    for file in directory.rglob("*"):
        if file.is_file():
            file.unlink()
