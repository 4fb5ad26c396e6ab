"""Stripes of files and directories as values: query them, set them, and compare them with the
requested ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pario import filesystems, wording
from pario.errors import ParioError
from pario.paths import local_path

#: Stripe sizes are multiples of this many bytes on Lustre and Ceph.
GRANULE = 64 << 10
#: The stripe count that stands for all targets.
ALL = 0xFFFF
TO_THE_END = 2**64 - 1


@dataclass(frozen=True)
class Part:
    """A range of a file and its stripes. 0, -1 and empty values are unset: the directory's value
    applies, or any value will do."""

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
        """The arguments of the native core for this part."""
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
    """The requested stripes: one part, or, for composite files of Lustre, several consecutive parts
    up to the end."""

    parts: tuple[Part, ...] = (Part(),)
    object_size: int = 0  # of Ceph; 0: unchanged

    @property
    def key(self) -> str:
        """A text that equal requests, and no others, share."""
        return repr(([part.row for part in self.parts], self.object_size))


@dataclass(frozen=True)
class Stripes:
    """The stripes of a file, or of new files in a directory, as the file system reports them. No
    parts: it reports none, or has no stripes."""

    path: str
    kind: str  # of src/core/layout/layout.def
    directory: bool = False
    block: int = 0
    inherited: str = ""  # the directory above that defines them
    parts: tuple[Part, ...] = field(default=())
    object_size: int = 0

    @property
    def settable(self) -> bool:
        """True if pario can set the stripes of new files there."""
        return filesystems.of_kind(self.kind).settable


Row = tuple[int, int, int, int, int, str, bool, bool, list[int]]


def stripes_of(path: str | os.PathLike[str]) -> Stripes:
    """Query the file system for the stripes of a file or directory. Raises ParioError."""
    from pario import _native

    with _translate_errors():
        return _make_stripes(path, _native.stripes_of(os.fsencode(local_path(path))))


def set_stripes(path: str | os.PathLike[str], wanted: Wanted, mode: int = 0o666) -> Stripes:
    """Set the stripes of an empty file (created if missing), or of new files in a directory; return
    the resulting stripes. Raises ParioError."""
    from pario import _native

    with _translate_errors():
        return _make_stripes(
            path,
            _native.set_stripes(
                os.fsencode(local_path(path)),
                [part.row for part in wanted.parts],
                wanted.object_size,
                mode,
            ),
        )


def inherit_stripes(directory: str | os.PathLike[str]) -> Stripes:
    """Make a directory inherit the stripes of its parent again; return them."""
    from pario import _native

    with _translate_errors():
        _native.inherit_stripes(os.fsencode(local_path(directory)))
    return stripes_of(directory)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn errors of the native core, whose text is complete, into errors for the user."""
    try:
        yield
    except OSError as error:
        raise ParioError(str(error.strerror)) from error


def _make_stripes(
    path: str | os.PathLike[str], reported: tuple[str, bool, int, bytes, Sequence[Row], int]
) -> Stripes:
    kind, directory, block, inherited, rows, object_size = reported
    parts = tuple(Part(*row[:8], targets=tuple(row[8])) for row in rows)
    return Stripes(
        os.fspath(path), kind, directory, block, os.fsdecode(inherited), parts, object_size
    )


def differences(wanted: Wanted, got: Stripes) -> list[str]:
    """Describe the differences between the requested and the resulting stripes."""
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


def is_fulfilled(wanted: Wanted, got: Stripes) -> bool:
    """True if the stripes of a file fulfil the whole request already."""
    if differences(wanted, got):
        return False
    return not any(
        (one.overstriped and not other.overstriped) or one.count == ALL
        for one, other in zip(wanted.parts, got.parts, strict=True)
    )


def fill_unset(wanted: Wanted, now: Stripes) -> Wanted:
    """Fill the unset values of a request with those of the file; requests for composite files stay
    unchanged."""
    if len(wanted.parts) != 1 or len(now.parts) != 1:
        return wanted
    one, old = wanted.parts[0], now.parts[0]
    count = one.count or (0 if one.targets else old.count)
    part = replace(one, unit=one.unit or old.unit, count=count, pool=one.pool or old.pool)
    return Wanted((part,), wanted.object_size or now.object_size)


def describe(part: Part, kind: str) -> str:
    """Describe a part: ``4 stripes of 1 MiB on OSTs 3, 5-7, pool fast, overstriped``."""
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
    """Describe the end of a part."""
    return "the end" if end == TO_THE_END else wording.block(end)


def parts_in_order(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Set the begin of each part to the end of the part before it. Raises ParioError."""
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
    """The path itself, or the directory in which it would be created."""
    here = local_path(path)
    return here if here.exists() else here.absolute().parent
