"""Assigns calls to open files: events name files, but not descriptors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.prove.replay.verbs import AT_OFFSET, CLOSING, ON_PATHS, OPENING, numbers

Mask = NDArray[np.bool_]


@dataclass
class Calls:
    """The calls to play, in order of time: their verbs, a number for process and file, the layer,
    offsets and lengths."""

    verb: NDArray[Any]
    file: NDArray[Any]
    stdio: Mask
    offset: NDArray[Any]
    length: NDArray[Any]


@dataclass
class Assignment:
    """The result of :func:`assign`. ``attach``: calls whose slot gets a descriptor, or a stream,
    before them;
    ``source``: the slots that dup and fdopen copy; ``closed``: calls, and a slot that is closed
    before each of them."""

    slot: NDArray[Any]
    source: NDArray[Any]
    verb: NDArray[Any]
    attach: list[int] = field(default_factory=list)
    closed: list[tuple[int, int]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    count: int = 0


def assign(calls: Calls) -> Assignment:
    """Assign a slot to each call. A file with one open descriptor at a time has one slot; else a
    call belongs to the descriptor whose position is the call's offset."""
    size = len(calls.verb)
    found = Assignment(np.zeros(size, np.int64), np.zeros(size, np.int64), calls.verb.copy())
    key = calls.file * 2 + calls.stdio
    numbers, group = np.unique(key, return_inverse=True)
    plain = _plain(calls, group, len(numbers))
    found.slot[:] = group
    found.count = len(numbers)
    both = np.flatnonzero(~plain[group])
    for members in _by_file(calls.file[both], both):
        _Walk(calls, found, members).walk()
    return found


def _plain(calls: Calls, group: NDArray[Any], groups: int) -> Mask:
    """The mask of groups whose calls all lie between an open and its close, and whose file is used
    through one layer."""
    order = np.argsort(group, kind="stable")
    verb = calls.verb[order]
    opening, closing = _among(verb, {"open", "fopen"}), _among(verb, CLOSING)
    level = np.cumsum(opening.astype(np.int64) - closing)
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    before = np.append(0, level)[starts]
    level -= np.repeat(before, np.diff(np.append(starts, len(order))))
    needs = ~_among(verb, ON_PATHS | CLOSING)
    wrong = (level > 1) | (level < 0) | (needs & (level != 1)) | _among(verb, {"dup", "fdopen"})
    bad = np.bincount(group[order][wrong], minlength=groups) > 0
    files = np.zeros(groups, np.int64)
    files[group] = calls.file
    return ~np.isin(files, files[bad])


def _among(verb: NDArray[Any], names: Iterable[str]) -> Mask:
    """The mask of the verbs with one of the names."""
    known = numbers()
    return np.isin(verb, [known[name] for name in names])


def _by_file(files: NDArray[Any], members: NDArray[Any]) -> Iterator[NDArray[Any]]:
    order = np.argsort(files, kind="stable")
    cuts = np.flatnonzero(np.diff(files[order])) + 1
    return (part for part in np.split(members[order], cuts) if len(part))


#: The most descriptors of one file that a process is expected to have open.
_MOST_OPEN = 256
#: Verbs that a descriptor with an access mode does not permit.
_FORBIDDEN = {
    os.O_RDONLY: frozenset(
        ("write", "pwrite", "fwrite", "fprintf", "fputc", "ftruncate", "posix_fallocate")
    ),
    os.O_WRONLY: frozenset(("read", "pread", "fread", "fgetc")),
}


@dataclass(eq=False)
class _Open:
    slot: int
    stdio: bool
    position: int
    attached: bool = False
    flags: int = os.O_RDWR

    def permits(self, verb: str) -> bool:
        """False if the file was opened only to be read, or written, and the verb does the other."""
        return verb not in _FORBIDDEN.get(self.flags & os.O_ACCMODE, ())


class _Walk:
    """Assigns the calls of one process on one file, one after the other."""

    def __init__(self, calls: Calls, found: Assignment, members: NDArray[Any]) -> None:
        self._calls, self._found, self._members = calls, found, members
        self._names = list(numbers())
        self._open: list[_Open] = []
        self._free: list[int] = []

    def walk(self) -> None:
        for call in map(int, self._members):
            self._one(call, self._names[self._calls.verb[call]], bool(self._calls.stdio[call]))

    def _one(self, call: int, verb: str, stdio: bool) -> None:
        if verb in ON_PATHS:
            return
        if verb in OPENING:
            self._opening(call, verb, stdio)
            return
        offset, length = int(self._calls.offset[call]), int(self._calls.length[call])
        chosen = self._choose(stdio, offset, verb) or self._attach(call, stdio, verb)
        if chosen is None:
            self._found.dropped.append(call)
            return
        self._found.slot[call] = chosen.slot
        if verb in CLOSING:
            self._open.remove(chosen)
            self._free.append(chosen.slot)
            return
        if verb in AT_OFFSET and (chosen.attached or chosen.position != offset):
            self._found.verb[call] = numbers()[AT_OFFSET[verb]]
        elif verb in AT_OFFSET or verb in ("lseek", "fseeko"):
            chosen.position = offset + (length if verb in AT_OFFSET else 0)
        self._open.remove(chosen)  # the last used one is last
        self._open.append(chosen)

    def _opening(self, call: int, verb: str, stdio: bool) -> None:
        source = self._choose(False, -1, verb) if verb in ("dup", "fdopen") else None
        if source is None and verb in ("dup", "fdopen"):
            self._found.dropped.append(call)
            return
        new = _Open(
            self._new(),
            stdio,
            source.position if source else 0,
            source.attached if source else False,
            source.flags if source else int(self._calls.offset[call]),
        )
        self._found.slot[call] = new.slot
        if source:
            self._found.source[call] = source.slot
            if verb == "fdopen":
                self._open.remove(source)
        self._open.append(new)
        if len(self._open) > _MOST_OPEN:
            self._close_oldest(call)

    def _close_oldest(self, call: int) -> None:
        """Close the descriptor that was not used for the longest time: dup2() closes descriptors
        without a call of its own, as in redirections of shells."""
        oldest = next((one for one in self._open if not one.stdio), None)
        if oldest:
            self._open.remove(oldest)
            self._found.closed.append((call, oldest.slot))

    def _choose(self, stdio: bool, offset: int, verb: str) -> _Open | None:
        """The open file whose position is the offset, else the last used one; if possible one that
        permits the verb."""
        last: dict[bool, _Open] = {}  # by permission, the best of each
        for one in reversed(self._open):
            if one.stdio != stdio:
                continue
            allowed = one.permits(verb)
            if allowed and one.position == offset:
                return one
            if allowed not in last or (last[allowed].position != offset == one.position):
                last[allowed] = one
        return last.get(True) or last.get(False)

    def _attach(self, call: int, stdio: bool, verb: str) -> _Open | None:
        """Add a descriptor of unknown origin (from the parent, from a message, or from a log
        without opens), or a stream: standard output, redirected to the file."""
        if verb in CLOSING:
            return None
        new = _Open(self._new(), stdio, 0, attached=True)
        self._found.attach.append(call)
        self._open.append(new)
        return new

    def _new(self) -> int:
        if self._free:
            return self._free.pop()
        self._found.count += 1
        return self._found.count - 1
