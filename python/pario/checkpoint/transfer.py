"""Moves boxes of arrays between memory and files: by plain reads and writes of one process, or by
collective MPI-IO. Also opens, flushes and checks the space for files."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from pario import _native
from pario.checkpoint.checksum import Tally
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Box, pieces, place_of, run_count, runs, strides
from pario.checkpoint.types import Array
from pario.interrupts import check, defer_interrupt, keep_error
from pario.progress import Show, silent

#: Most bytes of one call: some MPIs count bytes by 32 bits.
_MOST_BYTES = 1 << 29
#: Bytes written at a time: they stay in the processor's cache after their checksum.
_AT_HAND = 1 << 20
#: A box of more runs is described to MPI by its shape, in a call of its own; others run by run.
_MOST_RUNS = 4096
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

    @property
    def shaped(self) -> bool:
        """True if it needs an MPI call of its own."""
        return (
            not self.single
            and run_count(self.box, self.stored, self.data.dtype.itemsize, self.data.strides)
            > _MOST_RUNS
        )

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


def _small_parts(moves: Sequence[Move], most: int = _MOST_BYTES) -> list[Move]:
    return [part for move in moves if move.box.size for part in move.parts(most)]


def are_large(parts: Iterable[tuple[Box, Box, int]]) -> bool:
    """True if a rank's boxes lie in the file in runs so large that joining them with those of other
    ranks gains nothing. ``parts``: stored box, box, and bytes of an element."""
    count = size = 0
    for stored, box, element in parts:
        if box.size:
            count += run_count(box, stored, element, strides(box.shape, element))
            size += box.size * element
    return count * _LARGE <= size


@cache
def is_ours() -> bool:
    """True if MPI-IO is pario's own."""
    return os.environ.get("PARIO_MPIIO") in ("1", "yes", "on", "true")


@cache
def _supports_types() -> bool:
    """True if MPI-IO accepts the types that mpi4py makes. ROMIO of MPICH 4.0 ends the program
    (pmodels/mpich#6121); pario's own MPI-IO accepts them."""
    from mpi4py import MPI

    version = MPI.Get_library_version().split()[:3]
    return is_ours() or not (version[0] == "MPICH" and version[-1].startswith("4.0"))


def write(
    comm: Any, path: str, moves: Sequence[Move], *, durable: bool, show: Show = silent
) -> None:
    """Writes moves to a file; ``durable``: flushes it.

    Collective over ``comm``. With None, this process writes alone, and the file may be new. Raises
    CheckpointError that names the file.
    """
    if comm is None or not _supports_types():
        _write_alone(path, _small_parts(moves, _AT_HAND), durable=durable, show=show)
    else:
        _by_mpi(comm, path, _small_parts(moves), writing=True, durable=durable, show=show)


def read(comm: Any, path: str, moves: Sequence[Move], *, show: Show = silent) -> None:
    """Reads a file into the arrays of moves. Collective over ``comm``, which may be None. Raises
    CheckpointError that names the file."""
    if comm is None or not _supports_types():
        _read_alone(path, _small_parts(moves), show)
    else:
        _by_mpi(comm, path, _small_parts(moves), writing=False, durable=False, show=show)


def _write_alone(path: str, moves: Sequence[Move], *, durable: bool, show: Show) -> None:
    size, done = _bytes(moves), 0
    with open_file(path, os.O_WRONLY | os.O_CREAT) as file:
        for at, together in _batches(moves):
            check()
            _write_together(file, together, at)
            done += sum(map(len, together))
            show(done, size)
        if durable:
            flush(file, show)


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
def open_file(path: str, flags: int) -> Iterator[int]:
    """Opens a file. OSErrors of the body and of closing become CheckpointErrors that name it."""
    try:
        file = os.open(path, flags, 0o666)
        try:
            yield file
        finally:
            os.close(file)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error


def _pieces(move: Move) -> Iterator[tuple[int, memoryview]]:
    """Runs of bytes and their offsets in the file."""
    data = move.data if move.data.flags.c_contiguous else move.data.copy(order="C")
    content = data.reshape(-1).view(np.uint8).data
    in_file, in_memory, length = Move(move.place, move.stored, move.box, data).runs()
    for at, place in zip(in_file.tolist(), in_memory.tolist(), strict=True):
        yield at, content[place : place + length]


def _batches(moves: Sequence[Move]) -> Iterator[tuple[int, list[memoryview]]]:
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
            write_all(file, piece[max(done, 0) :], at + max(done, 0))
        done -= len(piece)
        at += len(piece)


def write_all(file: int, content: memoryview | bytes, at: int) -> None:
    """Writes all bytes, by as many calls as are needed."""
    view = memoryview(content)
    while view:
        done = os.pwrite(file, view, at)
        view, at = view[done:], at + done


def _bytes(moves: Sequence[Move]) -> int:
    return sum(move.data.nbytes for move in moves)


def _read_alone(path: str, moves: Sequence[Move], show: Show) -> None:
    size, done = _bytes(moves), 0
    with open_file(path, os.O_RDONLY) as file:
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
    """Fills a buffer. Raises CheckpointError where the file ends before."""
    while into:
        done = os.preadv(file, [into], at)
        if done == 0:
            raise CheckpointError(f"{path} ends at byte {at}, before the end of an array")
        into, at = into[done:], at + done


