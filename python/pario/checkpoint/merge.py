"""Makes one file, in the newest format, of a checkpoint in parts or in an older format."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint import container, transfer, types
from pario.checkpoint.attributes import copy_attrs
from pario.checkpoint.checksum import CHUNK_BYTES, Grid, chunk_sums, grid_of
from pario.checkpoint.container import FORMAT, Label, Places
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.examine import boxes_of, describe_damage, read_box
from pario.checkpoint.geometry import Box, whole
from pario.checkpoint.header import Entry, Header
from pario.checkpoint.identity import Identity, read_identity
from pario.checkpoint.store import MASTER, Store
from pario.copying import write_all
from pario.errors import name_errors
from pario.interrupts import check, postpone_interrupt
from pario.paths import local_path
from pario.progress import Show, silent
from pario.publishing import Publication, new_file, sync_directory
from pario.ranks import Ranks

#: Blocks that an error names.
_MOST_BLOCKS = 5

#: For each array and block, the checksums of its chunks.
_Sums = dict[str, list[types.Array]]


@postpone_interrupt()
def merge(
    ranks: Ranks,
    find: Callable[[], Header],
    output: str | os.PathLike[str] | None = None,
    *,
    threads: int = 4,
    show: Show = silent,
) -> Path:
    """Makes one file of the checkpoint that rank 0 finds, and returns its path. Collective.

    Without ``output`` the file replaces the checkpoint. It is published as a whole. Raises
    CheckpointError that names blocks with other bytes than those saved.
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
        mine = _work(header)[ranks.rank :: ranks.size]
        return ranks.together(
            "checkpoint.merge",
            lambda: _copy_all(header, mine, part, places, threads, ranks.moving(show)),
            lambda sums: _finish(header, part, places, sums, targets[0]),
        )
    finally:
        for target in targets:
            target.close()


class _Target:
    """The place of the merged file, on rank 0."""

    def __init__(self, header: Header, output: Path | None) -> None:
        self._step = header.step
        self._store: Store | None = None
        self._new: Publication | None = None
        self._stack = ExitStack()
        path = Path(header.path).absolute()
        saved = read_identity(path)
        #: The identity of the source, because the merged file is the same checkpoint.
        self.identity = saved or Identity(0, header.step, secrets.token_hex(16))
        if output is not None:
            with name_errors(output, CheckpointError):
                self._new = self._stack.enter_context(new_file(output))
            self.part = self._new.part
            return
        in_parts = path.name == MASTER
        if not in_parts and header.format >= FORMAT:
            raise CheckpointError(f"{path} is one file of format {header.format} already")
        here = path.parent if in_parts else path
        store = Store(here.parent)
        if store.of_form(in_parts).path(header.step) != here:
            raise CheckpointError(
                f"{here} does not have the name of its step {header.step}: name the output file"
            )
        if saved is None:
            generation = store.manifest.read()[0].generation_of(here.name)
            self.identity = replace(self.identity, generation=generation)
        store.claim(torn=False)
        self._store, self.part = store, store.part(header.step)
        store.clear_link(header.step)

    def publish(self) -> Path:
        """Renames the file to its final name. In place, it keeps the checkpoint's generation."""
        if self._store is not None:
            return self._store.publish(self._step)
        assert self._new is not None
        output = self._new.target
        try:
            self._new.replace(CheckpointError)
            sync_directory(output.parent)
        except OSError as error:
            raise CheckpointError(f"cannot write {output}: {error.strerror}") from error
        return output

    def close(self) -> None:
        """Removes an unpublished file and unlocks the directory."""
        self._stack.close()
        if self._store is not None:
            self._store.discard(self._step)
            self._store.release()


def _create(header: Header, target: _Target) -> Places:
    """Makes the file, without the elements of its arrays and without checksums."""
    layouts = [replace(entry.layout, attrs={}) for entry in header.entries.values()]
    with hdf5.open_to_read(header.path, CheckpointError) as opened:
        source = opened.file
        label = Label(header.step, {}, json.loads(source["pario"].attrs["about"]), target.identity)
        skeleton = container.create(
            layouts, label, finish=partial(_copy_attrs, source, list(header.entries))
        )
    path = str(target.part)
    needed = sum(layout.nbytes for layout in layouts) + skeleton.places.metadata
    transfer.check_space(path, needed)
    container.write(path, skeleton)
    return skeleton.places


