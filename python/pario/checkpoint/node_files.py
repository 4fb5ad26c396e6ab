"""Open files of a checkpoint that the ranks of a node share: one of them opens a file, and sends
its descriptor to the others. So ranks that restart open a file once for each node."""

from __future__ import annotations

import os
import secrets
import socket
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from pario.ranks import Ranks

#: Most files that a rank keeps open; others it opens for each read.
_MOST_FILES = 64
_TOKEN_BYTES = 16
#: Bytes of the longest message: the token, and the names of files.
_MOST_BYTES = 1 << 14
_SEPARATOR = b"\0"

#: The address of a rank's socket, and a secret that no other program of the node knows.
_Receiver = tuple[bytes, bytes]


@dataclass(frozen=True)
class Offer:
    """The files of a rank: those that it will read, and those that it has opened already."""

    node: int
    wanted: Sequence[str]
    opened: Sequence[str]
    receiver: _Receiver | None  # None: it shares no files


#: For a rank the files that it opens for others of its node.
Orders = dict[str, list[_Receiver]]


def assign_openers(
    offers: Sequence[Offer], joint: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> list[Orders]:
    """The orders of each rank. Pure. A rank that has opened a file sends it to the others, else the
    first one that wants it. ``joint``: the files that all ranks of a node want, by its number."""
    wanting: dict[tuple[int, str], list[int]] = {}
    owner: dict[tuple[int, str], int] = {}
    for rank, offer in enumerate(offers):
        for file in offer.opened:
            owner.setdefault((offer.node, file), rank)
        wanted = joint.get(offer.node, offer.wanted)
        for file in sorted(set(wanted) - set(offer.opened)) if offer.receiver else ():
            wanting.setdefault((offer.node, file), []).append(rank)
    found: list[Orders] = [{} for _ in offers]
    for key, ranks in wanting.items():
        opener = owner.get(key, ranks[0])
        receivers = [offers[rank].receiver for rank in ranks if rank != opener]
        if receivers:
            found[opener][key[1]] = [one for one in receivers if one]
    return found


class NodeFiles:
    """The files of a checkpoint that this rank reads, by their names in extents.

    A file that was not shared, for want of sockets or because there are many, is opened for each
    read. ``path_of``: the path of a file.
    """

    def __init__(self, ranks: Ranks, path_of: Callable[[str], str]) -> None:
        self._node, self._path_of = ranks.node, path_of
        self._open: dict[str, int] = {}
        self._socket: socket.socket | None = None
        self._token = b""

    def offer(self, names: Iterable[str]) -> Offer:
        """This rank's files before a collective read. Makes the socket for descriptors."""
        receiver = None
        if self._node >= 0:
            with suppress(OSError):
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.bind("")  # a name that the kernel chooses
                self._socket.setblocking(False)
                self._token = secrets.token_bytes(_TOKEN_BYTES)
                receiver = self._socket.getsockname(), self._token
        return Offer(self._node, list(dict.fromkeys(names)), list(self._open), receiver)

    def send(self, orders: Orders) -> None:
        """Opens files and sends their descriptors. A rank that gets none opens the file itself, and
        reports the error."""
        by_receiver: dict[_Receiver, list[str]] = {}
        for name, receivers in orders.items():
            with suppress(OSError):
                if name not in self._open and len(self._open) < _MOST_FILES:
                    self._open[name] = os.open(self._path_of(name), os.O_RDONLY)
                for receiver in receivers if name in self._open else ():
                    by_receiver.setdefault(receiver, []).append(name)
        for (address, token), names in by_receiver.items():
            content = token + _SEPARATOR.join(name.encode() for name in names)
            files = [self._open[name] for name in names]
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                rights = socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", files)
                sender.sendmsg([content], [rights], 0, address)  # send_fds() ignores the address

    def receive(self) -> None:
        """Receives the descriptors that were sent, and closes the socket."""
        if self._socket is None:
            return
        with suppress(OSError), self._socket as own:
            while True:
                content, files, _, _ = socket.recv_fds(own, _MOST_BYTES, _MOST_FILES)
                self._keep(content, files)
        self._socket = None

    def _keep(self, content: bytes, files: Sequence[int]) -> None:
        is_known = secrets.compare_digest(content[:_TOKEN_BYTES], self._token)
        names = content[_TOKEN_BYTES:].decode().split(_SEPARATOR.decode()) if is_known else []
        unknown = list(files)
        if len(names) == len(files):
            unknown = [self._open.pop(name) for name in names if name in self._open]
            self._open.update(zip(names, files, strict=True))  # the sender limits their number
        for file in unknown:
            _close(file)

    def open(self, name: str) -> None:
        """Opens a file before it is needed: later another one may have its name."""
        with suppress(OSError):
            self._open[name] = os.open(self._path_of(name), os.O_RDONLY)

    def descriptor(self, name: str) -> int:
        """The descriptor of a shared file; -1 if it is not shared."""
        return self._open.get(name, -1)

    def close(self) -> None:
        """Closes all files."""
        for file in self._open.values():
            _close(file)
        self._open = {}

    def __del__(self) -> None:
        self.close()


def _close(file: int) -> None:
    """Closes a file that was only read: an error concerns no bytes."""
    with suppress(OSError):
        os.close(file)
