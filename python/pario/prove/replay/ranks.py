"""Barriers and MPI-IO calls of a replay, through mpi4py."""

from __future__ import annotations

import ctypes
import os
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from pario._native import ReplayPlayer
from pario.prove.replay import script
from pario.prove.replay.collective import ALONE
from pario.prove.replay.errors import ApartError
from pario.prove.replay.layouts import datatype
from pario.prove.replay.verbs import numbers

#: The largest count of bytes that fits an int; calls that move more are played in Python.
_MOST = 2**31 - 1


class Ranks:
    """The ranks of a replay."""

    def __init__(self) -> None:
        self._world = MPI.COMM_WORLD
        self.rank: int = self._world.Get_rank()

    def barrier(self) -> None:
        """Wait for all ranks. Collective."""
        self._world.Barrier()

    def expect_shared(self, directory: Path, *, made_by_each: bool = False) -> None:
        """Check that all ranks see a directory; else all raise ApartError with the hosts that do
        not. ``made_by_each``: each host may have created a directory of this name, so that a file
        written by rank 0 must be visible to all. Collective.
        """
        mark = (
            directory / f".shared-{self._world.bcast(uuid.uuid4().hex)}"
            if made_by_each
            else directory
        )
        if made_by_each and self.rank == 0:
            with suppress(OSError):
                mark.touch()
        self.barrier()
        places: list[str] = self._world.allgather("" if mark.exists() else socket.gethostname())
        if made_by_each and self.rank == 0:
            mark.unlink(missing_ok=True)
        apart = sorted({place for place in places if place})
        if apart:
            raise ApartError(
                f"{directory} is missing on {', '.join(apart)}: ranks on several hosts need the"
                " directories of --on, of -o and of TMPDIR (which holds their instructions) to be"
                " shared by all hosts"
            )

    def abort(self) -> None:
        """End all ranks."""
        self._world.Abort(1)

    def prepare(self, about: Any) -> Calls:
        """Make the communicators, views and buffer that calls need. Collective."""
        everyone = tuple(range(self._world.Get_size()))
        groups = [
            self._world if tuple(ranks) == everyone else self._group(ranks)
            for ranks in about["groups"]
        ]
        return Calls(about, groups)

    def _group(self, ranks: list[int]) -> MPI.Intracomm | None:
        if self.rank not in ranks:
            return None
        return self._world.Create_group(self._world.Get_group().Incl(ranks))


def _address(method: str) -> int:
    """The address of the function of a blocking transfer, also if a preloaded library defines it;
    0: another call, or not found."""
    if not method.startswith(("Read", "Write")):
        return 0
    function = getattr(ctypes.CDLL(None), f"MPI_File_{method.lower()}", None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


def _word(handle: MPI.File | MPI.Datatype) -> int:
    """An MPI handle as an integer, for functions of this MPI library."""
    kind = ctypes.c_uint32 if MPI._sizeof(handle) == 4 else ctypes.c_uint64
    return kind.from_address(MPI._addressof(handle)).value


class Calls:
    """The open files of a rank, and the calls on them."""

    def __init__(self, about: Any, groups: list[MPI.Intracomm | None]) -> None:
        self._paths: list[str] = about["paths"]
        self._names: list[str] = about["names"]
        self._views = about["views"]
        self._groups = groups
        self._files: dict[int, MPI.File] = {}
        self._addresses = [_address(name) for name in self._names]
        self._player: ReplayPlayer | None = None
        self._buffer = np.full(1, ord("p"), np.uint8)
        self._others: dict[str, Callable[..., object]] = {
            "Open": self._open,
            "Close": lambda slot, *_: self._files.pop(slot).Close(),
            "Set_view": self._set_view,
            "Set_size": lambda slot, offset, *_: self._files[slot].Set_size(offset),
            "Preallocate": lambda slot, offset, *_: self._files[slot].Preallocate(offset),
            "Get_size": lambda slot, *_: self._files[slot].Get_size(),
            "Sync": lambda slot, *_: self._files[slot].Sync(),
            "Seek": lambda slot, offset, *_: self._files[slot].Seek(offset),
            "Delete": lambda slot, offset, length, path: MPI.File.Delete(self._paths[path]),
        }

    def native(self, operations: Any) -> Any:
        """Replace blocking transfers by operations of the native player: the time of Python between
        two calls would change the order in which ranks reach a shared resource.
        """
        made = np.array(operations)
        found = np.array([address != 0 for address in self._addresses] or [False])
        at = np.array(["_at" in name for name in self._names] or [False])
        mpi = np.flatnonzero(made["verb"] == script.MPI)
        chosen = mpi[found[made["other"][mpi]] & (made["length"][mpi] <= _MOST)]
        known = numbers()
        made["verb"][chosen] = np.where(
            at[made["other"][chosen]], known["mpi_transfer_at"], known["mpi_transfer"]
        )
        return made

    def use(self, player: ReplayPlayer) -> None:
        """Set the player of these operations, which receives the handles of open files."""
        player.use(self._addresses, _word(MPI.BYTE))
        self._player = player

    def close(self) -> None:
        """Close the files that are still open. Collective over the ranks of each file, which have
        opened their files in the same order."""
        for slot in [*self._files]:
            self._files.pop(slot).Close()

    def barrier(self, group: int) -> None:
        """Wait for the ranks of a group. Collective over it."""
        communicator = self._groups[group]
        if communicator is not None:
            communicator.Barrier()

    def play(self, call: Any) -> None:
        """Play one MPI-IO call; collective if it was collective in the run."""
        offset, length, _, path, slot, name, _, may_fail = call
        method = self._names[name]
        try:
            if other := self._others.get(method):
                other(slot, offset, length, path)
            else:
                self._transfer(slot, method, offset, length)
        except MPI.Exception:
            if not may_fail:
                raise

    def _transfer(self, slot: int, method: str, offset: int, length: int) -> None:
        if length > len(self._buffer):
            self._buffer = np.full(length, ord("p"), np.uint8)
        buffer = [self._buffer, length, MPI.BYTE]
        call = getattr(self._files[slot], method)
        request = call(offset, buffer) if "_at" in method else call(buffer)
        if request is not None:
            request.Wait()

    def _open(self, slot: int, amode: int, group: int, path: int) -> None:
        communicator = MPI.COMM_SELF if group == ALONE else self._groups[group]
        assert communicator is not None  # this rank belongs to the group: it opened the file
        self._files[slot] = MPI.File.Open(communicator, os.fspath(self._paths[path]), amode)
        if self._player:
            self._player.use_file(slot, _word(self._files[slot]))

    def _set_view(self, slot: int, number: int, *_: Any) -> None:
        view = self._views[number]
        kind = datatype(view["layout"]).Commit()
        self._files[slot].Set_view(view["displacement"], MPI.BYTE, kind)
        kind.Free()
