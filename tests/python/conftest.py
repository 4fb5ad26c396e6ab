"""Files that several test modules use, and the settings of hypothesis."""

from pathlib import Path

import hypothesis
import pytest

from tests.python.support.lines import LINES

# On a busy machine any example may take long; tests/support/limits.py bounds a whole test.
hypothesis.settings.register_profile("pario", deadline=None)
hypothesis.settings.load_profile("pario")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(LINES) + b"\n")
    return path
