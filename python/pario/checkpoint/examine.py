"""Examines checkpoints piece by piece: statistics, damage, differences; and merges them.

:func:`merge` makes one file in the newest format of a checkpoint in parts, or in an older format.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pario import hdf5
from pario.checkpoint import container, transfer, types
from pario.checkpoint.attributes import copy_attrs
from pario.checkpoint.checksum import CHUNK_BYTES, Grid, chunk_sums, grid_of
from pario.checkpoint.compression import read_compressed
from pario.checkpoint.container import FORMAT, Label, Places
from pario.checkpoint.errors import CheckpointError, DamageError
from pario.checkpoint.geometry import Box, pieces, whole
from pario.checkpoint.header import Entry, Header
from pario.checkpoint.identity import Identity, read_identity
from pario.checkpoint.store import MASTER, Store
from pario.copying import write_all
from pario.interrupts import check, postpone_interrupt
from pario.paths import local_path
from pario.progress import Show, silent
from pario.publishing import remove, sync_directory
from pario.ranks import Ranks

#: Bytes that are read, compared and written together.
_PIECE = 1 << 26
#: Blocks that an error names.
_MOST_BLOCKS = 5

#: For each array and block, the checksums of its chunks.
_Sums = dict[str, list[types.Array]]


@dataclass(frozen=True)
class Figures:
    """Statistics of the numbers of an array; of the numbers without NaN, and their count."""

    least: float | int | None
    most: float | int | None
    mean: float | None
    not_numbers: int


def read_box(
    header: Header, entry: Entry, box: Box, descriptor: Callable[[str], int] = lambda _: -1
) -> types.Array:
    """Reads a part of an array, with elements as in the file. ``descriptor``: that of an open
    file by its name in extents, or -1."""
    if entry.extents is None and entry.frames is None:
        with hdf5.open_to_read(header.path, CheckpointError) as source:
            return np.asarray(source.read(entry.layout.name, box.within(whole(entry.layout.shape))))
    data = np.empty(box.shape, entry.layout.dtype)
    if entry.frames is not None:
        read_compressed(header.path, entry, box, data)
        return data
    for file, moves in entry.moves(box, data).items():
        transfer.read(header.file(file), moves, opened=descriptor(file))
    return data


def _boxes(entry: Entry, box: Box | None = None) -> Iterator[Box]:
    """Divides an array, or a box of it, into boxes of at most _PIECE bytes."""
    element = max(1, entry.layout.dtype.itemsize)
    return pieces(whole(entry.layout.shape) if box is None else box, max(1, _PIECE // element))


def figures(header: Header, entry: Entry) -> Figures | None:
    """Computes the statistics of an array; None where the elements are not real numbers."""
    if entry.layout.dtype.kind not in "biuf" or entry.layout.note:
        return None
    least, most, total, count, missing = [], [], 0.0, 0, 0
    for box in _boxes(entry):
        data = read_box(header, entry, box)
        numbers = data[~np.isnan(data)] if data.dtype.kind == "f" else data.reshape(-1)
        missing += data.size - numbers.size
        if numbers.size:
            least.append(numbers.min())
            most.append(numbers.max())
            total += float(numbers.sum(dtype="f8"))
            count += numbers.size
    if not count:
        return Figures(None, None, None, missing)
    return Figures(min(least).item(), max(most).item(), total / count, missing)


def damages(header: Header, show: Show = silent) -> Iterator[str]:
    """Describes all blocks whose bytes do not match their checksums."""
    total = sum(entry.layout.nbytes for entry in header.entries.values())
    done = 0

    def show_read(count: int) -> None:
        show(done + count, total)

    for entry in header.entries.values():
        if not len(entry.sums):
            continue
        for number, block in enumerate(entry.layout.blocks):
            yield from damage(header, entry, number, show_read)
            done += block.box.size * entry.layout.dtype.itemsize


def damage(
    header: Header, entry: Entry, number: int, show: Callable[[int], object] | None = None
) -> Iterator[str]:
    """Describes the damaged chunks of a block. ``show`` receives the bytes read so far."""
    block, element = entry.layout.blocks[number], entry.layout.dtype.itemsize
    grid, done = entry.grid(number), 0
    found: types.Array = np.zeros(grid.count, np.uint64)
    for box in _boxes(entry, block.box) if entry.frames is None else grid.boxes():
        try:
            first, sums = chunk_sums(read_box(header, entry, box), box, grid, entry.layout.shape)
        except DamageError as error:  # of one chunk
            yield error.text
            first = grid.number(box.begin)
            sums = entry.sums_of(number)[first : first + 1]
        except CheckpointError as error:
            yield f"array '{entry.layout.name}': {box}: {error}"
            return
        found[first : first + len(sums)] += sums
        done += box.size * element
        if show:
            show(done)
    yield from describe_damage(entry, number, found)


def describe_damage(entry: Entry, number: int, found: types.Array) -> Iterator[str]:
    """Describes the chunks of a block whose checksums differ from those ``found``."""
    block, grid = entry.layout.blocks[number], entry.grid(number)
    wrong = np.flatnonzero(found != entry.sums_of(number))
    if block.box.size and len(wrong):
        yield entry.damage_text(number, grid.bounding_box(wrong))


def differences(one: Header, other: Header, tolerance: float, show: Show = silent) -> Iterator[str]:
    """Describes the differences of two checkpoints.

    Numbers may differ by ``tolerance``, relative to the larger one; NaN equals NaN.
    """
    for name in dict.fromkeys([*one.attrs, *other.attrs]):
        mine, its = one.attrs.get(name), other.attrs.get(name)
        if (
            name not in one.attrs
            or name not in other.attrs
            or not np.array_equal(np.asarray(mine), np.asarray(its))
        ):
            texts = _attr_text(one.attrs, name), _attr_text(other.attrs, name)
            yield f"attribute '{name}': {texts[0]}, {texts[1]}"
    total = sum(entry.layout.nbytes for entry in one.entries.values())
    done = 0
    for name in dict.fromkeys([*one.entries, *other.entries]):
        if name not in other.entries or name not in one.entries:
            yield f"array '{name}': only in {(one if name in one.entries else other).path}"
            continue
        difference = _difference(one, other, name, tolerance)
        if difference:
            yield f"array '{name}': {difference}"
        done += one.entries[name].layout.nbytes
        show(done, total)


def _attr_text(attrs: Mapping[str, Any], name: str) -> str:
    return repr(attrs[name]) if name in attrs else "not there"


def _difference(one: Header, other: Header, name: str, tolerance: float) -> str:
    mine, its = one.entries[name], other.entries[name]
    if mine.layout.shape != its.layout.shape:
        return f"shape {list(mine.layout.shape)}, {list(its.layout.shape)}"
    if (mine.layout.dtype, mine.layout.note) != (its.layout.dtype, its.layout.note):
        return (
            f"type {mine.layout.note or mine.layout.dtype}, {its.layout.note or its.layout.dtype}"
        )
    if mine.sum is not None and mine.sum == its.sum:
        return ""
    count, most, first = 0, 0.0, ""
    for box in _boxes(mine):
        left, right = read_box(one, mine, box), read_box(other, its, box)
        differ, by = _compare(left, right, tolerance)
        if differ.any() and not first:
            at = tuple(int(places[0]) for places in np.nonzero(np.atleast_1d(differ)))
            at = at[: len(box.begin)]
            first = str([begin + place for begin, place in zip(box.begin, at, strict=True)])
        count += int(differ.sum())
        most = max(most, by if types.is_number(mine.layout.note) else 0.0)
    if not count:
        return ""
    if not mine.layout.shape:
        return f"it differs, by {most:.3g}" if most else "it differs"
    by_most = f", by {most:.3g} at most" if most else ""
    size = mine.layout.nbytes // max(mine.layout.dtype.itemsize, 1)
    return f"{count} of {size} elements differ, the first at {first}{by_most}"


def _compare(left: types.Array, right: types.Array, tolerance: float) -> tuple[types.Array, float]:
    """The elements that differ, and their largest difference."""
    if left.dtype.kind not in "biufc":
        return np.asarray(left != right), 0.0
    if left.dtype.kind not in "fc":
        differ = np.asarray(left != right)
        by = np.abs(left.astype("f8") - right.astype("f8"))
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            by = np.abs(left - right)
            limit = tolerance * np.maximum(np.abs(left), np.abs(right))
            close = (left == right) | (np.isnan(left) & np.isnan(right)) | (by <= limit)
        differ = np.asarray(~close)
    if differ.ndim:
        return differ, float(np.max(by[differ], initial=0.0))
    return differ, float(by) if differ else 0.0


def slice_of(header: Header, name: str, axis: int, index: int | None) -> types.Array:
    """Reads two axes of an array. Of an array with more, ``axis`` is cut at ``index`` (None: in the
    middle), and further axes in the middle."""
    if name not in header.entries:
        raise CheckpointError(header.describe_missing(name))
    entry = header.entries[name]
    shape = entry.layout.shape
    is_numeric = entry.layout.dtype.kind in "biuf" and types.is_number(entry.layout.note)
    if not is_numeric or 0 in shape or not shape:
        raise CheckpointError(
            f"array '{name}' of type {entry.layout.dtype} and shape {list(shape)} cannot be drawn"
        )
    if len(shape) > 2 and not -len(shape) <= axis < len(shape):
        raise CheckpointError(f"array '{name}' of shape {list(shape)} has no axis {axis}")
    fixed = [axis % len(shape)] if len(shape) > 2 else []
    fixed += [other for other in range(len(shape)) if other not in fixed][
        : max(0, len(shape) - 2 - len(fixed))
    ]
    begin, size = [0] * len(shape), list(shape)
    for one in fixed:
        begin[one] = shape[one] // 2 if index is None or one != fixed[0] else index
        size[one] = 1
    box = Box(tuple(begin), tuple(size))
    if box.meet(whole(shape)) != box:
        raise CheckpointError(
            f"array '{name}' of shape {list(shape)} has no index {index} along axis {axis}"
        )
    return read_box(header, entry, box).squeeze(axis=tuple(fixed))


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
        self._step, self._output = header.step, output
        self._store: Store | None = None
        path = Path(header.path).absolute()
        saved = read_identity(path)
        #: The identity of the source, because the merged file is the same checkpoint.
        self.identity = saved or Identity(0, header.step, secrets.token_hex(16))
        if output is not None:
            self.part = output.with_name(output.name + ".part")
            remove(self.part)
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
            generation = store.read_manifest()[0].generation_of(here.name)
            self.identity = replace(self.identity, generation=generation)
        store.claim(torn=False)
        self._store, self.part = store, store.part(header.step)
        store.clear_link(header.step)

    def publish(self) -> Path:
        """Renames the file to its final name. In place, it keeps the checkpoint's generation."""
        if self._store is not None:
            return self._store.publish(self._step)
        assert self._output is not None
        try:
            self.part.replace(self._output)
        except OSError as error:
            raise CheckpointError(f"cannot write {self._output}: {error.strerror}") from error
        sync_directory(self._output.parent)
        return self._output

    def close(self) -> None:
        """Removes an unpublished file and unlocks the directory."""
        with suppress(OSError):
            self.part.unlink(missing_ok=True)
        if self._store is not None:
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
        for box in _boxes(entry)
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
