"""Staging: saves end in memory or on disks of the nodes; a thread of each node drains them.

The files of a node's stage have the bytes that its ranks wrote, at the offsets of the checkpoint's
files. A note beside them lists those bytes, so that the next Writer drains the steps that a killed
one has left.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import runs, strides
from pario.checkpoint.identity import Identity
from pario.checkpoint.store import MASTER, Store
from pario.checkpoint.transfer import Move, flush, open_file
from pario.checkpoint.types import Array
from pario.copying import write_all
from pario.paths import resolve
from pario.progress import Show

#: Bytes that are drained together.
_PIECE = 1 << 26

#: An offset beyond the end of all files.
END = 1 << 62
_NONE = np.empty((0, 2), np.int64)


@dataclass(frozen=True)
class Place:
    """The place of a rank: its node, and whether it leads the node."""

    node: int
    nodes: int
    leads: bool


@dataclass(frozen=True)
class Staged:
    """The part of a checkpoint in a node's stage."""

    step: int
    save: str  # of the identity: the same on all nodes
    node: int
    nodes: int  # with parts of it
    ranges: Mapping[str, Sequence[tuple[int, int]]]  # bytes of each file that this node drains
    generation: int = 0  # 0: of an earlier pario without generations

    @property
    def in_parts(self) -> bool:
        """True if the checkpoint has several files."""
        return "" not in self.ranges


@dataclass(frozen=True)
class Written:
    """The bytes that a rank writes of a checkpoint to its stage."""

    ranges: Mapping[str, Array]  # by file, rows of begin and end
    made: Mapping[str, int]  # files that this rank makes, and their sizes