def _copy_attrs(source: Any, names: Sequence[str], file: Any) -> None:
    for name in ("/", *names):
        copy_attrs(source[name], file[name])
    file["pario"].attrs["saved"] = source["pario"].attrs["saved"]


def _work(header: Header) -> list[tuple[int, str, Box]]:
    """All arrays, by number and name, in boxes that are runs of bytes of the new file."""
    return [
        (number, name, box)
        for number, (name, entry) in enumerate(header.entries.items())
        for box in boxes_of(entry)
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
    """Copies the boxes of this rank to the file. Returns the checksums of their chunks."""
    total = sum(box.size * header.entries[name].layout.dtype.itemsize for _, name, box in mine)
    sums = _zero_sums(header)
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        for count, found in pool.map(
            lambda piece: _copy(header, piece[1], piece[2], path, places.arrays[piece[0]]), mine
        ):
            check()
            for name, number, first, some in found:
                sums[name][number][first : first + len(some)] += some
            done += count
            show(done, total)
    with transfer.open_file(path, os.O_WRONLY) as file:
        transfer.flush(file, show)
    return sums


def _zero_sums(header: Header) -> _Sums:
    return {
        name: [np.zeros(grid.count, np.uint64) for grid in _grids(entry)]
        for name, entry in header.entries.items()
    }


def _grids(entry: Entry) -> list[Grid]:
    """The chunks of each block in the new file."""
    return [grid_of(block.box, entry.layout.dtype.itemsize) for block in entry.layout.blocks]


def _copy(
    header: Header, name: str, box: Box, path: str, place: int
) -> tuple[int, list[tuple[str, int, int, types.Array]]]:
    """Copies a box. Returns its bytes, and checksums: array, block, first chunk, sums."""
    entry = header.entries[name]
    shape = entry.layout.shape
    data = read_box(header, entry, box)
    transfer.write(path, [transfer.Move(place, whole(shape), box, data)], durable=False)
    found: list[tuple[str, int, int, types.Array]] = []
    for number in entry.blocks_in(box):
        block = entry.layout.blocks[number].box
        common = block.meet(box)
        grid = grid_of(block, entry.layout.dtype.itemsize)
        found.append((name, number, *chunk_sums(data[common.within(box)], common, grid, shape)))
    return data.nbytes, found


def _finish(
    header: Header, path: str, places: Places, by_rank: Sequence[_Sums], target: _Target
) -> Path:
    sums = _zero_sums(header)
    for theirs in by_rank:
        for name, blocks in theirs.items():
            for number, some in enumerate(blocks):
                sums[name][number] += some
    damaged = list(_find_damaged(header, sums))
    if damaged:
        rest = len(damaged) - _MOST_BLOCKS
        more = [f"and {rest} more"] if rest > 0 else []
        raise CheckpointError(f"{header.path}: " + "; ".join([*damaged[:_MOST_BLOCKS], *more]))
    table = np.concatenate(
        [np.zeros(0, np.uint64), *(one for blocks in sums.values() for one in blocks)]
    )
    with transfer.open_file(path, os.O_RDWR) as file:
        write_all(file, places.sums, table.astype("<u8").tobytes())
        os.fsync(file)
    return target.publish()


def _find_damaged(header: Header, sums: _Sums) -> Iterator[str]:
    """Compares the new file's checksums with those of the source: chunk by chunk where both have
    the same chunks, else block by block, because checksums of chunks add up."""
    for name, entry in header.entries.items():
        for number, found in enumerate(sums[name]):
            if entry.chunk_bytes == CHUNK_BYTES:
                yield from describe_damage(entry, number, found)
            elif np.add.reduce(found) != np.add.reduce(entry.sums_of(number)):
                yield entry.damage_text(number, entry.layout.blocks[number].box)
