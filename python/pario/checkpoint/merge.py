"""Makes one file in the newest format of a checkpoint in parts, or in an older format.

Threads of a process or many ranks copy the arrays, and compare them with their checksums.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint import container, transfer
from pario.checkpoint.attributes import copy_all
from pario.checkpoint.checksum import chunk_sums
from pario.checkpoint.chunks import CHUNK_BYTES, Grid, grid_of
from pario.checkpoint.container import FORMAT, Label, Places
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.examine import describe_damage, read_box
from pario.checkpoint.geometry import Box, pieces, whole
from pario.checkpoint.header import Entry, Header
from pario.checkpoint.identity import Identity, read_identity
from pario.checkpoint.room import check_room
from pario.checkpoint.store import MASTER, Store, sync
from pario.checkpoint.types import Array
from pario.interrupts import check, postponed
from pario.paths import local_path
from pario.progress import Show, silent
from pario.publishing import remove
from pario.ranks import Ranks

#: Bytes that are read, compared and written together.
_PIECE = 1 << 26
#: Blocks that are named in an error.
_MOST = 5

#: By array, for each block the sums of its chunks.
_Sums = dict[str, list[Array]]


@postponed()
def merge(
    ranks: Ranks,
    find: Callable[[], Header],
    output: str | os.PathLike[str] | None = None,
    *,
    threads: int = 4,
    show: Show = silent,
) -> Path:
    """Makes one file of the checkpoint that rank 0 finds, and returns its path; without ``output`` it takes the checkpoint's place.
    Collective.

    The file appears as a whole or not at all. Raises CheckpointError where blocks are not what was saved, and names them.
    """
    file = None if output is None else local_path(output, CheckpointError)
    targets: list[_Target] = []

    def begin(_: object) -> tuple[Header, str, Places]:
        header = find()
        if not header.about:
            raise CheckpointError(f"{header.path}: pario did not save it")
        targets.append(_Target(header, file))
        return header, str(targets[0].part), _create(header, targets[0])

    try:
        header, part, places = ranks.together("checkpoint.merge", lambda: None, begin)
        mine = _pieces(header)[ranks.rank :: ranks.size]
        return ranks.together(
            "checkpoint.merge",
            lambda: _copy_all(header, mine, part, places, threads, ranks.moving(show)),
            lambda sums: _finish(header, part, places, sums, targets[0]),
        )
    finally:
        for target in targets:
            target.close()


class _Target:
    """The place of the new file. Rank 0's."""

    def __init__(self, header: Header, output: Path | None) -> None:
        self._step, self._output = header.step, output
        self._store: Store | None = None
        path = Path(header.path).absolute()
        saved = read_identity(path)
        #: The new file is the same checkpoint, so it has the same identity.
        self.identity = saved or Identity(0, header.step, secrets.token_hex(16))
        if output is not None:
            self.part = output.with_name(output.name + ".part")
            remove(self.part)
            return
        in_parts = path.name == MASTER
        if not in_parts and header.format == FORMAT:
            raise CheckpointError(f"{path} is one file of format {FORMAT} already")
        here = path.parent if in_parts else path
        store = Store(here.parent)
        if store.of_form(in_parts).path(header.step) != here:
            raise CheckpointError(f"{here} is no longer called as its step {header.step}: say where the file goes")
        if saved is None:
            generation = store.read_manifest()[0].generation_of(here.name)
            self.identity = replace(self.identity, generation=generation)
        store.claim(torn=False)
        self._store, self.part = store, store.part(header.step)
        store.clear_link(header.step)

    def publish(self) -> Path:
        """Gives the file its name. In place, it replaces the old checkpoint and keeps its order."""
        if self._store is not None:
            return self._store.publish(self._step)
        assert self._output is not None
        try:
            self.part.replace(self._output)
        except OSError as error:
            raise CheckpointError(f"cannot write {self._output}: {error.strerror}") from error
        sync(self._output.parent)
        return self._output

    def close(self) -> None:
        """What was not published goes."""
        with suppress(OSError):
            self.part.unlink(missing_ok=True)
        if self._store is not None:
            self._store.release()


