"""The access patterns: ways in which ranks with one block each write an array to files and read it.

Each has ``write`` and ``read``, both collective over the team's communicator; they return the
number of I/O calls of this rank. Files lie in ``team.directory``. ``read`` fills ``team.data``,
which the worker compares with the data written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from mpi4py import MPI

from pario.prove.bench.array import Block, Doubles

_LINE = "%24.16e\n"
_AT_A_TIME = 1 << 14  # numbers formatted at once
_ALONE = {"romio_cb_write": "disable", "romio_cb_read": "disable"}
_UNSIEVED = {**_ALONE, "romio_ds_write": "disable", "romio_ds_read": "disable"}
_SIEVED = {**_ALONE, "romio_ds_write": "enable", "romio_ds_read": "enable"}


@dataclass
class Team:
    """A rank with its data and the communicator of its team. All blocks have the same shape.

    ``groups``: number of files of a pattern with one file per group of ranks. ``stripes``: stripes
    of each of these files; 0: the file system's default.
    """

    comm: MPI.Comm
    blocks: list[Block]  # of all ranks of the communicator
    data: Doubles
    directory: Path
    groups: int
    stripes: int = 0

    @property
    def rank(self) -> int:
        """The rank in the communicator."""
        return int(self.comm.Get_rank())

    @property
    def block(self) -> Block:
        """The block of this rank."""
        return self.blocks[self.rank]

    def group(self) -> Team:
        """The team of this rank's group; its ``directory`` is the group's file. Collective."""
        size = int(self.comm.Get_size())
        numbers = [rank * self.groups // size for rank in range(size)]
        mine = numbers[self.rank]
        members = [
            block for block, number in zip(self.blocks, numbers, strict=True) if number == mine
        ]
        return Team(
            self.comm.Split(mine, self.rank),
            members,
            self.data,
            self.directory / f"group-{mine}",
            1,
            self.stripes,
        )

    def gather(self) -> Doubles:
        """Gather the parts of all ranks, in rank order, on rank 0; empty on others. Collective."""
        parts = np.empty((len(self.blocks) if self.rank == 0 else 0, *self.block.shape))
        self.comm.Gather(self.data, parts if self.rank == 0 else None, 0)
        return parts

    def scatter(self, parts: Doubles | None) -> None:
        """Send every rank its part from rank 0, into ``data``. Collective."""
        self.comm.Scatter(parts, self.data, 0)


class Code(Protocol):
    """The code of a pattern; both functions are collective."""

    def write(self, team: Team) -> int:
        """Write ``team.data``; returns the number of calls of this rank."""

    def read(self, team: Team) -> int:
        """Read ``team.data`` back; returns the number of calls of this rank."""


@dataclass(frozen=True)
class _Form:
    """The format of numbers in a file of one process; ``store`` and ``fetch`` return their number
    of calls."""

    store: Callable[[Path, Doubles], int]
    fetch: Callable[[Path, Doubles], int]


@dataclass(frozen=True)
class _Alone:
    form: _Form

    def write(self, team: Team) -> int:
        parts = team.gather()
        if team.rank != 0:
            return 0
        whole = np.empty(team.block.whole)
        for block, part in zip(team.blocks, parts, strict=True):
            whole[block.indices] = part
        return self.form.store(team.directory / "array", whole)

    def read(self, team: Team) -> int:
        if team.rank != 0:
            team.scatter(None)
            return 0
        whole = np.empty(team.block.whole)
        calls = self.form.fetch(team.directory / "array", whole)
        team.scatter(np.stack([whole[block.indices] for block in team.blocks]))
        return calls


@dataclass(frozen=True)
class _Each:
    form: _Form

    def write(self, team: Team) -> int:
        return self.form.store(team.directory / f"part-{team.rank}", team.data)

    def read(self, team: Team) -> int:
        return self.form.fetch(team.directory / f"part-{team.rank}", team.data)


class _Independent:
    def write(self, team: Team) -> int:
        with open_file(team.comm, team.directory / "array", MPI.MODE_WRONLY, _UNSIEVED) as file:
            return _each_run(team, file.Write_at)

    def read(self, team: Team) -> int:
        with open_file(team.comm, team.directory / "array", MPI.MODE_RDONLY, _UNSIEVED) as file:
            return _each_run(team, file.Read_at)


@dataclass(frozen=True)
class _ThroughView:
    together: bool
    mode: int  # of writing
    hints: Mapping[str, str] | None = None

    def write(self, team: Team) -> int:
        with _open_view(team, self.mode, self.hints) as file:
            (file.Write_all if self.together else file.Write)(team.data)
        return 1

    def read(self, team: Team) -> int:
        with _open_view(team, MPI.MODE_RDONLY, self.hints) as file:
            (file.Read_all if self.together else file.Read)(team.data)
        return 1


class _GroupFiles:
    def write(self, team: Team) -> int:
        with _split_into_groups(team) as group:
            parts = group.gather()
            return _store(group.directory, parts) if group.rank == 0 else 0

    def read(self, team: Team) -> int:
        with _split_into_groups(team) as group:
            if group.rank != 0:
                group.scatter(None)
                return 0
            parts = np.empty((len(group.blocks), *group.block.shape))
            calls = _fetch(group.directory, parts)
            group.scatter(parts)
            return calls


class _GroupsOneFile:
    def write(self, team: Team) -> int:
        with _split_into_groups(team) as group, _split_leaders(team, group) as leaders:
            parts = group.gather()
            return self._move(team, group, leaders, parts, MPI.MODE_WRONLY) if leaders else 0

    def read(self, team: Team) -> int:
        with _split_into_groups(team) as group, _split_leaders(team, group) as leaders:
            parts = np.empty((len(group.blocks), *group.block.shape)) if leaders else None
            calls = (
                self._move(team, group, leaders, parts, MPI.MODE_RDONLY)
                if leaders and parts is not None
                else 0
            )
            group.scatter(parts)
            return calls

    def _move(self, team: Team, group: Team, leaders: MPI.Comm, parts: Doubles, mode: int) -> int:
        """Make one collective call per member of the largest group; smaller groups pass no data in
        the last calls."""
        most = -(-len(team.blocks) // team.groups)
        with open_file(leaders, team.directory / "array", mode) as file:
            for number in range(most):
                exists = number < len(group.blocks)
                with _view(file, group.blocks[number if exists else 0]):
                    transfer = file.Write_all if mode == MPI.MODE_WRONLY else file.Read_all
                    transfer(parts[number] if exists else np.empty(0))
        return most


class _GroupsTogether:
    def write(self, team: Team) -> int:
        with self._open_group_file(team, MPI.MODE_WRONLY) as (group, file):
            file.Write_at_all(group.rank * group.block.bytes, group.data)
        return 1

    def read(self, team: Team) -> int:
        with self._open_group_file(team, MPI.MODE_RDONLY) as (group, file):
            file.Read_at_all(group.rank * group.block.bytes, group.data)
        return 1

    @contextmanager
    def _open_group_file(self, team: Team, mode: int) -> Iterator[tuple[Team, MPI.File]]:
        hints = {"striping_factor": str(team.stripes)} if team.stripes else {}
        with (
            _split_into_groups(team) as group,
            open_file(group.comm, group.directory, mode, hints) as file,
        ):
            yield group, file


@contextmanager
def _split_into_groups(team: Team) -> Iterator[Team]:
    group = team.group()
    yield group
    group.comm.Free()


@contextmanager
def _split_leaders(team: Team, group: Team) -> Iterator[MPI.Comm | None]:
    """The communicator of the first ranks of all groups; None on others. Collective."""
    leaders = team.comm.Split(0 if group.rank == 0 else MPI.UNDEFINED, team.rank)
    if leaders == MPI.COMM_NULL:
        yield None
        return
    yield leaders
    leaders.Free()


@contextmanager
def open_file(
    comm: MPI.Comm, path: Path, mode: int, hints: Mapping[str, str] | None = None
) -> Iterator[MPI.File]:
    """Open a file for one transfer, with hints. Collective."""
    info = MPI.Info.Create()
    for key, value in (hints or {}).items():
        info.Set(key, value)
    assert isinstance(comm, MPI.Intracomm)
    file = MPI.File.Open(
        comm, str(path), mode if mode == MPI.MODE_RDONLY else mode | MPI.MODE_CREATE, info
    )
    info.Free()
    yield file
    file.Close()


@contextmanager
def _view(file: MPI.File, block: Block) -> Iterator[None]:
    """Set the view of the file to one block of the array. Collective."""
    part = MPI.DOUBLE.Create_subarray(block.whole, block.shape, block.begin)
    part.Commit()
    file.Set_view(0, MPI.DOUBLE, part)
    yield
    part.Free()


@contextmanager
def _open_view(team: Team, mode: int, hints: Mapping[str, str] | None) -> Iterator[MPI.File]:
    """Open the array with a view of the team's block. Collective."""
    with (
        open_file(team.comm, team.directory / "array", mode, hints) as file,
        _view(file, team.block),
    ):
        yield file


