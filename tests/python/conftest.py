"""Files that several test modules use."""

from pathlib import Path

import pytest

from tests.python.support.lines import LINES


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(LINES) + b"\n")
    return path
