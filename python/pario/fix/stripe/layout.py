"""Stripes of files and directories as values; asked of the file system, set, and compared with what
was wanted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pario import filesystems, wording
from pario.errors import ParioError
from pario.paths import local_path

#: Stripes are multiples of this on Lustre and on Ceph.
GRANULE = 64 << 10
#: As a number of targets: all there are.
ALL = 0xFFFF
TO_THE_END = 2**64 - 1


@dataclass(frozen=True)
class Part:
    """A range of a file and how it is striped; 0, -1 and empty: not said, as the directory says,
    any."""

    begin: int = 0
    end: int = TO_THE_END
    unit: int = 0
    count: int = 0
    start: int = -1
    pool: str = ""
    overstriped: bool = False
    on_metadata_server: bool = False
    targets: tuple[int, ...] = ()

    @property
    def row(self) -> tuple[int, int, int, int, int, str, bool, bool, list[int]]:
        """As the native core takes it."""
        return (
            self.begin,
            self.end,
            self.unit,
            self.count,
            self.start,
            self.pool,
            self.overstriped,
            False,
            list(self.targets),
        )


@dataclass(frozen=True)
class Wanted:
    """What is asked for: one part, or for composite files of Lustre several that follow each other
    to the end."""

    parts: tuple[Part, ...] = (Part(),)
    object_size: int = 0  # of Ceph; 0: as it is

    @property
    def key(self) -> str:
        """Two that are equal have the same, and no others."""
        return repr(([part.row for part in self.parts], self.object_size))


@dataclass(frozen=True)
class Stripes:
    """The stripes of a file, or of new files in a directory, by the file system. No parts: it
    does not say, or has no stripes."""

    path: str
    kind: str  # of src/core/layout/layout.def
    directory: bool = False
    block: int = 0
    inherited: str = ""  # the directory above that it has them from
    parts: tuple[Part, ...] = field(default=())
    object_size: int = 0

    @property
    def settable(self) -> bool:
        """Whether pario can set the stripes of new files there."""
        return filesystems.of_kind(self.kind).settable


Row = tuple[int, int, int, int, int, str, bool, bool, list[int]]


def stripes_of(path: str | os.PathLike[str]) -> Stripes:
    """Asks the file system."""
    from pario import _native

    with _readable():
        return _told(path, _native.stripes_of(os.fsencode(local_path(path))))


def set_stripes(path: str | os.PathLike[str], wanted: Wanted, mode: int = 0o666) -> Stripes:
    """Sets the stripes of an empty file (and creates it), or of new files in a directory; returns
    the resulting stripes."""
    from pario import _native

    with _readable():
        return _told(
            path,
            _native.set_stripes(
                os.fsencode(local_path(path)),
                [part.row for part in wanted.parts],
                wanted.object_size,
                mode,
            ),
        )


def inherit_stripes(directory: str | os.PathLike[str]) -> Stripes:
    """A directory has the stripes of the one above again."""
    from pario import _native

    with _readable():
        _native.inherit_stripes(os.fsencode(local_path(directory)))
    return stripes_of(directory)


@contextmanager
def _readable() -> Iterator[None]:
    """Turns the errors of the native core, whose text says all, into errors for the user."""
    try:
        yield
    except OSError as error:
        raise ParioError(str(error.strerror)) from error


def _told(
    path: str | os.PathLike[str], told: tuple[str, bool, int, bytes, Sequence[Row], int]
) -> Stripes:
    kind, directory, block, inherited, rows, object_size = told
    parts = tuple(Part(*row[:8], targets=tuple(row[8])) for row in rows)
    return Stripes(
        os.fspath(path), kind, directory, block, os.fsdecode(inherited), parts, object_size
    )


def differences(wanted: Wanted, got: Stripes) -> list[str]:
    """The differences between the wanted and the resulting stripes, in words."""
    if len(wanted.parts) != len(got.parts):
        return [f"asked for {wording.plural(len(wanted.parts), 'part')}, it has {len(got.parts)}"]
    sizes = (
        []
        if wanted.object_size in (0, got.object_size)
        else [
            f"asked for objects of {wording.block(wanted.object_size)}, they have"
            f" {wording.block(got.object_size)}"
        ]
    )
    return sizes + [
        text
        for one, other in zip(wanted.parts, got.parts, strict=True)
        for text in _differences(one, other)
    ]


def _differences(wanted: Part, got: Part) -> Iterator[str]:
    if wanted.targets and wanted.targets != got.targets and got.targets:
        yield f"asked for targets {_list(wanted.targets)}, it has {_list(got.targets)}"
    elif not wanted.targets and wanted.count not in (0, ALL, got.count):
        yield f"asked for {wording.plural(wanted.count, 'stripe')}, it has {got.count}"
    if wanted.unit not in (0, got.unit):
        yield (
            f"asked for stripes of {wording.block(wanted.unit)}, they have"
            f" {wording.block(got.unit)}"
        )
    if not wanted.targets and wanted.start >= 0 and got.targets and got.targets[0] != wanted.start:
        yield f"asked for first target {wanted.start}, it is {got.targets[0]}"
    if wanted.pool not in ("", got.pool):
        yield f"asked for pool {wanted.pool}, it is {got.pool or 'none'}"
    if wanted.end != got.end:
        yield (
            f"asked for a part that ends at {wording.block(wanted.end)}, it ends at"
            f" {end_text(got.end)}"
        )


def same(wanted: Wanted, got: Stripes) -> bool:
    """Whether a file is striped as wanted already: nothing that was asked for is missing."""
    if differences(wanted, got):
        return False
    return not any(
        (one.overstriped and not other.overstriped) or one.count == ALL
        for one, other in zip(wanted.parts, got.parts, strict=True)
    )


def completed(wanted: Wanted, now: Stripes) -> Wanted:
    """With what a file has now in place of what is not said; composite files are taken as they are
    asked for."""
    if len(wanted.parts) != 1 or len(now.parts) != 1:
        return wanted
    one, old = wanted.parts[0], now.parts[0]
    count = one.count or (0 if one.targets else old.count)
    part = replace(one, unit=one.unit or old.unit, count=count, pool=one.pool or old.pool)
    return Wanted((part,), wanted.object_size or now.object_size)


def describe(part: Part, kind: str) -> str:
    """``4 stripes of 1 MiB on OSTs 3, 5-7, pool fast, overstriped``."""
    if part.on_metadata_server:
        return "with the metadata"
    if part.count in (0, ALL):
        text = (
            "a stripe on each target"
            if part.count == ALL
            else "stripes as the file system has by default"
        )
    else:
        text = wording.plural(part.count, "stripe")
    text += f" of {wording.block(part.unit)}" if part.unit else ""
    if part.targets:
        text += (
            f" on {filesystems.of_kind(kind).target}{'s' if len(part.targets) > 1 else ''}"
            f" {_list(part.targets)}"
        )
    elif part.start >= 0 and part.start != ALL:
        text += f", the first on {filesystems.of_kind(kind).target} {part.start}"
    return (
        text
        + (f", pool {part.pool}" if part.pool else "")
        + (", overstriped" if part.overstriped else "")
    )


def _list(targets: Sequence[int]) -> str:
    return (
        ", ".join(map(str, targets))
        if len(targets) <= 16
        else f"{', '.join(map(str, targets[:16]))} and {len(targets) - 16} more"
    )


def end_text(end: int) -> str:
    """Where a part ends."""
    return "the end" if end == TO_THE_END else wording.block(end)


def parts_in_order(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts of which only the ends are known, each from the end of the one before."""
    out: list[Part] = []
    for part in parts:
        begin = out[-1].end if out else 0
        if part.end <= begin:
            raise ParioError(
                f"parts must end one after the other: {end_text(part.end)} does not lie behind"
                f" {end_text(begin)}"
            )
        if part.end != TO_THE_END and part.end % GRANULE:
            raise ParioError(
                f"a part ends at a multiple of {wording.block(GRANULE)}; {part.end} is none"
            )
        out.append(replace(part, begin=begin))
    if out and out[-1].end != TO_THE_END:
        raise ParioError("the last part must reach to the end: --part end:COUNT")
    return tuple(out)


def place_of(path: str | os.PathLike[str]) -> Path:
    """The path itself, or the directory where it would be made."""
    here = local_path(path)
    return here if here.exists() else here.absolute().parent