def _by_mpi(
    comm: Any, path: str, moves: Sequence[Move], *, writing: bool, durable: bool, show: Show
) -> None:
    """Moves by collective calls. Every rank makes all calls, even after an error, because other
    ranks would wait forever in a call that one rank omits."""
    from mpi4py import MPI

    failed: list[BaseException] = []
    with defer_interrupt(failed):
        calls = _calls(comm, moves)
        file = _open_by_all(MPI, comm, path, MPI.MODE_WRONLY if writing else MPI.MODE_RDONLY)
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


def _open_by_all(mpi: Any, comm: Any, path: str, mode: int) -> Any:
    """Opens a file on every rank; an error of one rank, which some MPIs report there alone, is
    raised on all."""
    info = mpi.Info.Create()
    info.Set("romio_no_indep_rw", "true")  # only aggregators need open the file
    file, problem = None, ""
    try:
        file = mpi.File.Open(comm, path, mode, info)
    except Exception as error:
        problem = _on_one_line(error)
    info.Free()
    for rank, text in enumerate(comm.allgather(problem)):
        if text:  # a file opened here stays open, because closing is collective
            raise CheckpointError(f"{path}: rank {rank} cannot open it: {text}")
    return file


def _on_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _attempt(failed: list[BaseException], call: Any, *arguments: Any) -> None:
    with keep_error(failed):
        call(*arguments)


def _calls(comm: Any, moves: Sequence[Move]) -> list[list[Move]]:
    """The moves of each MPI call, with equal numbers of calls on all ranks."""
    shaped = [move.shaped for move in moves]
    alone = [[move] for move, by_itself in zip(moves, shaped, strict=True) if by_itself]
    rest = [move for move, by_itself in zip(moves, shaped, strict=True) if not by_itself]
    groups: list[list[Move]] = []
    left = 0
    for move in sorted(rest, key=lambda move: move.place):
        if move.data.nbytes > left:
            groups.append([])
            left = _MOST_BYTES
        groups[-1].append(move)
        left -= move.data.nbytes
    counts = comm.allgather((len(alone), len(groups)))
    most = [max(count) for count in zip(*counts, strict=True)]
    return [
        *alone,
        *([] for _ in range(most[0] - len(alone))),
        *groups,
        *([] for _ in range(most[1] - len(groups))),
    ]


def _transfer(
    mpi: Any, file: Any, moves: Sequence[Move], failed: list[BaseException], *, writing: bool
) -> None:
    if failed:  # moves nothing more
        moves = []
    try:
        in_file, in_memory = _mpi_types(mpi, moves)
    except Exception as error:
        failed.append(error)
        moves = []
        in_file, in_memory = _mpi_types(mpi, moves)
    message = (mpi.BOTTOM, 1 if moves else 0, in_memory)
    _attempt(failed, file.Set_view, 0, mpi.BYTE, in_file)
    _attempt(failed, file.Write_at_all if writing else file.Read_at_all, 0, message)
    in_file.Free()
    in_memory.Free()


def _mpi_types(mpi: Any, moves: Sequence[Move]) -> tuple[Any, Any]:
    """MPI types of moves in the file and in memory."""
    return _type_by_shape(mpi, moves[0]) if moves and moves[0].shaped else _type_by_runs(mpi, moves)


def _type_by_shape(mpi: Any, move: Move) -> tuple[Any, Any]:
    """MPI types of a box in the file and in memory, by its shape."""
    data = move.data
    start = [mine - its for mine, its in zip(move.box.begin, move.stored.begin, strict=True)]
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


def _type_by_runs(mpi: Any, moves: Sequence[Move]) -> tuple[Any, Any]:
    """MPI types of all runs of several boxes, in the order of the file."""
    if not moves:
        return mpi.BYTE.Create_contiguous(1).Commit(), mpi.BYTE.Create_contiguous(1).Commit()
    found = [(*move.runs(), address(move.data)) for move in moves]
    in_file = np.concatenate([places for places, _, _, _ in found])
    in_memory = np.concatenate([places + address for _, places, _, address in found])
    lengths = np.concatenate(
        [np.full(len(places), length, np.int64) for places, _, length, _ in found]
    )
    order = np.argsort(in_file, kind="stable")
    sizes = lengths[order].tolist()
    file_type, memory_type = (
        mpi.BYTE.Create_hindexed(sizes, places[order].tolist()).Commit()
        for places in (in_file, in_memory)
    )
    return file_type, memory_type


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
        limit = f" within the quota of {owner}" if owner else ""
        raise CheckpointError(
            f"{path}: no space: {needed} bytes are needed, {free} are free{limit}"
        )


def _quotas(directory: str) -> Iterator[tuple[str, int]]:
    """The owner and the free bytes of each quota that limits this process."""
    if os.geteuid() == 0:  # quotas of users do not limit it
        return
    for owner, used, limit, _, _ in [
        *_native.quotas_of(os.fsencode(directory)),
        *_lustre_quotas(directory),
    ]:
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
