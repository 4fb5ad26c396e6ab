"""Small git checkouts for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_all(folder: Path) -> None:
    """Commits all files of a folder, which becomes a checkout."""
    author = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
