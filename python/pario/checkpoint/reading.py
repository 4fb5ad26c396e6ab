"""One collective call that reads parts of arrays: the requests and transfers of all ranks, and the
checks of the bytes."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pario.checkpoint import exchange, transfer, types
from pario.checkpoint.checksum import checksum, chunk_sums, unproven
from pario.checkpoint.compression import read_compressed, thread_count
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.examine import damage, describe_damage, read_box
from pario.checkpoint.geometry import Box, divide, divide_to_tiles, whole
from pario.checkpoint.header import Entry, Header
from pario.checkpoint.node_files import NodeFiles, Offer, Orders, assign_openers
from pario.checkpoint.shared import list_files, read_shared, scratch_needed
from pario.interrupts import defer_interrupt, keep_error
from pario.progress import Show, show_long_work
from pario.ranks import Ranks

#: Nodes that may open a file at the same time without harm to its server.
_MOST_OPENS = 256
#: How often all ranks, or those of a node, may read an array on average before they read it
#: together; and the bytes of their parts from which on that matters.
_MOST_READS, _MUCH = 1.5, 1 << 22
_MOST_READS_ON_NODE, _MUCH_ON_NODE = 1.05, 1 << 20
#: Damages that an error names.
_MOST_DAMAGES = 5

#: Part of an array: its offset and its shape, in elements.
Part = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True)
class _Request:
    """A rank's request for parts of an array."""

    name: str
    boxes: tuple[Box, ...]
    shared: bool  # all ranks read the whole array


@dataclass(frozen=True)
class _Asked:
    """All requests of a rank."""

    requests: Sequence[_Request]
    files: Sequence[str]  # from which it reads parts of arrays
    large: bool  # in large runs
    joint: bool  # may read files together with all others
    joint_on_node: bool  # may do so with the others of its node
    offer: Offer  # of files that it may share with its node


@dataclass(frozen=True)
class _Agreed:
    """The way in which the ranks read."""

    # disjoint pieces of this rank's parts, part by part, which tile an array with those of others
    pieces: Mapping[str, Sequence[Sequence[Box]]]
    boxes: Mapping[str, Sequence[Box]]  # the parts of all ranks of the other arrays
    together: Sequence[str] | None  # files read together; None: this rank reads its runs alone
    node: bool  # together with the ranks of its node, otherwise with all
    orders: Orders  # the files that this rank opens for others of its node
    shares: bool  # whether any rank has such orders


