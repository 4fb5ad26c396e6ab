"""The directories of files that pario keeps between runs.

``$XDG_STATE_HOME/pario`` has results, and the cache has files that can be computed again:
``$PARIO_CACHE``, else ``$XDG_CACHE_HOME/pario``.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

#: The kind of files that describe measured machines.
MACHINES = "machines"


def folder(kind: str) -> Path:
    """The directory for files of a kind; it may not exist."""
    return (
        Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "pario" / kind
    )


def cache_folder(kind: str) -> Path:
    """The directory for a kind of files that can be computed again; it may not exist."""
    own = os.environ.get("PARIO_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(own) if own else base / "pario") / kind


def name_of(type: str, source: str, point: str) -> str:
    """A readable name for a mounted file system, the same each time."""
    known = "\n".join((type, source, point))
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", f"{type}-{point}").strip("-")[:60]
    return f"{readable}-{hashlib.sha256(os.fsencode(known)).hexdigest()[:8]}"
