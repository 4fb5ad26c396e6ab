"""The states of a disk that a crash may leave, from the recorded calls of a run.

A file system may write unsynchronised changes in any order, or not at all. The recorded calls
become events on objects (files, directories, links); a state is a subset of the events before the
crash, applied in order. Two models choose the subsets:

posix
    Only fsync makes changes durable: of a file its bytes, of a directory its names. Each other
    event is dropped or kept on its own; the last write may also be torn in half.
ordered
    Like ext4 with data=ordered and delayed allocation: names change in order, fsync of any file
    makes all earlier changes of names durable, and a file that replaces another is written before
    it is renamed (auto_da_alloc). Other unsynchronised bytes may be missing.

The method is that of ALICE (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014),
which explores the states that abstract persistence models allow for a recorded trace of calls.
CrashMonkey and ACE (Mohan et al., OSDI 2018) showed that one crash point and one reordered call
find most bugs. Writes through shared mappings are not recorded.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.tracing import Record

_O_CREAT, _O_TRUNC, _O_TMPFILE = os.O_CREAT, os.O_TRUNC, os.O_TMPFILE
_EXCHANGE = 2
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_NAMELESS = re.compile(r"/#(\d+)( \(deleted\))?$")
_ROOT = 0


@dataclass
class Object:
    """A file (bytes), a directory (objects by name) or a link (text).

    `written`: the last event that wrote the file, or -1.
    """

    content: bytearray | dict[str, int] | str
    mode: int
    mtime: int = 0
    written: int = -1


@dataclass
class Disk:
    """Objects by number; 0 is the root directory."""

    objects: dict[int, Object] = field(default_factory=dict)

    def names(self, directory: int) -> dict[str, int]:
        content = self.objects[directory].content
        assert isinstance(content, dict)
        return content

    def bytes_of(self, file: int) -> bytearray:
        content = self.objects[file].content
        assert isinstance(content, bytearray)
        return content


@dataclass(frozen=True)
class Event:
    """A change, or a sync. `objects`: the file of changed bytes, the directories of names."""

    kind: str  # "bytes", "names" or "sync"
    objects: tuple[int, ...]
    apply: Callable[[Disk], None] = lambda disk: None
    #: The file whose bytes the ordered model writes before this change of names.
    replaced_by: int | None = None
    #: Applies half of a write.
    torn: Callable[[Disk], None] | None = None


def read_disk(root: Path) -> tuple[Disk, dict[int, int]]:
    """Reads the contents of a directory tree; also maps inodes to objects."""
    disk, by_inode = Disk(), dict[int, int]()

    def add(path: Path) -> int:
        facts = path.lstat()
        number = len(disk.objects)
        by_inode[facts.st_ino] = number
        one = Object({}, stat.S_IMODE(facts.st_mode), facts.st_mtime_ns)
        disk.objects[number] = one
        if stat.S_ISLNK(facts.st_mode):
            one.content = str(path.readlink())
        elif stat.S_ISDIR(facts.st_mode):
            one.content = {entry.name: add(entry) for entry in sorted(path.iterdir())}
        else:
            one.content = bytearray(path.read_bytes())
        return number

    add(root)
    return disk, by_inode


class Interpreter:
    """Turns records into events. Tracks the disk as the program sees it, to resolve paths."""

    def __init__(self, root: Path, disk: Disk, by_inode: dict[int, int]) -> None:
        self._root = str(root)
        self._live = deepcopy(disk)
        self._by_inode = dict(by_inode)
        self._new = len(disk.objects)
        self.created: dict[int, Object] = {}

    def interpret(self, records: Sequence[Record]) -> Iterator[Event]:
        for record in records:
            for event in getattr(self, f"_{record.name}", lambda record: ())(record):
                event.apply(self._live)
                yield event

    def _place(self, path: str) -> tuple[int, str] | None:
        """Returns the directory's number and the name in it; None outside of the root."""
        if not path.startswith(f"{self._root}/"):
            return None
        *way, name = [part for part in path[len(self._root) :].split("/") if part not in ("", ".")]
        at = _ROOT
        for part in way:
            at = self._live.names(at)[part]
        return at, name

    def _find(self, path: str, inode: int) -> int | None:
        """Finds the object of a call by its path, or by inode if it has no name."""
        if nameless := _NAMELESS.search(path):
            return self._by_inode.get(int(nameless[1]))
        place = self._place(path)
        if place is None:
            return self._by_inode.get(inode)
        return self._live.names(place[0]).get(place[1])

    def _make(self, content: bytearray | dict[str, int] | str, inode: int, mode: int) -> int:
        number = self._new
        self._new += 1
        self.created[number] = Object(content, mode)
        self._live.objects[number] = deepcopy(self.created[number])
        self._by_inode[inode] = number
        return number

    def _set_name(self, path: str, number: int) -> Event:
        place = self._place(path)
        assert place is not None, path
        directory, name = place
        return Event(
            "names", (directory,), lambda disk: disk.names(directory).update({name: number})
        )

    def _open(self, record: Record) -> Iterator[Event]:
        flags = record.arguments[2]
        if flags & _O_TMPFILE == _O_TMPFILE:
            self._make(bytearray(), record.inode, 0o600)
        elif flags & _O_CREAT and record.before == 0:
            yield self._set_name(record.path, self._make(bytearray(), record.inode, 0o600))
        elif flags & _O_TRUNC and flags & os.O_ACCMODE:
            yield from self._resize(self._by_inode.get(record.inode), 0)

    def _mkdir(self, record: Record) -> Iterator[Event]:
        yield self._set_name(record.path, self._make({}, record.inode, 0o700))

    def _symlink(self, record: Record) -> Iterator[Event]:
        yield self._set_name(record.other, self._make(record.path, record.inode, 0o777))

    def _link(self, record: Record) -> Iterator[Event]:
        number = self._find(record.path, record.inode)
        if number is not None:
            yield self._set_name(record.other, number)

    def _unlink(self, record: Record) -> Iterator[Event]:
        place = self._place(record.path)
        if place:
            directory, name = place
            yield Event("names", (directory,), lambda disk: _forget(disk, directory, name))

    def _rename(self, record: Record) -> Iterator[Event]:
        source, target = self._place(record.path), self._place(record.other)
        number, old = self._find(record.path, 0), self._find(record.other, 0)
        if source is None or target is None or number is None:
            return
        back = old if record.arguments[4] == _EXCHANGE else None

        def apply(disk: Disk) -> None:
            if back is not None:
                disk.names(source[0])[source[1]] = back
            elif disk.names(source[0]).get(source[1]) == number:
                del disk.names(source[0])[source[1]]
            disk.names(target[0])[target[1]] = number

        replaced = number if old is not None else None
        yield Event("names", tuple({source[0], target[0]}), apply, replaced_by=replaced)

    def _write(self, record: Record) -> Iterator[Event]:
        number = self._by_inode.get(record.inode)
        if number is not None and record.result > 0:
            data = record.data[: record.result]
            half = data[: len(data) // 2]
            yield Event(
                "bytes",
                (number,),
                lambda disk: _put(disk, number, record.offset, data),
                torn=lambda disk: _put(disk, number, record.offset, half),
            )

    _pwrite = _writev = _pwritev = _copy = _write

    def _truncate(self, record: Record) -> Iterator[Event]:
        yield from self._resize(self._by_inode.get(record.inode), record.arguments[1])

    def _resize(self, number: int | None, size: int) -> Iterator[Event]:
        if number is not None:
            yield Event("bytes", (number,), lambda disk: _resize(disk, number, size))

    def _fallocate(self, record: Record) -> Iterator[Event]:
        _, mode, begin, length, *_ = record.arguments
        number = self._by_inode.get(record.inode)
        if number is None:
            return
        if mode & _PUNCH_HOLE:
            yield Event("bytes", (number,), lambda disk: _put_zeros(disk, number, begin, length))
        elif not mode & _KEEP_SIZE and len(self._live.bytes_of(number)) < begin + length:
            yield from self._resize(number, begin + length)

    def _fsync(self, record: Record) -> Iterator[Event]:
        number = self._by_inode.get(record.inode)
        if number is not None:
            yield Event("sync", (number,))


def _put(disk: Disk, file: int, offset: int, data: bytes) -> None:
    content = disk.bytes_of(file)
    content.extend(bytes(max(0, offset + len(data) - len(content))))
    content[offset : offset + len(data)] = data


def _put_zeros(disk: Disk, file: int, begin: int, length: int) -> None:
    end = min(begin + length, len(disk.bytes_of(file)))
    if end > begin:
        _put(disk, file, begin, bytes(end - begin))


def _resize(disk: Disk, file: int, size: int) -> None:
    content = disk.bytes_of(file)
    del content[size:]
    content.extend(bytes(size - len(content)))


def _forget(disk: Disk, directory: int, name: str) -> None:
    disk.names(directory).pop(name, None)


@dataclass(frozen=True)
class State:
    """A subset of the events before a crash. `torn`: a half-written event."""

    events: frozenset[int]
    at: int  # events before the crash
    torn: int | None = None


def list_states(events: Sequence[Event]) -> Iterator[State]:
    """Yields all distinct states of both models."""
    seen = set()
    for at in range(len(events) + 1):
        for state in (*_posix_states(events, at), *_ordered_states(events, at)):
            key = state.events, state.torn, at == len(events)
            if key not in seen:
                seen.add(key)
                yield state


def _changes(events: Sequence[Event], at: int, kind: str = "") -> list[int]:
    return [i for i in range(at) if events[i].kind in ((kind,) if kind else ("bytes", "names"))]


def find_durable(events: Sequence[Event], at: int) -> set[int]:
    """Finds the events that an fsync before `at` makes durable, in the posix model."""
    durable: set[int] = set()
    for number, event in enumerate(events[:at]):
        if event.kind == "sync":
            durable.update(
                i for i in _changes(events, number) if set(events[i].objects) & set(event.objects)
            )
    return durable


def _posix_states(events: Sequence[Event], at: int) -> Iterator[State]:
    durable, every = find_durable(events, at), set(_changes(events, at))
    names, data = set(_changes(events, at, "names")), set(_changes(events, at, "bytes"))
    for chosen in (every, durable, durable | names, durable | data):
        yield State(frozenset(chosen), at)
    for number in sorted(every - durable):
        yield State(frozenset(every - {number}), at)
        yield State(frozenset(durable | {number}), at)
        if events[number].torn:
            yield State(frozenset(every - {number}), at, torn=number)


def _ordered_states(events: Sequence[Event], at: int) -> Iterator[State]:
    names, data = _changes(events, at, "names"), _changes(events, at, "bytes")
    last_sync = max((i for i in range(at) if events[i].kind == "sync"), default=-1)
    synced = {i for i in find_durable(events, at) if events[i].kind == "bytes"}
    first = sum(i < last_sync for i in names)
    for count in range(first, len(names) + 1):
        kept = set(names[:count])
        flushed = {
            i for i in data for j in kept if i < j and events[j].replaced_by == events[i].objects[0]
        }
        yield State(frozenset(kept | synced | flushed), at)
        yield State(frozenset(kept | set(data)), at)


def apply_state(
    disk: Disk, created: dict[int, Object], events: Sequence[Event], state: State
) -> Disk:
    """Returns the disk after a crash."""
    after = Disk(deepcopy(disk.objects) | deepcopy(created))
    for number in range(state.at):
        event = events[number]
        if number == state.torn and event.torn:
            event.torn(after)
        elif number in state.events:
            event.apply(after)
        if number in state.events and event.kind == "bytes":
            after.objects[event.objects[0]].written = number
    return after


def write_disk(disk: Disk, root: Path) -> None:
    """Writes a disk's files beneath a new directory; the order of writes sets their mtimes."""
    newest = max(one.mtime for one in disk.objects.values())
    _write_object(disk, _ROOT, root, newest)


def _write_object(disk: Disk, number: int, path: Path, newest: int) -> None:
    one = disk.objects[number]
    if isinstance(one.content, str):
        path.symlink_to(one.content)
        return
    if isinstance(one.content, dict):
        path.mkdir()
        for name, inner in one.content.items():
            _write_object(disk, inner, path / name, newest)
    elif not path.exists():
        path.write_bytes(one.content)
    path.chmod(one.mode)
    time = one.mtime or newest + 1
    if one.written >= 0:
        time = newest + (one.written + 1) * 1_000_000
    os.utime(path, ns=(time, time))