def places(names: Sequence[str]) -> list[Place]:
    """The places of all ranks, from the names of their nodes."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [
        Place(numbers[name], len(numbers), names.index(name) == rank)
        for rank, name in enumerate(names)
    ]


class Stage:
    """This node's stage for the checkpoints of one directory.

    All ranks of the node write to its files; the leader calls the methods.
    """

    def __init__(self, directory: str | os.PathLike[str], target: Store, place: Place) -> None:
        there = resolve(target.directory)  # the same for every name of it
        key = hashlib.blake2b(os.fsencode(there), digest_size=6).hexdigest()
        own = Path(directory) / f"{there.name}-{key}"
        self.store = Store(own, in_parts=target.in_parts, has_manifest=False, durable=False)
        self.place = place

    def claim(self) -> list[Staged]:
        """Locks the stage. Returns the steps that another Writer has left."""
        self.store.claim()
        found = [self.read_note(found.step) for found in self.store.complete()]
        return [staged for staged in found if staged is not None]

    def keep(self, own: Identity, ranges: Mapping[str, Array]) -> None:
        """Keeps a step that all ranks have written until it is drained, even by another process.

        ``ranges``: by file the bytes of this node; may end beyond the file. Collective over the
        leaders. Raises OSError or CheckpointError.
        """
        place, step = self.place, own.step
        self.store.begin(step)
        all_ranges = {MASTER if self.store.in_parts else "": _NONE, **ranges}  # marks the step
        rows = {
            name: self._in_file(self.store.file(self.store.part(step), name), theirs)
            for name, theirs in all_ranges.items()
        }
        staged = Staged(step, own.save, place.node, place.nodes, rows, own.generation)
        note = self._note(step)
        note.unlink(missing_ok=True)  # a note never describes other files than its own
        self.store.publish(step)
        note.write_text(json.dumps(asdict(staged)))

    @staticmethod
    def _in_file(path: Path, ranges: Array) -> list[tuple[int, int]]:
        """The ranges within a file, which is made if no rank of this node has written to it."""
        with open_file(str(path), os.O_WRONLY | os.O_CREAT) as file:
            found: list[tuple[int, int]] = np.minimum(ranges, os.fstat(file).st_size).tolist()
        return found

    def read_note(self, step: int) -> Staged | None:
        """The note about a step; None if there is none."""
        try:
            note = json.loads(self._note(step).read_text())
            note.pop("saved", None)  # the time, of an earlier pario without generations
            return Staged(**note)
        except (OSError, ValueError, TypeError):
            return None

    def drain(self, step: int, target: Store, *, durable: bool, show: Show) -> None:
        """Copies this node's bytes of a step to the same offsets of a store's unfinished files."""
        staged = self.read_note(step)
        if staged is None:
            raise CheckpointError(f"{self.store.path(step)}: the staged files were removed")
        source, target = self.store.of_form(staged.in_parts), target.of_form(staged.in_parts)
        target.begin(step)
        for name, ranges in staged.ranges.items():
            _copy(
                source.file(source.path(step), name),
                target.file(target.part(step), name),
                ranges,
                durable=durable,
                show=show,
            )

    def remove(self, step: int) -> None:
        """Removes a drained or refused step."""
        self._note(step).unlink(missing_ok=True)  # a step without note is removed by clear()
        self.store.drop(step)

    def clear(self) -> None:
        """Removes all steps."""
        for found in self.store.complete():
            self.remove(found.step)

    def _note(self, step: int) -> Path:
        return self.store.path(step).with_suffix(".json")


def written_ranges(moves: Sequence[Move]) -> Array:
    """The ranges of a file that moves fill: rows of begin and end, in order."""
    found = [_NONE]
    for move in moves:
        if move.box.size:
            element = move.data.dtype.itemsize
            begins, _, length = runs(
                move.box, move.stored, element, strides(move.box.shape, element)
            )
            found.append(np.column_stack([begins + move.place, begins + move.place + length]))
    return join_ranges(np.concatenate(found))


def join_ranges(ranges: Array) -> Array:
    """Sorts ranges that do not overlap, and joins adjacent ones."""
    full = ranges[ranges[:, 1] > ranges[:, 0]]
    full = full[np.argsort(full[:, 0])]
    if not len(full):
        return full
    first = np.flatnonzero(np.append(True, full[1:, 0] > full[:-1, 1]))
    last = np.append(first[1:] - 1, len(full) - 1)
    return np.column_stack([full[first, 0], full[last, 1]])


def shares(written: Sequence[Written], nodes: Sequence[int]) -> list[dict[str, Array]]:
    """The bytes of each file that each node drains. Pure.

    ``written``: of each rank; ``nodes``: the node of each rank. The maker of a file also drains the
    bytes that no rank writes.
    """
    found: list[dict[str, Array]] = [{} for _ in range(max(nodes) + 1)]
    makers = {
        name: node for theirs, node in zip(written, nodes, strict=True) for name in theirs.made
    }
    for name, maker in makers.items():
        by_node: dict[int, list[Array]] = {maker: []}
        for theirs, node in zip(written, nodes, strict=True):
            if name in theirs.ranges:
                by_node.setdefault(node, []).append(theirs.ranges[name])
        for node, ranges in by_node.items():
            found[node][name] = join_ranges(np.concatenate([_NONE, *ranges]))
        others = join_ranges(
            np.concatenate([_NONE, *(found[node][name] for node in by_node if node != maker)])
        )
        gaps = np.concatenate([[0], others.reshape(-1), [END]]).reshape(-1, 2)
        found[maker][name] = join_ranges(gaps)
    return found


def _copy(
    source: Path, target: Path, ranges: Sequence[tuple[int, int]], *, durable: bool, show: Show
) -> None:
    content = np.memmap(source, np.uint8, "r").data if ranges else memoryview(b"")
    with open_file(str(target), os.O_WRONLY | os.O_CREAT) as file:
        for begin, end in _pieces(ranges):
            write_all(file, begin, content[begin:end])
            show(end, len(content))
        if durable:
            flush(file, show)


def _pieces(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for begin, end in ranges:
        for at in range(begin, end, _PIECE):
            yield at, min(end, at + _PIECE)
