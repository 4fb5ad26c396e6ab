"""New files that take their names when they are whole; until then they have names of their own beside them.

What is in the way of such a name, a file that a killed process left or a link, is removed. No link is followed.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pario.copying import part_of
from pario.errors import ParioError


def remove(path: Path) -> None:
    """Removes a file, a directory with all in it, or a link, but never what a link points to; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def new_file(target: Path, maker: str) -> Iterator[tuple[Path, int]]:
    """A new file beside ``target``: its path, and a descriptor to write and read it.

    The body gives it its name; it is removed if the body does not. ``maker``: those with another one have another file.
    Raises OSError that names ``target`` if it names no other file.
    """
    aside = part_of(target, f"{maker}:{socket.gethostname()}")
    try:
        remove(aside)
        descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            yield aside, descriptor
        finally:
            if is_named(descriptor, aside):
                aside.unlink()
            os.close(descriptor)
    except OSError as error:
        error.filename = error.filename or str(target)
        raise


def require_ours(aside: Path, descriptor: int, target: Path, error: type[ParioError] = ParioError) -> None:
    """Raises ``error`` if another process has removed a new file to make the same ``target``."""
    if not is_named(descriptor, aside):
        raise error(f"{target} is made by another process, too")


def is_named(descriptor: int, path: Path) -> bool:
    """True if an open file has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def replacing(
    target: Path,
    maker: str,
    error: type[ParioError] = ParioError,
    *,
    durable: bool = True,
) -> Iterator[IO[bytes]]:
    """A file to be written, which replaces ``target`` at the end of the body. ``durable``: when it is on the disk.

    Raises ``error`` that names ``target``; then that is as before.
    """
    try:
        with new_file(target, maker) as (aside, descriptor):
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                yield file
            require_ours(aside, descriptor, target, error)
            if durable:
                os.fsync(descriptor)
            aside.replace(target)
            if durable:
                _sync_directory(target.parent)
    except OSError as cause:
        raise error(f"cannot write {target}: {cause.strerror or cause}") from cause


def _sync_directory(path: Path) -> None:
    """Names in a directory are on the disk then, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
