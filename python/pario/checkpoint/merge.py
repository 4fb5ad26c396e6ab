"""One file of a checkpoint in parts, by threads of a process or by many ranks. What is read is compared with its checksums on the way."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from pario import hdf5
from pario.checkpoint import container, transfer
from pario.checkpoint.attributes import copy_all
from pario.checkpoint.checksum import checksum
from pario.checkpoint.container import Label, Places
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.examine import read_box
from pario.checkpoint.geometry import Box, pieces, whole
from pario.checkpoint.header import Header
from pario.checkpoint.store import MASTER, Store, sync
from pario.interrupts import check, postponed
from pario.paths import local_path
from pario.progress import Show, silent
from pario.publishing import remove
from pario.ranks import Ranks

#: Bytes that are read, compared and written together.
_PIECE = 1 << 26
#: Blocks that are named in an error.
_MOST = 5

#: A block: the name of its array, and its number there.
_BlockName = tuple[str, int]


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
        return header, str(targets[0].part), _create(header, str(targets[0].part))

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
    """Where the file goes. Rank 0's."""

    def __init__(self, header: Header, output: Path | None) -> None:
        self._saved = Path(header.path).stat().st_mtime_ns
        self._step, self._output = header.step, output
        self._store: Store | None = None
        if output is not None:
            self.part = output.with_name(output.name + ".part")
            remove(self.part)
            return
        path = Path(header.path).absolute()
        if path.name != MASTER:
            raise CheckpointError(f"{path} is one file already")
        store = Store(path.parent.parent)
        if Store(store.directory, in_parts=True).path(header.step) != path.parent:
            raise CheckpointError(f"{path.parent} is no longer called as its step {header.step}: say where the file goes")
        store.claim(torn=False)
        self._store, self.part = store, store.part(header.step)
        store.clear_link(header.step)

    def publish(self) -> Path:
        """The file gets its name, and what was there goes. It was saved when that was: the order of checkpoints stays."""
        if self._store is not None:
            os.utime(self.part, ns=(self._saved, self._saved))
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


def _create(header: Header, path: str) -> Places:
    """The file without the bytes of its arrays and without checksums."""
    import h5py

    layouts = [replace(entry.layout, attrs={}) for entry in header.entries.values()]
    container.check_room(path, sum(layout.nbytes for layout in layouts))
    places = container.create(path, layouts, Label(header.step, {}, {})).places
    with hdf5.open_to_read(header.path, CheckpointError) as source, h5py.File(path, "r+", locking=False) as target:
        for name in ("/", "pario", *header.entries):
            copy_all(source.file[name], target[name])
    return places


def _pieces(header: Header) -> list[tuple[int, str, Box]]:
    """All arrays, by number and name, in boxes that are runs of bytes of the file, and of the blocks that meet them."""
    return [
        (number, name, box)
        for number, (name, entry) in enumerate(header.entries.items())
        for box in pieces(whole(entry.layout.shape), max(1, _PIECE // entry.layout.dtype.itemsize))
        if box.size
    ]


def _copy_all(
    header: Header, mine: Sequence[tuple[int, str, Box]], path: str, places: Places, threads: int, show: Show
) -> Counter[_BlockName]:
    """What this rank reads goes into the file; sums of what it has of the blocks."""
    total = sum(box.size * header.entries[name].layout.dtype.itemsize for _, name, box in mine)
    sums: Counter[_BlockName] = Counter()
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        for count, found in pool.map(lambda piece: _copy(header, piece[1], piece[2], path, places.arrays[piece[0]]), mine):
            check()
            sums.update(found)
            done += count
            show(done, total)
    with transfer.opened(path, os.O_WRONLY) as file:
        transfer.flush(file, show)
    return sums


def _copy(header: Header, name: str, box: Box, path: str, place: int) -> tuple[int, Mapping[_BlockName, int]]:
    """Bytes, and the sums of what the blocks have of the box."""
    entry = header.entries[name]
    shape = entry.layout.shape
    data = read_box(header, entry, box)
    transfer.write(None, path, [transfer.Move(place, whole(shape), box, data)], durable=False)
    found: dict[_BlockName, int] = {}
    for number, block in enumerate(entry.layout.blocks):
        common = block.box.meet(box)
        if common.size:
            found[name, number] = checksum(data[common.within(box)], common, shape)
    return data.nbytes, found


def _finish(header: Header, path: str, places: Places, sums: Sequence[Counter[_BlockName]], target: _Target) -> Path:
    found = sum(sums, Counter[_BlockName]())
    damaged = list(_damaged(header, found))
    if damaged:
        more = [f"and {len(damaged) - _MOST} more"] if len(damaged) > _MOST else []
        raise CheckpointError(f"{header.path}: " + "; ".join([*damaged[:_MOST], *more]))
    table = np.array([one for entry in header.entries.values() for one in entry.sums], "<u8")
    with transfer.opened(path, os.O_RDWR) as file:
        transfer.write_all(file, table.tobytes(), places.sums)
        os.fsync(file)
    return target.publish()


def _damaged(header: Header, found: Mapping[_BlockName, int]) -> Iterator[str]:
    for name, entry in header.entries.items():
        for number, (block, expected) in enumerate(zip(entry.layout.blocks, entry.sums, strict=True)):
            if block.box.size and found[name, number] % (1 << 64) != expected:
                yield f"array '{name}': {block.box}, saved by rank {block.rank}, is not what was saved"
