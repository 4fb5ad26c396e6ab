"""Searches places for logs: files, directories with all that is below them, and patterns."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pario.errors import ParioError
from pario.paths import local_path
from pario.see.tables.errors import ReadError
from pario.see.tables.own.blocks import is_log

_OWN, _DARSHAN = ".plog", ".darshan"
_EXPECTED = "run.pario directories, Darshan logs (*.darshan), or directories with such logs below"
_File = tuple[int, int]  # device and inode


@dataclass
class Found:
    """The logs at some places, each once.

    ``runs`` are the own ones: a directory of ``pario run``, or process logs of one directory.
    ``errors`` name the files and directories that cannot be examined.
    """

    runs: list[tuple[Path, ...]] = field(default_factory=list)
    darshan: list[Path] = field(default_factory=list)
    errors: list[ReadError] = field(default_factory=list)
    repeated: int = 0  # files and directories that were found before


def find_logs(places: Sequence[str | os.PathLike[str]]) -> Found:
    """Return the logs at paths and patterns (``**`` crosses directories), in their order.

    Raises ReadError for a missing path, and if there is no log at all.
    """
    search = _Search()
    for place in places:
        for path in _paths_of(place):
            search.add(path)
    found = search.finish()
    if not (found.runs or found.darshan or found.errors):
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        raise ReadError(f"{places[0]}{more}" if places else "no path", "no logs", _EXPECTED)
    return found


def _paths_of(place: str | os.PathLike[str]) -> list[Path]:
    path = local_path(place)
    if path.exists():
        return [path]
    pattern = str(path)
    matches = glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else []  # noqa: PTH207
    if not matches:
        raise ReadError(path, "no such file or directory", _EXPECTED)
    return [Path(match) for match in sorted(matches)]


class _Search:
    """Collects logs; a file or directory is known by its inode, not by its name."""

    def __init__(self) -> None:
        self._found = Found()
        self._seen: set[_File] = set()
        self._process_logs: dict[Path, list[Path]] = {}  # by their directory
        self._directories: set[_File] = set()

    def add(self, path: Path) -> None:
        """Add a log, or all logs below a directory."""
        if path.is_dir():
            self._add_directory(path)
        elif path.suffix == _OWN or (path.suffix != _DARSHAN and self._is_own(path)):
            if self._is_new(path):
                self._process_logs.setdefault(path.parent, []).append(path)
        elif self._is_new(path):
            self._found.darshan.append(path)

    def finish(self) -> Found:
        """Return the result. Process logs whose whole directory was added belong to its run."""
        for directory, logs in self._process_logs.items():
            if self._file(directory) in self._directories:
                self._found.repeated += len(logs)
            else:
                self._found.runs.append(tuple(logs))
        return self._found

    def _add_directory(self, top: Path) -> None:
        for name, below, files in os.walk(top, onerror=self._note_folder):
            below.sort()
            directory = Path(name)
            if any(file.endswith(_OWN) for file in files) and self._is_new(directory):
                self._directories |= {self._file(directory) or (0, 0)}
                self._found.runs.append((directory,))
            for file in sorted(file for file in files if file.endswith(_DARSHAN)):
                if self._is_new(directory / file):
                    self._found.darshan.append(directory / file)

    def _is_new(self, path: Path) -> bool:
        """True the first time that a file or directory is found; errors are noted."""
        file = self._file(path)
        if file is None:
            return False
        if file in self._seen:
            self._found.repeated += 1
            return False
        self._seen.add(file)
        return True

    def _file(self, path: Path) -> _File | None:
        try:
            facts = path.stat()
        except OSError as error:
            self._note(str(path), error.strerror or str(error))
            return None
        if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
            self._note(str(path), "not a regular file")  # a pipe would block its reader
            return None
        return facts.st_dev, facts.st_ino

    def _is_own(self, path: Path) -> bool:
        try:
            return is_log(path)
        except ParioError:
            return False  # the reader repeats the error

    def _note_folder(self, error: OSError) -> None:
        self._note(str(error.filename), error.strerror or str(error))

    def _note(self, path: str, reason: str) -> None:
        self._found.errors.append(ReadError(path, reason.lower(), "readable logs"))
