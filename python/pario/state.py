"""Where pario keeps what outlives its runs: below ``$XDG_STATE_HOME/pario``."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path


def folder(kind: str) -> Path:
    """For things of a kind; need not be there."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "pario" / kind


def name_of(type: str, source: str, point: str) -> str:
    """Of a mounted file system: the same each time, and readable."""
    known = "\n".join((type, source, point))
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", f"{type}-{point}").strip("-")[:60]
    return f"{readable}-{hashlib.sha256(os.fsencode(known)).hexdigest()[:8]}"
