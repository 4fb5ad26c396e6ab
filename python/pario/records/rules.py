"""The rules that divide the samples of an epoch into batches: full ones, by tokens, by length,
packed windows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pario.errors import ParioError
from pario.records.passes import Place
from pario.records.state import check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Item(NamedTuple):
    """A sample of an epoch."""

    position: int
    length: int
    #: Its content for the rule, or the number of its record if it has not been read.
    source: Any


class WindowPart(NamedTuple):
    """The tokens of a document that are in one window."""

    document: Item
    begin: int
    tokens: int


#: The contents of samples by their positions.
Contents = Mapping[int, Any]


class Output(NamedTuple):
    """A batch, and the place behind it, from which the division continues."""

    batch: list[Any]
    position: int
    skip: int = 0


class Rule(Protocol):
    """Divides samples into batches. ``Batching`` makes lists of items, ``Packing`` lists of windows
    of pieces."""

    def facts(self) -> list[Any]:
        """Names and numbers that determine the division."""

    def measure(self, sample: Any) -> tuple[int, Any]:
        """The length of a sample for the division, and its content."""

    def known_length(self, length: int) -> int:
        """The length for the division of a sample whose length was given."""

    def outputs(self, items: Iterable[Item], place: Place) -> Iterator[Output]:
        """The batches of an epoch's samples from ``place.position`` on, without the first
        ``place.skip`` tokens or batches."""

    def items_of(self, batch: list[Any]) -> list[Item]:
        """The samples of a batch, each once."""

    def content(self, item: Item, sample: Any) -> Any:
        """The content of a sample that was read after the division; ParioError: its length is not
        the given one."""

    def join(
        self, batch: list[Any], contents: Contents, collate: Callable[[list[Any]], Any]
    ) -> Any:
        """The batch as it is given to the program."""


@dataclass(frozen=True)
class Batching:
    """Batches of at most ``size`` samples and ``tokens`` tokens, padded to their longest one."""

    size: int
    tokens: int
    length: Callable[[Any], int] | None
    pool: int
    #: Leave out the last batch of an epoch, or pool, if it has less than ``size`` samples.
    drop_last: bool

    def __post_init__(self) -> None:
        for name in ("size", "tokens", "pool"):
            check_whole(f"Loader.batch: {name}", getattr(self, name), 0)

    def facts(self) -> list[Any]:
        """Names and numbers that determine the division."""
        return ["batch", self.size, self.tokens, self.pool]

    def measure(self, sample: Any) -> tuple[int, Any]:
        """The length of a sample, 0 if the division does not need it, and the sample."""
        if not (self.tokens or self.pool):
            return 0, sample
        return self.length(sample) if self.length else len(sample), sample

    def known_length(self, length: int) -> int:
        """The given length."""
        return length

    def outputs(self, items: Iterable[Item], place: Place) -> Iterator[Output]:
        """The batches; those of a pool in the order of a hash of seed, epoch and first sample."""
        if not self.pool:
            for batch in self._divide(items):
                yield Output(batch, batch[-1].position + 1)
            return
        skip = place.skip
        for number, pool in groupby(items, lambda one: one.position // self.pool):
            batches = list(self._divide(sorted(pool, key=lambda one: one.length)))
            batches.sort(key=lambda batch: _hash(place, batch[0].position))
            begin, end = max(number * self.pool, place.position), (number + 1) * self.pool
            for index, batch in enumerate(batches[skip:], skip + 1):
                yield Output(batch, begin, index) if index < len(batches) else Output(batch, end)
            skip = 0

    def items_of(self, batch: list[Any]) -> list[Item]:
        """The samples of a batch."""
        return batch

    def content(self, item: Item, sample: Any) -> Any:
        """The sample, whose length is not compared."""
        return sample

    def join(
        self, batch: list[Any], contents: Contents, collate: Callable[[list[Any]], Any]
    ) -> Any:
        """The samples that could be read."""
        found = [one.position for one in batch if one.position in contents]
        return collate([contents[position] for position in found])

    def _divide(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        batch: list[Item] = []
        longest = 0
        for one in items:
            if batch and self._is_full(len(batch), max(longest, one.length)):
                yield batch
                batch, longest = [], 0
            batch.append(one)
            longest = max(longest, one.length)
            if len(batch) == self.size:
                yield batch
                batch, longest = [], 0
        if batch and not (self.drop_last and self.size):
            yield batch

    def _is_full(self, samples: int, longest: int) -> bool:
        return bool(self.tokens) and (samples + 1) * longest > self.tokens


@dataclass(frozen=True)
class Packing:
    """Batches of ``windows`` windows of ``window`` tokens, cut from documents one after the other.

    The skip of a place counts the tokens of the document at its position that were used before.
    """

    window: int
    windows: int
    field: str
    end: int | None
    pad: int | None
    #: Leave out the last batch of an epoch if it has less windows.
    drop_last: bool

    def __post_init__(self) -> None:
        check_whole("Loader.pack_tokens: window", self.window, 1)

    def facts(self) -> list[Any]:
        """Names and numbers that determine the division."""
        return ["pack", self.window, self.field, self.end, self.pad]

    def measure(self, sample: Any) -> tuple[int, Any]:
        """The number of tokens of a document with its end, and the document."""
        document = self._document(sample)
        return len(document), document

    def known_length(self, length: int) -> int:
        """The number of tokens of a document with its end."""
        return length + (self.end is not None)

    def outputs(self, items: Iterable[Item], place: Place) -> Iterator[Output]:
        """Batches of windows, each a list of pieces."""
        windows = self._cut(items, place.skip)
        while batch := list(islice(windows, self.windows)):
            if len(batch) < self.windows and self.drop_last:
                return
            yield Output([one.batch for one in batch], batch[-1].position, batch[-1].skip)

    def items_of(self, batch: list[Any]) -> list[Item]:
        """The documents of a batch of windows."""
        return list(
            {piece.document.position: piece.document for w in batch for piece in w}.values()
        )

    def content(self, item: Item, sample: Any) -> Any:
        """The document of a sample."""
        length, document = self.measure(sample)
        if length != item.length:
            extra = self.known_length(0)
            raise ParioError(
                f"pack_tokens: record {item.source} has {length - extra} tokens, its given length"
                f" is {item.length - extra}"
            )
        return document

    def join(
        self, batch: list[Any], contents: Contents, collate: Callable[[list[Any]], Any]
    ) -> Any:
        """The windows as one dictionary of arrays."""
        import numpy as np

        windows = [self._fill(window, contents) for window in batch]
        names = ("tokens", "segment_ids", "positions")
        return {name: np.stack([one[row] for one in windows]) for row, name in enumerate(names)}

    def _cut(self, items: Iterable[Item], skip: int) -> Iterator[Output]:
        window: list[WindowPart] = []
        filled, position = 0, 0
        for item in items:
            position, at = item.position, skip
            skip = 0
            while at < item.length:
                tokens = min(item.length - at, self.window - filled)
                window.append(WindowPart(item, at, tokens))
                at, filled = at + tokens, filled + tokens
                if filled == self.window:
                    whole = at == item.length
                    yield Output(window, position + whole, 0 if whole else at)
                    window, filled = [], 0
        if filled and self.pad is not None:
            yield Output(window, position + 1)

    def _fill(self, pieces: list[WindowPart], contents: Contents) -> NDArray[Any]:
        """A window: its tokens, segments and positions."""
        import numpy as np

        window, filled = np.zeros((3, self.window), dtype=np.int64), 0
        window[0] = self.pad or 0
        for segment, (document, begin, tokens) in enumerate(pieces, 1):
            if document.position not in contents:
                raise ParioError(
                    f"pack_tokens: record {document.source} was left out, but its given length is"
                    f" {document.length - self.known_length(0)}: expected -1"
                )
            into, end = slice(filled, filled + tokens), begin + tokens
            window[0, into] = contents[document.position][begin:end]
            window[1, into] = segment
            window[2, into] = range(begin, end)
            filled += tokens
        return window

    def _document(self, sample: Any) -> NDArray[Any]:
        import numpy as np

        if isinstance(sample, Mapping) and self.field and self.field not in sample:
            names = ", ".join(sample)
            raise ParioError(f"pack_tokens: field {self.field!r}: expected one of {names}")
        tokens = np.asarray(sample[self.field] if self.field else sample)
        if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
            raise ParioError(
                f"pack_tokens: a sample of type {tokens.dtype} and {tokens.ndim} axes: expected a"
                " list of whole numbers"
            )
        tokens = tokens.astype(np.int64)
        return tokens if self.end is None else np.append(tokens, self.end)


def _hash(place: Place, position: int) -> bytes:
    text = f"{place.seed} {place.epoch} {position}"
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