def _create(header: Header, target: _Target) -> Places:
    """Makes the file, without the bytes of its arrays and without checksums."""
    layouts = [replace(entry.layout, attrs={}) for entry in header.entries.values()]
    with hdf5.open_to_read(header.path, CheckpointError) as opened:
        source = opened.file
        label = Label(header.step, {}, json.loads(source["pario"].attrs["about"]), target.identity)
        skeleton = container.create(layouts, label, finish=partial(_copy_attributes, source, list(header.entries)))
    path = str(target.part)
    check_room(path, sum(layout.nbytes for layout in layouts) + skeleton.places.metadata)
    container.write(path, skeleton)
    return skeleton.places


def _copy_attributes(source: Any, names: Sequence[str], file: Any) -> None:
    for name in ("/", *names):
        copy_all(source[name], file[name])
    file["pario"].attrs["saved"] = source["pario"].attrs["saved"]


def _pieces(header: Header) -> list[tuple[int, str, Box]]:
    """All arrays, by number and name, in boxes that are runs of bytes of the file, and of the blocks that meet them."""
    return [
        (number, name, box)
        for number, (name, entry) in enumerate(header.entries.items())
        for box in pieces(whole(entry.layout.shape), max(1, _PIECE // entry.layout.dtype.itemsize))
        if box.size
    ]


def _copy_all(
    header: Header,
    mine: Sequence[tuple[int, str, Box]],
    path: str,
    places: Places,
    threads: int,
    show: Show,
) -> _Sums:
    """Copies the boxes of this rank to the file. Returns the sums of their chunks."""
    total = sum(box.size * header.entries[name].layout.dtype.itemsize for _, name, box in mine)
    sums = _zero_sums(header)
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        for count, found in pool.map(lambda piece: _copy(header, piece[1], piece[2], path, places.arrays[piece[0]]), mine):
            check()
            for name, number, first, some in found:
                sums[name][number][first : first + len(some)] += some
            done += count
            show(done, total)
    with transfer.opened(path, os.O_WRONLY) as file:
        transfer.flush(file, show)
    return sums


def _zero_sums(header: Header) -> _Sums:
    return {name: [np.zeros(grid.count, np.uint64) for grid in _grids(entry)] for name, entry in header.entries.items()}


def _grids(entry: Entry) -> list[Grid]:
    """The chunks of each block in the new file."""
    return [grid_of(block.box, entry.layout.dtype.itemsize) for block in entry.layout.blocks]


def _copy(header: Header, name: str, box: Box, path: str, place: int) -> tuple[int, list[tuple[str, int, int, Array]]]:
    """Copies a box. Returns its bytes, and its chunk sums: array, block, first chunk, sums."""
    entry = header.entries[name]
    shape = entry.layout.shape
    data = read_box(header, entry, box)
    transfer.write(None, path, [transfer.Move(place, whole(shape), box, data)], durable=False)
    found: list[tuple[str, int, int, Array]] = []
    for number in entry.blocks_in(box):
        block = entry.layout.blocks[number].box
        common = block.meet(box)
        grid = grid_of(block, entry.layout.dtype.itemsize)
        found.append((name, number, *chunk_sums(data[common.within(box)], common, grid, shape)))
    return data.nbytes, found


def _finish(header: Header, path: str, places: Places, by_rank: Sequence[_Sums], target: _Target) -> Path:
    sums = _zero_sums(header)
    for theirs in by_rank:
        for name, blocks in theirs.items():
            for number, some in enumerate(blocks):
                sums[name][number] += some
    damaged = list(_damaged(header, sums))
    if damaged:
        more = [f"and {len(damaged) - _MOST} more"] if len(damaged) > _MOST else []
        raise CheckpointError(f"{header.path}: " + "; ".join([*damaged[:_MOST], *more]))
    table = np.concatenate([np.zeros(0, np.uint64), *(one for blocks in sums.values() for one in blocks)])
    with transfer.opened(path, os.O_RDWR) as file:
        transfer.write_all(file, table.astype("<u8").tobytes(), places.sums)
        os.fsync(file)
    return target.publish()


def _damaged(header: Header, sums: _Sums) -> Iterator[str]:
    """Compares the sums of chunks of the new file with those of the source: chunk by chunk where
    both have the same chunks, else block by block, as the sums of chunks add up.
    """
    for name, entry in header.entries.items():
        for number, found in enumerate(sums[name]):
            if entry.chunk_bytes == CHUNK_BYTES:
                yield from describe_damage(entry, number, found)
            elif np.add.reduce(found) != np.add.reduce(entry.sums_of(number)):
                block = entry.layout.blocks[number]
                yield f"array '{name}': {block.box}, saved by rank {block.rank}, is not what was saved"
