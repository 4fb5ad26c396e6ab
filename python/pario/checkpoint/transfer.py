"""Boxes of arrays between memory and file: by collective MPI-IO, or by plain reads and writes of one process."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from pario.checkpoint.checksum import Tally
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, pieces, place_of, run_count, runs, strides
from pario.checkpoint.types import Array
from pario.interrupts import check, deferred, kept
from pario.progress import Show, silent

#: Bytes that one call moves: some MPIs count bytes by 32 bits.
_MOST_BYTES = 1 << 29
#: Bytes that are written at a time: so many stay in the processor's cache after their checksum.
_AT_HAND = 1 << 20
#: A box of more runs goes by itself, described by its shape; others go together, described run by run.
_MOST_RUNS = 4096
#: Pieces of memory that one call takes (IOV_MAX).
_MOST_PIECES = 1024
#: Bytes of a file that are brought to the disk at a time, and how: all of SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE, _WAIT_AFTER.
_FLUSHED, _WAIT_WRITE_WAIT = 1 << 28, 7
#: It is no file of a disk, or the system does not let us: every other error is one of what was written, and is told once.
_CANNOT_FLUSH = (errno.ESPIPE, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EINTR)
_ZERO = np.zeros(1, np.int64)
#: Bytes of a run, on average, from which on each rank writes its own.
_LARGE = 1 << 16


@dataclass(frozen=True)
class Move:
    """Bytes of ``data`` that belong to ``box``, in a file in which ``stored`` lies in order from ``place`` on."""

    place: int
    stored: Box
    box: Box
    data: Array
    tally: Tally | None = None  # of a larger box; takes what is written

    def parts(self, most: int) -> Iterator[Move]:
        """The same in moves of so many bytes at most."""
        if self.data.nbytes <= most:
            yield self
            return
        for box in pieces(self.box, max(1, most // self.data.dtype.itemsize)):
            yield replace(self, box=box, data=self.data[box.within(self.box)])

    @property
    def single(self) -> bool:
        """Whether it is one run, as most are where there are many."""
        return self.box.shape[1:] == self.stored.shape[1:] and self.data.flags.c_contiguous

    @property
    def begin(self) -> int:
        """Where its first byte is in the file."""
        return self.place + place_of(self.box, self.stored, self.data.dtype.itemsize)

    @property
    def shaped(self) -> bool:
        """Whether it goes by itself."""
        return not self.single and run_count(self.box, self.stored, self.data.dtype.itemsize, self.data.strides) > _MOST_RUNS

    def runs(self) -> tuple[Array, Array, int]:
        """Places in the file, places in memory from the first element on, and the bytes of each run."""
        if self.single:
            return np.array([self.begin]), _ZERO, self.data.nbytes
        in_file, in_memory, length = runs(self.box, self.stored, self.data.dtype.itemsize, self.data.strides)
        return in_file + self.place, in_memory, length


@dataclass(frozen=True)
class Extent:
    """A box of an array whose bytes lie in order from ``place`` on, in a file of a checkpoint: beside its own, which has no name here."""

    file: str
    place: int
    box: Box

    def move(self, box: Box, data: Array, tally: Tally | None = None) -> Move:
        """Between ``data``, which is a box within, and its place."""
        return Move(self.place, self.box, box, data, tally)


def address(data: Array) -> int:
    """Of its first element."""
    return int(data.__array_interface__["data"][0])


def _small_parts(moves: Sequence[Move], most: int = _MOST_BYTES) -> list[Move]:
    return [part for move in moves if move.box.size for part in move.parts(most)]


def are_large(parts: Iterable[tuple[Box, Box, int]]) -> bool:
    """Whether a rank's boxes (what is stored, box, bytes of an element) lie in the file in such large runs that joining them with those of
    other ranks gains nothing.
    """
    count = size = 0
    for stored, box, element in parts:
        if box.size:
            count += run_count(box, stored, element, strides(box.shape, element))
            size += box.size * element
    return count * _LARGE <= size


@cache
def is_ours() -> bool:
    """Whether MPI-IO is pario's own."""
    return os.environ.get("PARIO_MPIIO") in ("1", "yes", "on", "true")


@cache
def _takes_types() -> bool:
    """Whether files of this MPI take what mpi4py describes. ROMIO of MPICH 4.0 ends the program (pmodels/mpich#6121); pario's own does."""
    from mpi4py import MPI

    old = MPI.Get_library_version().split()[:3]
    return is_ours() or not (old[0] == "MPICH" and old[-1].startswith("4.0"))


def write(comm: Any, path: str, moves: Sequence[Move], *, durable: bool, show: Show = silent) -> None:
    """Writes to a file; ``durable``: it is on the disk then. Collective over ``comm``, which may be None: then the file may be new."""
    if comm is None or not _takes_types():
        _write_alone(path, _small_parts(moves, _AT_HAND), durable=durable, show=show)
    else:
        _by_mpi(comm, path, _small_parts(moves), writing=True, durable=durable, show=show)


