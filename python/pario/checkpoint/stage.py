"""A first stage of checkpoints, in memory or on disks of the nodes: saving ends there, and a thread of each node drains it.

The files of a node have what its ranks wrote, at the places that it has in those of the checkpoint. A note beside them says which bytes
those are, so that the next Writer drains what a killed one has left.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import runs, strides
from pario.checkpoint.identity import Identity
from pario.checkpoint.store import MASTER, Store
from pario.checkpoint.transfer import Move, flush, opened, write_all
from pario.checkpoint.types import Array
from pario.progress import Show, silent

#: Bytes that are drained together.
_PIECE = 1 << 26

#: Beyond the end of all files.
END = 1 << 62
_NONE = np.empty((0, 2), np.int64)


@dataclass(frozen=True)
class Place:
    """A rank among those of its node."""

    node: int
    nodes: int
    leads: bool


@dataclass(frozen=True)
class Staged:
    """What a node has of a checkpoint in its stage."""

    step: int
    save: str  # which one it is part of: the same on all nodes
    node: int
    nodes: int  # that have parts of it
    ranges: Mapping[str, Sequence[tuple[int, int]]]  # of the bytes of each file that are this node's
    generation: int = 0  # 0: of a pario whose checkpoints had none

    @property
    def in_parts(self) -> bool:
        """Whether it is several files."""
        return "" not in self.ranges


@dataclass(frozen=True)
class Written:
    """What a rank writes of a checkpoint to its stage, by file."""

    ranges: Mapping[str, Array]  # rows of begin and end
    made: Mapping[str, int]  # files that this rank makes, and their sizes


def node_name() -> str:
    """The same for ranks that see the same stage. Nodes may all be called localhost; containers of a node are not."""
    try:
        return f"{socket.gethostname()} {Path('/proc/sys/kernel/random/boot_id').read_text()}"
    except OSError:
        return socket.gethostname()


def places(names: Sequence[str]) -> list[Place]:
    """Those of all ranks, which are on nodes of these names."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [Place(numbers[name], len(numbers), names.index(name) == rank) for rank, name in enumerate(names)]


class Stage:
    """That of this node, for the checkpoints of one directory. All its ranks write to its files; one of them does what is done here."""

    def __init__(self, directory: str | os.PathLike[str], target: Store, place: Place) -> None:
        there = Path(os.path.realpath(target.directory))  # whatever it is called the next time
        key = hashlib.blake2b(os.fsencode(there), digest_size=6).hexdigest()
        own = Path(directory) / f"{there.name}-{key}"
        self.store, self.place = Store(own, in_parts=target.in_parts, has_manifest=False), place

    def claim(self) -> list[Staged]:
        """What another Writer has left."""
        self.store.claim()
        return [staged for found in self.store.complete() if (staged := self.staged(found.step)) is not None]

    def keep(self, own: Identity, ranges: Mapping[str, Array]) -> None:
        """Keeps a step that all ranks have written until it is drained, even if this process ends.

        ``ranges``: by file the bytes of this node, which may end beyond it. Collective over the
        nodes.
        """
        place, step = self.place, own.step
        self.store.begin(step)
        all_ranges = {MASTER if self.store.in_parts else "": _NONE, **ranges}  # by which a step is found
        rows = {name: self._in_file(self.store.file(self.store.part(step), name), theirs) for name, theirs in all_ranges.items()}
        staged = Staged(step, own.save, place.node, place.nodes, rows, own.generation)
        self._note(step).unlink(missing_ok=True)  # a note tells of no other files than its own, whenever this ends
        self.store.publish(step)
        self._note(step).write_text(json.dumps(asdict(staged)))

    @staticmethod
    def _in_file(path: Path, ranges: Array) -> list[tuple[int, int]]:
        """As far as the file goes. No rank of this node may have written anything to it."""
        with opened(str(path), os.O_WRONLY | os.O_CREAT) as file:
            found: list[tuple[int, int]] = np.minimum(ranges, os.fstat(file).st_size).tolist()
        return found

    def staged(self, step: int) -> Staged | None:
        """What this node has of a step."""
        try:
            note = json.loads(self._note(step).read_text())
            note.pop("saved", None)  # the time, by a pario whose checkpoints had no generation
            return Staged(**note)
        except (OSError, ValueError, TypeError):
            return None

    def drain(self, step: int, target: Store, *, durable: bool, show: Show = silent) -> None:
        """Copies what this node has of a step to the same places of files of a store, which may be new."""
        staged = self.staged(step)
        if staged is None:
            raise CheckpointError(f"{self.store.path(step)}: what was staged is gone")
        source, target = self.store.of_form(staged.in_parts), target.of_form(staged.in_parts)
        target.begin(step)
        for name, ranges in staged.ranges.items():
            _copy(source.file(source.path(step), name), target.file(target.part(step), name), ranges, durable=durable, show=show)

    def remove(self, step: int) -> None:
        """A step that is drained, or shall not be."""
        self._note(step).unlink(missing_ok=True)  # one without a note is found again
        self.store.drop(step)

    def clear(self) -> None:
        """All steps."""
        for found in self.store.complete():
            self.remove(found.step)

    def _note(self, step: int) -> Path:
        return self.store.path(step).with_suffix(".json")


