"""Checksums of a run's output files, kept in its log directory: ``outputs.json``. Written by
``pario run --verify``, compared by ``pario compare``.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pario.documents import Format
from pario.errors import ParioError

NAME = "outputs.json"
_FORMAT = Format("pario-outputs-1", "checksums")

#: The facts that change when a file is written: modification time, size, inode.
State = tuple[int, int, int]


@dataclass(frozen=True)
class Output:
    """A file after the run. ``path`` is relative to the directory of the run where it lies below
    it."""

    path: str
    size: int
    digest: str  # BLAKE2b, 256 bits
    written: bool  # by this run: new, or another modification time or size than before


def state_before(patterns: Iterable[str]) -> dict[str, State]:
    """The states of the matching files before the run, by which :func:`record` finds the files that
    the run wrote."""
    return {path: state for path in _matching(patterns) if (state := _state(path))}


def record(
    directory: Path, patterns: Iterable[str], before: Mapping[str, State]
) -> tuple[Output, ...]:
    """Computes the checksums of matching files and keeps them in the log directory. Raises
    ParioError if a file cannot be read."""
    found = tuple(_sum(path, before.get(path)) for path in _matching(patterns))
    _FORMAT.write(directory / NAME, {"outputs": [asdict(output) for output in found]})
    return found


def read(directory: Path) -> tuple[Output, ...] | None:
    """The outputs that a run recorded, or None. Raises ParioError if the file is damaged."""
    return _FORMAT.read(
        directory / NAME, lambda fields: tuple(Output(**row) for row in fields["outputs"])
    )


def _matching(patterns: Iterable[str]) -> list[str]:
    """Regular files that match, each once, in order; ``**`` stands for any directories. Names stay
    relative."""
    found = {
        os.path.normpath(path)
        for pattern in patterns
        for path in glob.glob(pattern, recursive=True)  # noqa: PTH207
    }
    return sorted(path for path in found if Path(path).is_file())


def _state(path: str) -> State | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _sum(path: str, before: State | None) -> Output:
    try:
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise ParioError(f"cannot read {path} for its checksum: {error.strerror}") from error
    return Output(path, size, digest, written=_state(path) != before)
