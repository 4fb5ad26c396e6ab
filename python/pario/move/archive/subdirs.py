"""A flat directory spread over subdirectories, where programs know the names that they look for:
nothing is packed, files are renamed.

Which subdirectory a file is in follows from its name (``hash``: CRC-32 of the name's bytes modulo
their number) or from its place in the sorted list (``even``). A file beside them says what was
done, so that it can be undone, and done again for files that came later.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pario.errors import ParioError
from pario.paths import local_path
from pario.publishing import is_part, replacing

NOTE = ".pario-subdirs"
_FORMAT = "pario-subdirs-1"
Show = Callable[[int, int], object]


@dataclass(frozen=True)
class Spreading:
    """How files are spread."""

    subdirs: int
    by: str  # "hash" or "even"

    def place(self, number: int) -> str:
        """Name of a subdirectory: 000 to 127, for example."""
        return f"{number:0{len(str(self.subdirs - 1))}d}"

    def place_of(self, name: str) -> str:
        """Which one a name belongs to, by its hash."""
        return self.place(zlib.crc32(os.fsencode(name)) % self.subdirs)

    def places(self, names: list[str]) -> Iterator[tuple[str, str]]:
        """Every name and its subdirectory."""
        for number, name in enumerate(sorted(names)):
            yield (
                name,
                (
                    self.place_of(name)
                    if self.by == "hash"
                    else self.place(number * self.subdirs // len(names))
                ),
            )


def spread(directory: str | os.PathLike[str], subdirs: int, by: str, show: Show) -> int:
    """Moves the files of a directory into its subdirectories; how many. May be done again: with
    files that came later (hash), and after it was killed. Raises ParioError where there are
    directories of other origin.
    """
    directory, spreading = local_path(directory), Spreading(subdirs, by)
    earlier = read_note(directory)
    if earlier and earlier != spreading:
        raise ParioError(
            f"{directory} is spread over {earlier.subdirs} subdirectories by {earlier.by}; `pario"
            f" unpack {directory}` undoes it"
        )
    files = (
        entry.name for entry in os.scandir(directory) if not entry.is_dir(follow_symlinks=False)
    )
    names = [name for name in files if name != NOTE and not is_part(name)]
    if not earlier:
        _require_flat(directory)
        if taken := {spreading.place(number) for number in range(subdirs)}.intersection(names):
            raise ParioError(
                f"{directory} has a file {min(taken)}, which would be the name of a subdirectory;"
                " rename it or say another number"
            )
        _write_note(directory, spreading)
    elif by == "even" and names and _files_in(directory, spreading):
        raise ParioError(
            f"{directory} is spread evenly already: a place follows from all names; `pario unpack"
            f" {directory}` undoes it first"
        )
    for number in range(subdirs):
        (directory / spreading.place(number)).mkdir(exist_ok=True)
    for done, (name, place) in enumerate(spreading.places(names)):
        _move(directory / name, directory / place / name)
        show(done, len(names))
    return len(names)


def gather(directory: str | os.PathLike[str], show: Show) -> int:
    """Takes it back: all files lie in the directory itself again; how many were moved. May be done
    again after it was killed."""
    directory = local_path(directory)
    spreading = read_note(directory)
    if spreading is None:
        raise ParioError(f"{directory} is not spread over subdirectories: it has no {NOTE}")
    found = _files_in(directory, spreading)
    for done, path in enumerate(found):
        _move(path, directory / path.name)
        show(done, len(found))
    for number in _existing_places(directory, spreading):
        (directory / spreading.place(number)).rmdir()
    (directory / NOTE).unlink()
    return len(found)


def read_note(directory: Path) -> Spreading | None:
    """How a directory is spread; None: it is not."""
    path = directory / NOTE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("format") != _FORMAT:
            raise ValueError("another format")
        return Spreading(**document)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise ParioError(f"{path}: {error}; expected a note of {_FORMAT}") from error


def _existing_places(directory: Path, spreading: Spreading) -> list[int]:
    return [
        number
        for number in range(spreading.subdirs)
        if (directory / spreading.place(number)).is_dir()
    ]


def _files_in(directory: Path, spreading: Spreading) -> list[Path]:
    return [
        path
        for number in _existing_places(directory, spreading)
        for path in (directory / spreading.place(number)).iterdir()
    ]


def _require_flat(directory: Path) -> None:
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            raise ParioError(
                f"{directory} is not flat: it has the directory {entry.name}; `pario pack"
                f" {directory} -o OUT` packs trees"
            )


def _write_note(directory: Path, spreading: Spreading) -> None:
    with replacing(directory / NOTE) as file:
        file.write(json.dumps({"format": _FORMAT, **asdict(spreading)}).encode() + b"\n")


def _move(source: Path, target: Path) -> None:
    """Never onto another file."""
    try:
        facts = target.lstat()
    except FileNotFoundError:
        source.rename(target)
        return
    kind = "directory" if stat.S_ISDIR(facts.st_mode) else "file"
    raise ParioError(
        f"{source} cannot become {target}: there is a {kind} of this name; remove or rename one of"
        " them"
    )