def read(comm: Any, path: str, moves: Sequence[Move], *, show: Show = silent) -> None:
    """Reads into the moves' arrays. Collective over ``comm``, which may be None."""
    if comm is None or not _takes_types():
        _read_alone(path, _small_parts(moves), show)
    else:
        _by_mpi(comm, path, _small_parts(moves), writing=False, durable=False, show=show)


def _write_alone(path: str, moves: Sequence[Move], *, durable: bool, show: Show) -> None:
    size, done = _bytes(moves), 0
    with opened(path, os.O_WRONLY | os.O_CREAT) as file:
        for at, together in _batches(moves):
            check()
            _write_together(file, together, at)
            done += sum(map(len, together))
            show(done, size)
        if durable:
            flush(file, show)


def flush(file: int, show: Show = silent) -> None:
    """All of a file is on the disk then. A large one is brought there in steps, each of which is shown to those who wait for it."""
    size = os.fstat(file).st_size
    for begin in range(0, size, _FLUSHED) if size > _FLUSHED else ():
        if not _flush_range(file, begin, _FLUSHED):
            break
        show(min(begin + _FLUSHED, size), size)
    os.fsync(file)


def _flush_range(file: int, begin: int, size: int) -> bool:
    """Whether it can be done. Other errors are those of the disk, or of a server, which ``fsync`` would not tell again."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is None:
        return False
    if call(ctypes.c_int(file), ctypes.c_int64(begin), ctypes.c_int64(size), ctypes.c_uint(_WAIT_WRITE_WAIT)) == 0:
        return True
    code = ctypes.get_errno()
    if code not in _CANNOT_FLUSH:
        raise OSError(code, os.strerror(code))
    return False


@contextmanager
def opened(path: str, flags: int) -> Iterator[int]:
    """A descriptor; errors become such that name the file."""
    try:
        file = os.open(path, flags, 0o666)
        try:
            yield file
        finally:
            os.close(file)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error


def _pieces(move: Move) -> Iterator[tuple[int, memoryview]]:
    """Runs of bytes and where they go."""
    data = move.data if move.data.flags.c_contiguous else move.data.copy(order="C")
    content = data.reshape(-1).view(np.uint8).data
    in_file, in_memory, length = Move(move.place, move.stored, move.box, data).runs()
    for at, place in zip(in_file.tolist(), in_memory.tolist(), strict=True):
        yield at, content[place : place + length]


def _batches(moves: Sequence[Move]) -> Iterator[tuple[int, list[memoryview]]]:
    """Runs that lie side by side in the file, as those of small arrays do, together."""
    begin, end, together = 0, -1, list[memoryview]()
    for move in moves:
        if move.tally is not None:
            move.tally.add(move.data, move.box)
        for at, piece in _pieces(move):
            if at != end or len(together) == _MOST_PIECES or end - begin >= _AT_HAND:  # pieces may be copies
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
            write_all(file, piece[max(done, 0) :], at + max(done, 0))
        done -= len(piece)
        at += len(piece)


def write_all(file: int, content: memoryview | bytes, at: int) -> None:
    """All bytes, whatever single calls take."""
    view = memoryview(content)
    while view:
        done = os.pwrite(file, view, at)
        view, at = view[done:], at + done


def _bytes(moves: Sequence[Move]) -> int:
    return sum(move.data.nbytes for move in moves)


def _read_alone(path: str, moves: Sequence[Move], show: Show) -> None:
    size, done = _bytes(moves), 0
    with opened(path, os.O_RDONLY) as file:
        for move in moves:
            check()
            direct = move.data.flags.c_contiguous
            data = move.data if direct else np.empty(move.data.shape, move.data.dtype)
            for at, piece in _pieces(Move(move.place, move.stored, move.box, data)):
                read_all(file, piece, at, path)
            if not direct:
                move.data[...] = data
            done += data.nbytes
            show(done, size)


def read_all(file: int, into: memoryview, at: int, path: str) -> None:
    """Fills ``into``. Raises CheckpointError where the file ends before."""
    while into:
        done = os.preadv(file, [into], at)
        if done == 0:
            raise CheckpointError(f"{path} ends at byte {at}, before the end of an array")
        into, at = into[done:], at + done


def _by_mpi(comm: Any, path: str, moves: Sequence[Move], *, writing: bool, durable: bool, show: Show) -> None:
    """Every rank makes the same calls, whatever fails: a call that one rank leaves out is one that the others wait in."""
    from mpi4py import MPI

    failed: list[BaseException] = []
    with deferred(failed):
        calls = _calls(comm, moves)
        file = _opened_by_all(MPI, comm, path, MPI.MODE_WRONLY if writing else MPI.MODE_RDONLY)
        size, done = _bytes(moves), 0
        for call in calls:
            _transfer(MPI, file, call, failed, writing=writing)
            done += _bytes(call)
            show(done, size)
        if durable:
            _attempt(failed, file.Sync)
        _attempt(failed, file.Close)
    if failed and not isinstance(failed[0], Exception):
        raise failed[0]
    if failed:
        raise CheckpointError(f"{path}: {_on_one_line(failed[0])}") from failed[0]


def _opened_by_all(mpi: Any, comm: Any, path: str, mode: int) -> Any:
    """A file that every rank has opened; where one cannot, an error on all of them. Some MPIs tell it to that one alone."""
    info = mpi.Info.Create()
    info.Set("romio_no_indep_rw", "true")  # only ranks that read and write for others need open the file
    file, said = None, ""
    try:
        file = mpi.File.Open(comm, path, mode, info)
    except Exception as error:
        said = _on_one_line(error)
    info.Free()
    for rank, text in enumerate(comm.allgather(said)):
        if text:  # where it is open it stays open: closing is a call of all ranks
            raise CheckpointError(f"{path}: rank {rank} cannot open it: {text}")
    return file


def _on_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _attempt(failed: list[BaseException], call: Any, *arguments: Any) -> None:
    with kept(failed):
        call(*arguments)


def _calls(comm: Any, moves: Sequence[Move]) -> list[list[Move]]:
    """What goes with which call; as many calls on all ranks."""
    shaped = [move.shaped for move in moves]
    alone = [[move] for move, by_itself in zip(moves, shaped, strict=True) if by_itself]
    rest = [move for move, by_itself in zip(moves, shaped, strict=True) if not by_itself]
    groups: list[list[Move]] = []
    room = 0
    for move in sorted(rest, key=lambda move: move.place):
        if move.data.nbytes > room:
            groups.append([])
            room = _MOST_BYTES
        groups[-1].append(move)
        room -= move.data.nbytes
    counts = comm.allgather((len(alone), len(groups)))
    most = [max(count) for count in zip(*counts, strict=True)]
    return [
        *alone,
        *([] for _ in range(most[0] - len(alone))),
        *groups,
        *([] for _ in range(most[1] - len(groups))),
    ]


def _transfer(mpi: Any, file: Any, moves: Sequence[Move], failed: list[BaseException], *, writing: bool) -> None:
    if failed:  # nothing more is moved
        moves = []
    try:
        in_file, in_memory = _described(mpi, moves)
    except Exception as error:
        failed.append(error)
        moves = []
        in_file, in_memory = _described(mpi, moves)
    message = (mpi.BOTTOM, 1 if moves else 0, in_memory)
    _attempt(failed, file.Set_view, 0, mpi.BYTE, in_file)
    _attempt(failed, file.Write_at_all if writing else file.Read_at_all, 0, message)
    in_file.Free()
    in_memory.Free()


def _described(mpi: Any, moves: Sequence[Move]) -> tuple[Any, Any]:
    """Types of moves in the file and in memory."""
    return _shaped(mpi, moves[0]) if moves and moves[0].shaped else _listed(mpi, moves)


def _shaped(mpi: Any, move: Move) -> tuple[Any, Any]:
    """Types of a box in the file and in memory, by its shape."""
    data, start = move.data, [mine - its for mine, its in zip(move.box.begin, move.stored.begin, strict=True)]
    element = mpi.BYTE.Create_contiguous(data.dtype.itemsize)
    part = element.Create_subarray(list(move.stored.shape), list(move.box.shape), start)
    in_file = part.Create_hindexed([1], [move.place]).Commit()
    nested = element.Dup()
    for length, stride in zip(reversed(data.shape), reversed(data.strides), strict=True):
        outer = nested.Create_hvector(length, 1, stride)
        nested.Free()
        nested = outer
    in_memory = nested.Create_hindexed([1], [address(data)]).Commit()
    for kind in (element, part, nested):
        kind.Free()
    return in_file, in_memory


def _listed(mpi: Any, moves: Sequence[Move]) -> tuple[Any, Any]:
    """Types of all runs of several boxes, in the order of the file."""
    if not moves:
        return mpi.BYTE.Create_contiguous(1).Commit(), mpi.BYTE.Create_contiguous(1).Commit()
    found = [(*move.runs(), address(move.data)) for move in moves]
    in_file = np.concatenate([places for places, _, _, _ in found])
    in_memory = np.concatenate([places + address for _, places, _, address in found])
    lengths = np.concatenate([np.full(len(places), length, np.int64) for places, _, length, _ in found])
    order = np.argsort(in_file, kind="stable")
    sizes = lengths[order].tolist()
    file_type, memory_type = (mpi.BYTE.Create_hindexed(sizes, places[order].tolist()).Commit() for places in (in_file, in_memory))
    return file_type, memory_type
