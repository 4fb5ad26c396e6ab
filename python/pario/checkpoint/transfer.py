"""Moves boxes of arrays between memory and files by reads and writes of one process. Also opens,
flushes and checks the space for files."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import numpy as np

from pario import _native
from pario.checkpoint.checksum import Tally
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, pieces, place_of, run_count, runs, strides
from pario.checkpoint.lazy import Lazy
from pario.checkpoint.types import Array
from pario.copying import read_available, write_all
from pario.errors import name_errors
from pario.interrupts import check
from pario.paths import resolve
from pario.progress import Show, silent

#: Most bytes read between two checks for an interrupt.
_MOST_BYTES = 1 << 29
#: Bytes written at a time: they stay in the processor's cache after their checksum.
_AT_HAND = 1 << 20
#: Most pieces of memory in one call (IOV_MAX).
_MOST_PIECES = 1024
#: Bytes flushed at a time, by SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE and _WAIT_AFTER together.
_FLUSHED, _WAIT_WRITE_WAIT = 1 << 28, 7
#: Errors of sync_file_range for other files than those of disks, or by refusal of the system. Any
#: other error concerns the written bytes and is reported only once.
_CANNOT_FLUSH = (
    errno.ESPIPE,
    errno.EINVAL,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
    errno.EINTR,
)
_ZERO = np.zeros(1, np.int64)
#: Average bytes of a run from which on each rank writes its own runs.
_LARGE = 1 << 16
#: Seconds that ``lfs quota`` may take.
_LFS_PATIENCE = 10
_KIBIBYTE = 1024


@dataclass(frozen=True)
class Move:
    """The transfer of ``data``, the elements of ``box``, to or from a file.

    The file holds ``stored`` in C order from offset ``place`` on.
    """

    place: int
    stored: Box
    box: Box
    data: Array
    tally: Tally | None = None  # of a larger box; counts the written elements

    def load(self) -> Move:
        """The move with its elements in memory."""
        return replace(self, data=self.data.read()) if isinstance(self.data, Lazy) else self

    def parts(self, most: int) -> Iterator[Move]:
        """Divides the move into moves of at most ``most`` bytes."""
        if self.data.nbytes <= most:
            yield self
            return
        for box in pieces(self.box, max(1, most // self.data.dtype.itemsize)):
            yield replace(self, box=box, data=self.data[box.within(self.box)])

    @property
    def single(self) -> bool:
        """True if it is one run of bytes, the frequent case where there are many moves."""
        return self.box.shape[1:] == self.stored.shape[1:] and self.data.flags.c_contiguous

    @property
    def begin(self) -> int:
        """The offset of its first byte in the file."""
        return self.place + place_of(self.box, self.stored, self.data.dtype.itemsize)

    def runs(self) -> tuple[Array, Array, int]:
        """Offsets of the runs in the file and in memory, and the bytes of each run."""
        if self.single:
            return np.array([self.begin]), _ZERO, self.data.nbytes
        in_file, in_memory, length = runs(
            self.box, self.stored, self.data.dtype.itemsize, self.data.strides
        )
        return in_file + self.place, in_memory, length


@dataclass(frozen=True)
class Extent:
    """A box of an array stored in C order from offset ``place`` on in a file of a checkpoint.

    ``file``: a name beside the checkpoint's own file; empty for that file.
    """

    file: str
    place: int
    box: Box

    def move(self, box: Box, data: Array, tally: Tally | None = None) -> Move:
        """The move between this extent and ``data``, the elements of a box within it."""
        return Move(self.place, self.box, box, data, tally)


def address(data: Array) -> int:
    """The address of the first element."""
    return int(data.__array_interface__["data"][0])


def _small_parts(moves: Iterable[Move], most: int = _MOST_BYTES) -> Iterator[Move]:
    return (part for move in moves if move.box.size for part in move.load().parts(most))


def are_large(parts: Iterable[tuple[Box, Box, int]]) -> bool:
    """True if a rank's boxes lie in the file in runs so large that joining them with those of other
    ranks gains nothing. ``parts``: stored box, box, and bytes of an element."""
    count = size = 0
    for stored, box, element in parts:
        if box.size:
            count += run_count(box, stored, element, strides(box.shape, element))
            size += box.size * element
    return count * _LARGE <= size


def write(path: str, moves: Sequence[Move], *, durable: bool, show: Show = silent) -> None:
    """Writes moves to a file, which may be new; ``durable``: flushes it.

    Raises CheckpointError that names the file.
    """
    size, done = _bytes(moves), 0
    with open_file(path, os.O_WRONLY | os.O_CREAT) as file:
        for at, together in _batches(_small_parts(moves, _AT_HAND)):
            check()
            _write_together(file, together, at)
            done += sum(map(len, together))
            show(done, size)
        if durable:
            flush(file, show)


def read(path: str, moves: Sequence[Move], *, opened: int = -1, show: Show = silent) -> None:
    """Reads a file into the arrays of moves. Raises CheckpointError that names the file.

    ``opened``: as for :func:`open_file`.
    """
    size, done = _bytes(moves), 0
    with open_file(path, os.O_RDONLY, opened) as file:
        for move in _small_parts(moves):
            check()
            direct = move.data.flags.c_contiguous
            data = move.data if direct else np.empty(move.data.shape, move.data.dtype)
            for at, piece in _pieces(Move(move.place, move.stored, move.box, data)):
                read_all(file, piece, at, path)
            if not direct:
                move.data[...] = data
            done += data.nbytes
            show(done, size)


def flush(file: int, show: Show = silent) -> None:
    """Flushes a file to the disk; a large one in steps, with progress for waiting ranks."""
    size = os.fstat(file).st_size
    for begin in range(0, size, _FLUSHED) if size > _FLUSHED else ():
        if not _flush_range(file, begin, _FLUSHED):
            break
        show(min(begin + _FLUSHED, size), size)
    os.fsync(file)


def _flush_range(file: int, begin: int, size: int) -> bool:
    """False if ranges cannot be flushed. Raises OSError for errors of the disk or a server, which
    ``fsync`` would not report again."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is None:
        return False
    arguments = ctypes.c_int64(begin), ctypes.c_int64(size), ctypes.c_uint(_WAIT_WRITE_WAIT)
    if call(ctypes.c_int(file), *arguments) == 0:
        return True
    code = ctypes.get_errno()
    if code not in _CANNOT_FLUSH:
        raise OSError(code, os.strerror(code))
    return False