class Reading:
    """One collective call that reads parts of arrays: requests, transfers, checks."""

    def __init__(self, ranks: Ranks, header: Header, files: NodeFiles, *, verify: bool) -> None:
        self._ranks, self._header, self._files, self._verify = ranks, header, files, verify
        self._what = f"reading {header.name}"
        self._requests: list[_Request] = []
        self._read: dict[str, list[types.Array]] = {}  # by array, the elements as in the file
        self._moves: dict[str, list[transfer.Move]] = {}  # by file
        self._scratch: types.Array = np.empty(0, np.uint8)  # for arrays that the ranks share

    def run(
        self,
        parts: Mapping[str, Sequence[Part] | None],
        targets: Mapping[str, Sequence[types.Array]],
    ) -> dict[str, list[types.Array]]:
        """Reads and checks the parts; their elements are as in the file."""
        ranks = self._ranks
        try:
            agreed = ranks.deal(self._what, lambda: self._ask(parts, targets), self._judge)
            if agreed.shares:  # all descriptors are sent before any rank receives
                ranks.agree(self._what, lambda: self._files.send(agreed.orders))
        finally:
            self._files.receive()
        damaged = ranks.together(self._what, lambda: self._transfer(agreed), self._find_damaged)
        if damaged:
            ranks.together(
                self._what,
                lambda: self._locate(damaged),
                lambda found: self._raise_all(damaged, found),
            )
        return self._read

    def _ask(
        self,
        parts: Mapping[str, Sequence[Part] | None],
        targets: Mapping[str, Sequence[types.Array]],
    ) -> _Asked:
        """Plans this rank's moves and allocates all memory, while an error makes no rank wait."""
        self._requests = [self._request(name, some) for name, some in parts.items()]
        for request in self._requests:
            read = self._buffers(request, targets.get(request.name))
            self._read[request.name] = read
            entry = self._entry(request.name)
            if entry.extents is not None and not self._is_shared(request):
                for box, data in zip(request.boxes, read, strict=True):
                    for file, moves in entry.moves(box, data).items():
                        self._moves.setdefault(file, []).extend(moves)
        shared = [self._entry(one.name) for one in self._requests if self._is_shared(one)]
        self._scratch = np.empty(max(map(scratch_needed, shared), default=0), np.uint8)
        boxes = (
            (move.stored, move.box, move.data.dtype.itemsize)
            for some in self._moves.values()
            for move in some
        )
        large = transfer.are_large(boxes)
        files = [*self._moves, *(one for entry in shared for one in list_files(self._ranks, entry))]
        for request in self._requests:
            extents = self._entry(request.name).extents or ()
            if len(extents) == 1 and not self._is_shared(request):
                files.append(extents[0].file)  # of which this rank may have to check chunks
            if self._entry(request.name).frames is not None:
                files.append("")
        offer = self._files.offer(files)
        joint, joint_on_node = self._ranks.can_open_files, self._ranks.can_open_on_node
        return _Asked(self._requests, list(self._moves), large, joint, joint_on_node, offer)

    def _entry(self, name: str) -> Entry:
        return self._header.entries[name]

    def _request(self, name: str, parts: Sequence[Part] | None) -> _Request:
        if name not in self._header.entries:
            raise CheckpointError(self._header.describe_missing(name))
        if parts is None:
            return _Request(name, (whole(self._entry(name).layout.shape),), shared=True)
        return _Request(name, tuple(self._box(name, part) for part in parts), shared=False)

    def _box(self, name: str, part: Part) -> Box:
        shape = self._entry(name).layout.shape
        try:
            box = Box(*(tuple(operator.index(number) for number in numbers) for numbers in part))
        except TypeError as error:
            raise CheckpointError(
                f"array '{name}': part {part}; expected offset and shape of integers"
            ) from error
        if not len(box.begin) == len(box.shape) == len(shape):
            raise CheckpointError(
                f"array '{name}' has {len(shape)} axes; a part of {len(box.begin)} and"
                f" {len(box.shape)} was asked for"
            )
        is_outside = box.size and box.meet(whole(shape)) != box
        if is_outside or min((*box.begin, *box.shape), default=0) < 0:
            raise CheckpointError(f"array '{name}': {box} lies outside of it: {whole(shape)}")
        return box

    def _buffers(
        self, request: _Request, targets: Sequence[types.Array] | None
    ) -> list[types.Array]:
        """The arrays that receive the bytes: the targets, where they have the file's type."""
        layout = self._entry(request.name).layout
        if targets is None:
            return [np.empty(box.shape, layout.dtype) for box in request.boxes]
        found = []
        saved = types.type_of_note(layout.note, layout.dtype)
        for box, target in zip(request.boxes, targets, strict=True):
            if not isinstance(target, np.ndarray):
                raise CheckpointError(
                    f"array '{request.name}': its target is a {type(target).__name__}; expected a"
                    " numpy.ndarray"
                )
            if target.shape != box.shape:
                raise CheckpointError(
                    f"array '{request.name}': the part has shape {list(box.shape)}, its target"
                    f" {list(target.shape)}"
                )
            if not (
                types.keeps_values(saved.name, target.dtype.name)
                or np.can_cast(saved, target.dtype, "safe")
            ):
                raise CheckpointError(
                    f"array '{request.name}': its elements are {saved}, those of its target"
                    f" {target.dtype}, which does not hold their values"
                )
            fits = target.dtype == layout.dtype and not layout.note and target.flags.c_contiguous
            found.append(target if fits else np.empty(box.shape, layout.dtype))
        return found

    def _is_shared(self, request: _Request) -> bool:
        """True if the ranks read shares of an array and exchange them."""
        return (
            request.shared
            and self._ranks.comm is not None
            and self._entry(request.name).extents is not None
        )

    def _judge(self, everyones: list[_Asked]) -> list[_Agreed]:
        """Decides how each rank reads. Raises CheckpointError where they read different arrays."""
        names = [[request.name for request in asked.requests] for asked in everyones]
        for rank, theirs in enumerate(names):
            if theirs != names[0]:
                raise CheckpointError(
                    f"rank {rank} reads {', '.join(theirs)}, rank 0 {', '.join(names[0])}: all"
                    " ranks read the same arrays"
                )
        pieces: list[dict[str, list[list[Box]]]] = [{} for _ in everyones]
        boxes: dict[str, list[Box]] = {}
        for requests in zip(*(asked.requests for asked in everyones), strict=True):
            name = requests[0].name
            if any(request.shared != requests[0].shared for request in requests):
                raise CheckpointError(
                    f"array '{name}': some ranks read all of it, others parts; say the part on all"
                    " ranks"
                )
            parts = [box for request in requests for box in request.boxes]
            tiles = (
                [] if requests[0].shared else divide_to_tiles(self._entry(name).layout.shape, parts)
            )
            if tiles is None:
                boxes[name] = parts
                continue
            for mine, request in zip(pieces, requests, strict=True):
                mine[name], tiles = tiles[: len(request.boxes)], tiles[len(request.boxes) :]
        together, node = self._list_joint_files(everyones)
        orders = assign_openers([asked.offer for asked in everyones], together)
        return [
            _Agreed(mine, boxes, together.get(asked.offer.node), node, order, any(orders))
            for mine, asked, order in zip(pieces, everyones, orders, strict=True)
        ]

    def _list_joint_files(self, everyones: Sequence[_Asked]) -> tuple[dict[int, list[str]], bool]:
        """The files that all ranks of a node read together, by the number of the node; and whether
        each node does so by itself. Other ranks read their own parts: large runs, of which few are
        read by several ranks, by few nodes."""
        nodes: dict[int, list[_Asked]] = {}
        for asked in everyones:
            nodes.setdefault(asked.offer.node, []).append(asked)
        files = {
            node: sorted({file for asked in some for file in asked.files})
            for node, some in nodes.items()
        }
        opens = Counter(file for some in files.values() for file in some)
        few = max(opens.values(), default=0) <= _MOST_OPENS
        gains = not few or self._gains_together(everyones, _MOST_READS, _MUCH)
        if gains and all(asked.joint for asked in everyones):
            return dict.fromkeys(nodes, sorted(opens)), False
        return {
            node: files[node]
            for node, some in nodes.items()
            if all(asked.joint_on_node for asked in some)
            and self._gains_together(some, _MOST_READS_ON_NODE, _MUCH_ON_NODE)
        }, True

    def _gains_together(self, everyones: Sequence[_Asked], most: float, much: int) -> bool:
        """True if the runs of some ranks are short, or they read an array of ``much`` bytes or more
        at least ``most`` times on average: more elements than a box around all parts has."""
        if not all(asked.large for asked in everyones):
            return True
        for requests in zip(*(asked.requests for asked in everyones), strict=True):
            boxes = [box for one in requests for box in one.boxes if box.size]
            size = sum(box.size for box in boxes)
            element = self._entry(requests[0].name).layout.dtype.itemsize
            if size * element >= much and not self._is_shared(requests[0]):
                begin = np.min([box.begin for box in boxes], axis=0)
                around = np.max([box.end for box in boxes], axis=0) - begin
                if size >= most * int(np.prod(around)):
                    return True
        return False

    def _transfer(self, agreed: _Agreed) -> list[int | None]:
        """Reads and checks this rank's parts. Returns :meth:`_check` of each request."""
        failed: list[BaseException] = []  # raised at the end: other ranks wait in collective calls
        text = f"loading {self._header.name}"
        with show_long_work(text, here=self._ranks.rank == 0) as show:
            with defer_interrupt(failed):
                self._read_shared_arrays(self._ranks.moving(show), failed)
                self._read_files(agreed, self._ranks.moving(show), failed)
            if failed:
                raise failed[0]
        show = self._ranks.moving()
        return [self._check(request, agreed, show) for request in self._requests]

    def _read_shared_arrays(self, show: Show, failed: list[BaseException]) -> None:
        for request in self._requests:
            entry, read = self._entry(request.name), self._read[request.name]
            if entry.frames is not None:
                with keep_error(failed):
                    for box, data in zip(request.boxes, read, strict=True):
                        self._read_compressed(entry, box, data, show)
            elif entry.extents is None:
                with keep_error(failed):
                    read[:] = [read_box(self._header, entry, box) for box in request.boxes]
            elif self._is_shared(request):
                read_shared(
                    self._ranks,
                    self._header,
                    entry,
                    read[0],
                    self._scratch,
                    self._files,
                    failed,
                    show,
                )

    def _read_compressed(self, entry: Entry, box: Box, data: types.Array, show: Show) -> None:
        read_compressed(
            self._header,
            entry,
            box,
            data,
            opened=self._files.descriptor(""),
            verify=self._verify,
            threads=thread_count(self._ranks),
            show=show,
        )

    def _read_files(self, agreed: _Agreed, show: Show, failed: list[BaseException]) -> None:
        """Ranks that read together make the same collective calls, even after an error."""
        for file in self._moves if agreed.together is None else agreed.together:
            path, moves = self._header.file(file), self._moves.get(file, ())
            opened = self._files.descriptor(file)
            with keep_error(failed):
                if agreed.together is None:
                    transfer.read(path, moves, opened=opened, show=show)
                else:
                    exchange.read(
                        self._ranks, path, moves, node=agreed.node, opened=opened, show=show
                    )

    def _check(self, request: _Request, agreed: _Agreed, show: Show) -> int | None:
        """The checksum of this rank's parts, where those of all ranks add up to the array's;
        otherwise checks the chunks of the parts and returns None."""
        entry, read = self._entry(request.name), self._read[request.name]
        shape = entry.layout.shape
        if not self._verify or entry.sum is None or entry.frames is not None:
            return None  # compressed chunks were checked when they were read
        if request.shared:
            size = read[0].size
            share = divide((size,), self._ranks.size, self._ranks.rank)
            return checksum(read[0].reshape(-1)[share.within(whole((size,)))], share, (size,))
        if request.name in agreed.pieces:
            pieces = zip(request.boxes, read, agreed.pieces[request.name], strict=True)
            return sum(
                checksum(data[piece.within(box)], piece, shape)
                for box, data, some in pieces
                for piece in some
            )
        for box, data in zip(request.boxes, read, strict=True):
            self._check_contained(entry, box, data)
        if entry.chunk_bytes:
            self._check_unproven(entry, agreed.boxes[request.name], show)
        return None

    def _check_contained(self, entry: Entry, box: Box, data: types.Array) -> None:
        """Checks the chunks that lie completely in a part."""
        for number in entry.blocks_in(box):
            grid = entry.grid(number)
            if (some := grid.chunks_within(box)) is None:
                continue
            inner = grid.around(some)
            first, sums = chunk_sums(data[inner.within(box)], inner, grid, entry.layout.shape)
            found = entry.sums_of(number).copy()
            chunks = np.arange(grid.count).reshape(grid.counts)[some].reshape(-1)
            found[chunks] = sums[chunks - first]
            self._raise_damage(entry, number, found)

    def _check_unproven(self, entry: Entry, boxes: Sequence[Box], show: Show) -> None:
        """Reads and checks this rank's share of the chunks that no rank has read completely."""
        touched = sorted({number for box in boxes for number in entry.blocks_in(box)})
        for number in touched[self._ranks.rank :: self._ranks.size]:
            grid, found = entry.grid(number), entry.sums_of(number).copy()
            for chunk, box in unproven(grid, boxes):
                data = read_box(self._header, entry, box, self._files.descriptor)
                found[chunk] = chunk_sums(data, box, grid, entry.layout.shape)[1][0]
                show(chunk, grid.count)
            self._raise_damage(entry, number, found)

    def _raise_damage(self, entry: Entry, number: int, found: types.Array) -> None:
        for text in describe_damage(entry, number, found):
            raise CheckpointError(f"{self._header.name}: {text}")

    def _find_damaged(self, sums: list[list[int | None]]) -> list[str]:
        """The names of arrays whose checksum differs, on rank 0."""
        found = []
        for request, parts in zip(self._requests, zip(*sums, strict=True), strict=True):
            known = [part for part in parts if part is not None]
            if len(known) == len(parts) and sum(known) % (1 << 64) != self._entry(request.name).sum:
                found.append(request.name)
        return found

    def _locate(self, damaged: Sequence[str]) -> list[str]:
        """Describes the damage in this rank's share of the blocks."""
        blocks = [
            (name, number)
            for name in damaged
            for number in range(len(self._entry(name).layout.blocks))
        ]
        return [
            text
            for name, number in blocks[self._ranks.rank :: self._ranks.size]
            for text in damage(self._header, self._entry(name), number)
        ]

    def _raise_all(self, damaged: Sequence[str], found: Sequence[Sequence[str]]) -> None:
        texts = [text for some in found for text in some] or [
            f"array '{name}' is not what was saved" for name in damaged
        ]
        more = [f"and {len(texts) - _MOST_DAMAGES} more"] if len(texts) > _MOST_DAMAGES else []
        raise CheckpointError(
            f"{self._header.name}: {'; '.join([*texts[:_MOST_DAMAGES], *more])}; load(step=...)"
            " takes an older one"
        )
