"""Keeps the buffers that survive a killed process (hint ``survive``), and writes their dirty bytes.

A process sends descriptors of its shared memory and of the file
(src/layers/buffers/surviving_memory.cpp), and asks for their release when it closes the file. If it
dies before that, the keeper writes its dirty bytes to the file. The memory has no name in a file
system, so that it vanishes with the last of both processes.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import select
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pario.copying import write_all

KEEPER = "PARIO_STREAMS_KEEPER"
_LINGER_SECONDS = 2.0  # for processes that die with the command
_PATIENCE_SECONDS = 1.0  # for a message

_MAGIC = 0x31454B4F49524150
_HEADER = struct.Struct("<10Q")
_MESSAGE = struct.Struct("<2Q")
_KEEP, _RELEASE = 1, 2
_DIRTY = (1, 2)  # filling, queued
_CREDENTIALS = struct.Struct("3i")


@contextlib.contextmanager
def keeping(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment of a command. If its settings have ``survive``, a keeper runs until the
    end of the block."""
    asked = any(
        "survive" in environment.get(name, "") for name in ("PARIO_STREAMS", "IOBUF_PARAMS")
    )
    if not asked:
        yield dict(environment)
        return
    keeper = Keeper()
    try:
        yield {**environment, KEEPER: keeper.name}
    finally:
        keeper.finish()


@dataclass
class _Region:
    """The shared memory of one file."""

    memory: int
    file: int

    def close(self) -> None:
        os.close(self.memory)
        os.close(self.file)

    def write_left(self) -> int:
        """Write the dirty bytes of the process to the file; return their number."""
        with mmap.mmap(self.memory, 0, prot=mmap.PROT_READ) as data, memoryview(data) as view:
            runs = list(_runs(view))
            if not runs:
                return 0
            file = os.open(f"/proc/self/fd/{self.file}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                for offset, begin, end in runs:
                    write_all(file, offset, view[begin:end])
                return sum(end - begin for _, begin, end in runs)
            finally:
                os.close(file)

    def path(self) -> str:
        return str(Path(f"/proc/self/fd/{self.file}").readlink())


def _runs(view: memoryview) -> Iterator[tuple[int, int, int]]:
    """Yield the dirty runs: offset in the file, begin and end in the memory."""
    magic, size, count, buffers, stride, data, at_begin, at_state, at_runs, at_count = (
        _HEADER.unpack_from(view)
    )
    if magic != _MAGIC:
        raise ValueError("not understood")
    for number in range(count):
        buffer = buffers + number * stride
        if view[buffer + at_state] not in _DIRTY:
            continue
        (begin,), (runs,) = (
            struct.unpack_from("<Q", view, buffer + at_begin),
            struct.unpack_from("<I", view, buffer + at_count),
        )
        for run in range(runs):
            first, last = struct.unpack_from("<2I", view, buffer + at_runs + 8 * run)
            yield begin + first, data + number * size + first, data + number * size + last


@dataclass
class _Owner:
    """A process and its regions by number; ``end`` (a pidfd) becomes readable when it dies."""

    end: int
    regions: dict[int, _Region] = field(default_factory=dict)

    def is_dead(self) -> bool:
        return bool(select.select([self.end], [], [], 0)[0])

    def close(self) -> None:
        os.close(self.end)
        for region in self.regions.values():
            region.close()


class Keeper:
    """A thread that listens on an abstract socket. Other programs cannot guess its name, and
    messages of other users are rejected."""

    def __init__(self) -> None:
        self.name = f"pario-{os.getpid()}-{secrets.token_hex(8)}"
        self._owners: dict[int, _Owner] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._stop_read, self._stop = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._stop_read, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Write the buffers of dead processes, and release those of living ones."""
        os.close(self._stop)
        self._thread.join()
        for owner in self._owners.values():
            owner.close()
        self._selector.close()
        self._listener.close()
        os.close(self._stop_read)

    def _run(self) -> None:
        while not self._work(None):
            pass
        self._selector.unregister(self._stop_read)
        deadline = time.monotonic() + _LINGER_SECONDS
        self._accept()
        while self._owners and (left := deadline - time.monotonic()) > 0:
            self._work(left)

    def _work(self, seconds: float | None) -> bool:
        """Wait for events and serve them; return True if the command has ended."""
        events = self._selector.select(seconds)
        for key, _ in events:
            if key.data:
                key.data()
        return any(key.fd == self._stop_read for key, _ in events)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        """Receive a message and answer it. The process waits for the answer, so that its memory is
        kept, or released, before it continues."""
        connection.settimeout(_PATIENCE_SECONDS)
        pid, user, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        message, descriptors, _, _ = socket.recv_fds(
            connection, _MESSAGE.size, 2, socket.MSG_CMSG_CLOEXEC
        )
        kind, number = _MESSAGE.unpack(message) if len(message) == _MESSAGE.size else (0, 0)
        if (
            kind == _KEEP
            and len(descriptors) == 2
            and user == os.getuid()
            and self._keep(pid, number, _Region(*descriptors))
        ):
            connection.send(b"y")
            return
        for descriptor in descriptors:
            os.close(descriptor)
        if kind == _RELEASE and user == os.getuid():
            self._release(pid, number)
            connection.send(b"y")

    def _keep(self, pid: int, number: int, region: _Region) -> bool:
        if pid in self._owners and self._owners[pid].is_dead():  # a recycled PID
            self._recover_buffers(pid)
        if pid not in self._owners:
            try:
                end = os.pidfd_open(pid)
            except OSError:  # an old kernel, or a process of another container
                return False
            self._owners[pid] = _Owner(end)
            self._selector.register(end, selectors.EVENT_READ, lambda: self._recover_buffers(pid))
        self._release(pid, number)  # a region from before an exec
        self._owners[pid].regions[number] = region
        return True

    def _release(self, pid: int, number: int) -> None:
        owner = self._owners.get(pid)
        region = owner.regions.pop(number, None) if owner else None
        if region:
            region.close()

    def _recover_buffers(self, pid: int) -> None:
        """Write the buffers of a dead process to their files, and forget it."""
        owner = self._owners.pop(pid)
        self._selector.unregister(owner.end)
        for region in owner.regions.values():
            _write_left(region, pid)
        owner.close()


def _write_left(region: _Region, pid: int) -> None:
    try:
        if written := region.write_left():
            print(
                f"pario: process {pid} was killed; {written} bytes that it had buffered are now in"
                f" {region.path()}",
                file=sys.stderr,
            )
    except (OSError, ValueError, struct.error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        print(
            f"pario: process {pid} was killed; bytes that it had buffered did not reach"
            f" {region.path()}: {reason}",
            file=sys.stderr,
        )