@contextmanager
def open_file(path: str, flags: int, opened: int = -1) -> Iterator[int]:
    """Opens a file. OSErrors of the body and of closing become CheckpointErrors that name it.

    ``opened``: a descriptor of the file, which is used and left open; -1: there is none.
    """
    with name_errors(path, CheckpointError):
        file = os.open(path, flags, 0o666) if opened < 0 else opened
        try:
            yield file
        finally:
            if opened < 0:
                os.close(file)


def _pieces(move: Move) -> Iterator[tuple[int, memoryview]]:
    """Runs of bytes and their offsets in the file."""
    data = move.data if move.data.flags.c_contiguous else move.data.copy(order="C")
    content = data.reshape(-1).view(np.uint8).data
    in_file, in_memory, length = Move(move.place, move.stored, move.box, data).runs()
    for at, place in zip(in_file.tolist(), in_memory.tolist(), strict=True):
        yield at, content[place : place + length]


def _batches(moves: Iterable[Move]) -> Iterator[tuple[int, list[memoryview]]]:
    """Joins runs that are adjacent in the file, as those of small arrays are."""
    begin, end, together = 0, -1, list[memoryview]()
    for move in moves:
        if move.tally is not None:
            move.tally.add(move.data, move.box)
        for at, piece in _pieces(move):
            # limits the bytes of a batch, because pieces may be copies
            if at != end or len(together) == _MOST_PIECES or end - begin >= _AT_HAND:
                if together:
                    yield begin, together
                begin, together = at, []
            together.append(piece)
            end = at + len(piece)
    if together:
        yield begin, together


def _write_together(file: int, together: list[memoryview], at: int) -> None:
    done = os.pwritev(file, together, at)
    for piece in together:
        if done < len(piece):
            write_all(file, at + max(done, 0), piece[max(done, 0) :])
        done -= len(piece)
        at += len(piece)


def _bytes(moves: Sequence[Move]) -> int:
    return sum(move.data.nbytes for move in moves)


def read_all(file: int, into: memoryview, at: int, path: str) -> None:
    """Fills a buffer. Raises CheckpointError where the file ends before."""
    done = read_available(file, at, into)
    if done < len(into):
        raise CheckpointError(f"{path} ends at byte {at + done}, before the end of an array")


def check_space(path: str, needed: int) -> None:
    """Raises CheckpointError if the file system, or a quota, lacks space for ``needed`` bytes."""
    directory = os.path.dirname(path) or "."  # noqa: PTH120
    try:
        facts = os.statvfs(directory)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    limits = [("", facts.f_bavail * facts.f_frsize), *_quotas(directory)]
    owner, free = min(limits, key=lambda limit: limit[1])
    if free < needed:
        owner = owner or _directory_with_quota(directory, facts)
        limit = f" within the quota of {owner}" if owner else ""
        raise CheckpointError(
            f"{path}: no space: {needed} bytes are needed, {free} are free{limit}"
        )


def _directory_with_quota(directory: str, facts: os.statvfs_result) -> str:
    """Returns "a directory" if it has less space than its file system, else an empty text. XFS and
    ext4 show the quotas of directories (projects) in this way alone."""
    mount = resolve(directory)
    while not mount.is_mount():
        mount = mount.parent
    with suppress(OSError):
        if facts.f_blocks < os.statvfs(mount).f_blocks:
            return "a directory"
    return ""


def _quotas(directory: str) -> Iterator[tuple[str, int]]:
    """The owner and the free bytes of each quota that limits this process."""
    rows = _native.quotas_of(os.fsencode(directory))
    if os.geteuid() == 0:  # it is limited by quotas of directories alone
        rows = [row for row in rows if row[0].startswith("directory ")]
    else:
        rows += _lustre_quotas(directory)
    for owner, used, limit, _, _ in rows:
        if limit:
            yield owner, max(0, limit - used)


def _lustre_quotas(directory: str) -> Iterator[tuple[str, int, int, int, int]]:
    """Quotas of the user and the group on Lustre, which the kernel does not know."""
    program = shutil.which("lfs")
    if program is None or _native.stripes_of(os.fsencode(directory))[0] != "lustre":
        return
    for option, number, owner in (("-u", os.geteuid(), "user"), ("-g", os.getegid(), "group")):
        with suppress(OSError, subprocess.SubprocessError, ValueError):
            command = [program, "quota", "-q", option, str(number), directory]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LFS_PATIENCE, check=True
            )
            used, limit = parse_lfs_quota(done.stdout)
            yield f"{owner} {number}", used, limit, 0, 0


def parse_lfs_quota(text: str) -> tuple[int, int]:
    """Used bytes and the hard limit (0: none) in the output of ``lfs quota -q``.

    A row is: file system, kbytes, quota, limit, grace, files, quota, limit, grace. A long name of
    the file system stands on a line of its own; ``*`` marks a number above its quota.
    """
    words = [word.rstrip("*") for word in text.split()]
    used, _, limit = (int(word) * _KIBIBYTE for word in words[1:4])
    return used, limit