def _each_run(team: Team, move: Callable[[int, memoryview], None]) -> int:
    calls = 0
    data = team.data.data.cast("B")
    for offset, position in team.block.runs():
        move(offset, data[position : position + team.block.run])
        calls += 1
    return calls


def _store(path: Path, data: Doubles) -> int:
    calls = 0
    with path.open("wb", buffering=0) as file:
        rest = data.data.cast("B")
        while rest:
            rest = rest[file.write(rest) :]
            calls += 1
    return calls


def _fetch(path: Path, data: Doubles) -> int:
    calls = 0
    with path.open("rb", buffering=0) as file:
        rest = data.data.cast("B")
        while rest:
            got = file.readinto(rest)
            if not got:
                raise OSError(f"{path} ends {len(rest)} bytes too early")
            rest = rest[got:]
            calls += 1
    return calls


def _store_text(path: Path, data: Doubles) -> int:
    parts = _parts(data)
    with path.open("w") as file:
        for part in parts:
            file.write(_LINE * part.size % tuple(part))
    return len(parts)


def _fetch_text(path: Path, data: Doubles) -> int:
    parts = _parts(data)
    line = len(_LINE % 0)
    with path.open("r") as file:
        for part in parts:
            part[...] = np.fromstring(file.read(line * part.size), sep="\n")
    return len(parts)


def _parts(data: Doubles) -> list[Doubles]:
    flat = data.reshape(-1)
    return [flat[begin : begin + _AT_A_TIME] for begin in range(0, flat.size, _AT_A_TIME)]


_BINARY = _Form(_store, _fetch)
_TEXT = _Form(_store_text, _fetch_text)


CODE: dict[str, Code] = {
    "one": _Alone(_BINARY),
    "one-text": _Alone(_TEXT),
    "files": _Each(_BINARY),
    "files-text": _Each(_TEXT),
    "independent": _Independent(),
    "sieved": _ThroughView(together=False, mode=MPI.MODE_RDWR, hints=_SIEVED),
    "collective": _ThroughView(together=True, mode=MPI.MODE_WRONLY),
    "groups-files": _GroupFiles(),
    "groups-one": _GroupsOneFile(),
    "groups-together": _GroupsTogether(),
}
