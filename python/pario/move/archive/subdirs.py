"""Distributes the files of a flat directory over subdirectories by renaming them, for programs that
know the names of their files.

The subdirectory of a file follows from its name (``hash``: CRC-32 of the name's bytes modulo the
number of subdirectories) or from its position in the sorted list of names (``even``). A note beside
them (``.pario-subdirs``) records both, so that the move can be reverted, and repeated for files
added later.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pario.documents import Format
from pario.errors import ParioError
from pario.paths import local_path
from pario.progress import Show
from pario.publishing import is_part

NOTE = ".pario-subdirs"
_FORMAT = Format("pario-subdirs-1", "a note")


@dataclass(frozen=True)
class Spreading:
    """The rule that assigns files to subdirectories."""

    subdirs: int
    by: str  # "hash" or "even"

    def place(self, number: int) -> str:
        """The name of a subdirectory, for example 000 to 127."""
        return f"{number:0{len(str(self.subdirs - 1))}d}"

    def place_of(self, name: str) -> str:
        """The subdirectory of a file, by the hash of its name."""
        return self.place(zlib.crc32(os.fsencode(name)) % self.subdirs)

    def places(self, names: list[str]) -> Iterator[tuple[str, str]]:
        """Pairs of a name and its subdirectory, in the order of names."""
        for number, name in enumerate(sorted(names)):
            yield (
                name,
                (
                    self.place_of(name)
                    if self.by == "hash"
                    else self.place(number * self.subdirs // len(names))
                ),
            )


def distribute(directory: str | os.PathLike[str], subdirs: int, by: str, show: Show) -> int:
    """Moves the files of a directory into its subdirectories; returns their number. Can be repeated
    for files added later (hash), and after the process was killed. Raises ParioError if the
    directory has other subdirectories.
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
                " rename it or choose another number"
            )
        _FORMAT.write(directory / NOTE, asdict(spreading), durable=True)
    places = _places(directory, spreading, names)
    for number in range(subdirs):
        (directory / spreading.place(number)).mkdir(exist_ok=True)
    for done, name in enumerate(sorted(names)):
        _move(directory / name, directory / places[name] / name)
        show(done, len(names))
    return len(names)


def _places(directory: Path, spreading: Spreading, names: list[str]) -> dict[str, str]:
    """The subdirectories of files. By ``even`` they depend on the names of the moved files, too.
    Raises ParioError if these lie elsewhere: the directory was spread without the other names."""
    moved = (
        {path.name: path.parent.name for path in _files_in(directory, spreading)}
        if spreading.by == "even" and names
        else {}
    )
    places = dict(spreading.places(list({*names, *moved})))
    if any(places[name] != place for name, place in moved.items()):
        raise ParioError(
            f"{directory} is spread evenly already: each place depends on all names; undo it first"
            f" with `pario unpack {directory}`"
        )
    return places


def gather(directory: str | os.PathLike[str], show: Show) -> int:
    """Moves all files back from the subdirectories; returns their number. Can be repeated after the
    process was killed. Raises ParioError if the directory is not spread."""
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
    """Read how a directory is spread; None if it is not. Raises ParioError if the note is
    damaged."""
    return _FORMAT.read(directory / NOTE, lambda fields: Spreading(**fields))


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


def _move(source: Path, target: Path) -> None:
    """Renames a file. Raises ParioError instead of replacing another file."""
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
