"""The directory of a job on this node with answers about names and copies of files, which its
processes share (src/layers/node_cache). It lies in memory; the last launcher removes it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pario import locks
from pario.errors import ParioError
from pario.see.launch.environment import Settings, audit_library
from pario.settings.environment import is_true

TREES = "PARIO_CACHED_TREES"
AHEAD = "PARIO_LOADER_AHEAD"
VARIABLE = "PARIO_NODE_CACHE"
_PARTS = ("names", "copies", "lists", "ahead", "closed")
_USERS = "users"  # locked by launchers
_SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def sharing(
    log: Path, settings: Settings, environment: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Yield the variables of a command whose settings use the cache; no variables otherwise.
    ``log`` is the directory of the job's logs. Raises ParioError."""
    chosen = settings.chosen_variables(environment)
    trees = chosen.get(TREES, "")
    if not trees and not is_true(chosen.get(AHEAD, "")):
        yield {}
        return
    place = _memory() / f"{_prefix()}{hashlib.sha256(os.fsencode(log)).hexdigest()[:12]}"
    users = _enter(place)
    try:
        yield {VARIABLE: str(place)} | (_variables(trees, environment) if trees else {})
    finally:
        _leave(place, users)


def remove_unused() -> None:
    """Remove the directories of jobs whose launchers were killed."""
    for place in _memory().glob(f"{_prefix()}*"):
        with suppress(OSError, ParioError):
            _leave(place, os.open(place / _USERS, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC))


def _variables(trees: str, environment: Mapping[str, str]) -> dict[str, str]:
    audit = [str(audit_library()), *filter(None, [environment.get("LD_AUDIT", "")])]
    return {TREES: _with_real_names(trees), "LD_AUDIT": ":".join(dict.fromkeys(audit))}


def _memory() -> Path:
    return _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def _prefix() -> str:
    return f"pario-{os.geteuid()}-cache-"


def _with_real_names(trees: str) -> str:
    """Add to each tree its name without symbolic links: ``NAME=REAL``."""
    pairs = []
    for tree in filter(None, trees.split(":")):
        name = tree.partition("=")[0].rstrip("/")
        real = os.path.realpath(name)
        pairs += [f"{name}={real}", real] if name != real else [name]
    return ":".join(dict.fromkeys(pairs))


def _enter(place: Path) -> int:
    """Make the directory, or join other launchers in it; return the descriptor that holds it."""

    def open_users() -> int:
        place.mkdir(mode=0o700, exist_ok=True)
        facts = place.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
            raise ParioError(f"{place} belongs to another user")
        return os.open(place / _USERS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)

    try:
        users = locks.hold(place / _USERS, open_users)
        for part in _PARTS:
            (place / part).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ParioError(f"{place}: {error.strerror}") from error
    return users


def _leave(place: Path, users: int) -> None:
    """Remove the directory if no other launcher uses it."""
    try:
        if locks.is_last(place / _USERS, users):
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(users)