def judge(left: Sequence[Sequence[Staged]], last: int, published: Collection[str]) -> tuple[list[Staged], list[str]]:
    """The saves that other Writers have left on the nodes and that are drained, in order (the note
    of the first node of each), and the messages about all of them.

    ``last``: the highest generation that was published in the directory; ``published``: saves that
    are there.
    """
    saves: dict[str, list[Staged]] = {}
    for staged in (staged for theirs in left for staged in theirs):
        saves.setdefault(staged.save, []).append(staged)
    drained, said = [], []
    for parts in sorted(saves.values(), key=lambda parts: parts[0].generation):
        first = min(parts, key=lambda one: one.node)
        step, absent = first.step, set(range(first.nodes)) - {one.node for one in parts}
        if absent:
            said.append(f"step {step} was left in the stage, and {len(absent)} of {parts[0].nodes} nodes are not here; it is removed")
        elif first.generation > last or not last:
            drained.append(first)
            said.append(f"step {step} was left in the stage; it is drained")
        elif first.save not in published:
            said.append(f"step {step} was left in the stage, and a newer one was saved since; it is removed")
    return drained, said


def written_by(moves: Sequence[Move]) -> Array:
    """The ranges of a file that moves fill: rows of begin and end, in order."""
    found = [_NONE]
    for move in moves:
        if move.box.size:
            element = move.data.dtype.itemsize
            begins, _, length = runs(move.box, move.stored, element, strides(move.box.shape, element))
            found.append(np.column_stack([begins + move.place, begins + move.place + length]))
    return joined(np.concatenate(found))


def joined(ranges: Array) -> Array:
    """Ranges that do not overlap, in order; those that touch are one."""
    full = ranges[ranges[:, 1] > ranges[:, 0]]
    full = full[np.argsort(full[:, 0])]
    first = np.flatnonzero(np.append(True, full[1:, 0] > full[:-1, 1])) if len(full) else np.empty(0, np.int64)
    last = np.append(first[1:] - 1, len(full) - 1) if len(full) else first
    return np.column_stack([full[first, 0], full[last, 1]])


def shares(written: Sequence[Written], nodes: Sequence[int]) -> list[dict[str, Array]]:
    """For each node by file the bytes that it drains, from what each rank writes: who makes a file also has what no rank writes."""
    found: list[dict[str, Array]] = [{} for _ in range(max(nodes) + 1)]
    makers = {name: node for theirs, node in zip(written, nodes, strict=True) for name in theirs.made}
    for name, maker in makers.items():
        by_node: dict[int, list[Array]] = {maker: []}
        for theirs, node in zip(written, nodes, strict=True):
            if name in theirs.ranges:
                by_node.setdefault(node, []).append(theirs.ranges[name])
        for node, ranges in by_node.items():
            found[node][name] = joined(np.concatenate([_NONE, *ranges]))
        others = joined(np.concatenate([_NONE, *(found[node][name] for node in by_node if node != maker)]))
        found[maker][name] = joined(np.concatenate([[0], others.reshape(-1), [END]]).reshape(-1, 2))
    return found


def _copy(source: Path, target: Path, ranges: Sequence[tuple[int, int]], *, durable: bool, show: Show) -> None:
    content = np.memmap(source, np.uint8, "r").data if ranges else memoryview(b"")
    with opened(str(target), os.O_WRONLY | os.O_CREAT) as file:
        for begin, end in _pieces(ranges):
            write_all(file, content[begin:end], begin)
            show(end, len(content))
        if durable:
            flush(file, show)


def _pieces(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for begin, end in ranges:
        for at in range(begin, end, _PIECE):
            yield at, min(end, at + _PIECE)
