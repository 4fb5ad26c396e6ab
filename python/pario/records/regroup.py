"""Batches whose borders depend on the samples: full ones, by tokens, by length, packed windows.

The samples of all ranks, in the order of the epoch, are divided into batches by a rule; each step
gives the next ``world`` batches to the ranks. A restart place is enough to continue the division,
so that a state fits any number of ranks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pario.errors import ParioError
from pario.records.epochs import Epochs
from pario.records.passes import Place
from pario.records.state import check_whole
from pario.records.stats import LoaderStats

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Samples with their positions in the epoch, in order.
Positioned = Iterable[tuple[int, Any]]


class SampleSource(Protocol):
    """The samples of an epoch; Loader documents the members."""

    seed: int
    epoch: int
    position: int
    count: int
    stats: LoaderStats

    def for_all_ranks(self) -> SampleSource: ...  # noqa: D102
    def samples_from(self, place: Place) -> Iterator[tuple[int, Any]]: ...  # noqa: D102
    def collate(self, samples: list[Any]) -> Any: ...  # noqa: D102
    def division(self) -> tuple[int, int, int, str]: ...  # noqa: D102
    def whole_order(self) -> list[Any]: ...  # noqa: D102


class Output(NamedTuple):
    """A batch, and the place behind it, from which the division continues."""

    batch: Any
    position: int
    skip: int = 0


class Rule(Protocol):
    """Divides samples into batches."""

    def facts(self) -> list[Any]:
        """Names and numbers that determine the division."""

    def outputs(self, samples: Positioned, place: Place) -> Iterator[Output]:
        """The batches of an epoch's samples from ``place.position`` on, without the first
        ``place.skip`` tokens or batches."""

    def join(self, batch: Any, collate: Callable[[list[Any]], Any]) -> Any:
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

    def outputs(self, samples: Positioned, place: Place) -> Iterator[Output]:
        """The batches; those of a pool in the order of a hash of seed, epoch and first sample."""
        if not self.pool:
            yield from self._cut(samples)
            return
        skip = place.skip
        for number, pool in groupby(samples, lambda one: one[0] // self.pool):
            batches = [
                ([sample for _, sample in batch], _hash(place, batch[0][0]))
                for batch in self._divide(sorted(pool, key=lambda one: self._length(one[1])))
            ]
            batches.sort(key=lambda one: one[1])
            begin, end = number * self.pool, (number + 1) * self.pool
            for index, (batch, _) in enumerate(batches[skip:], skip + 1):
                yield Output(batch, begin, index) if index < len(batches) else Output(batch, end)
            skip = 0

    def join(self, batch: Any, collate: Callable[[list[Any]], Any]) -> Any:
        """The batch as it is given to the program."""
        return collate(batch)

    def _cut(self, samples: Positioned) -> Iterator[Output]:
        for batch in self._divide(samples):
            yield Output([sample for _, sample in batch], batch[-1][0] + 1)

    def _divide(self, samples: Positioned) -> Iterator[list[tuple[int, Any]]]:
        batch: list[tuple[int, Any]] = []
        longest = 0
        for one in samples:
            length = self._length(one[1]) if self.tokens else 0
            if batch and self._is_full(len(batch), max(longest, length)):
                yield batch
                batch, longest = [], 0
            batch.append(one)
            longest = max(longest, length)
            if len(batch) == self.size:
                yield batch
                batch, longest = [], 0
        if batch and not (self.drop_last and self.size):
            yield batch

    def _is_full(self, samples: int, longest: int) -> bool:
        return bool(self.tokens) and (samples + 1) * longest > self.tokens

    def _length(self, sample: Any) -> int:
        return self.length(sample) if self.length else len(sample)


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

    def outputs(self, samples: Positioned, place: Place) -> Iterator[Output]:
        """Batches of windows."""
        windows = self._cut(samples, place.skip)
        while batch := list(islice(windows, self.windows)):
            if len(batch) < self.windows and self.drop_last:
                return
            yield Output([one.batch for one in batch], batch[-1].position, batch[-1].skip)

    def join(self, batch: Any, collate: Callable[[list[Any]], Any]) -> Any:
        """The windows as one dictionary of arrays."""
        import numpy as np

        names = ("tokens", "segment_ids", "positions")
        return {name: np.stack([one[row] for one in batch]) for row, name in enumerate(names)}

    def _cut(self, samples: Positioned, skip: int) -> Iterator[Output]:
        window, filled, segment, position = self._begin(), 0, 0, 0
        for position, sample in samples:
            document, at = self._document(sample), skip
            skip = 0
            while at < len(document):
                part = document[at : at + self.window - filled]
                into = slice(filled, filled + len(part))
                segment += 1
                window[0, into], window[1, into] = part, segment
                window[2, into] = range(at, at + len(part))
                at, filled = at + len(part), into.stop
                if filled == self.window:
                    whole = at == len(document)
                    yield Output(window, position + whole, 0 if whole else at)
                    window, filled, segment = self._begin(), 0, 0
        if filled and self.pad is not None:
            yield Output(window, position + 1)

    def _begin(self) -> NDArray[Any]:
        """A window of padding: its tokens, segments and positions."""
        import numpy as np

        window = np.zeros((3, self.window), dtype=np.int64)
        window[0] = self.pad or 0
        return window

    def _document(self, sample: Any) -> NDArray[Any]:
        import numpy as np

        tokens = np.asarray(sample[self.field] if self.field else sample)
        if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
            raise ParioError(
                f"pack_tokens: a sample of type {tokens.dtype} and {tokens.ndim} axes: expected a"
                " list of whole numbers"
            )
        tokens = tokens.astype(np.int64)
        return tokens if self.end is None else np.append(tokens, self.end)


class Regrouped(Epochs):
    """The batches of one rank that a rule makes of a Loader's samples.

    ``Loader.batch`` and ``Loader.pack_tokens`` make it. It is iterated, resumed and given to
    PyTorch as a Loader; ``len`` is not known.
    """

    def __init__(self, loader: SampleSource, rule: Rule) -> None:
        super().__init__(Place(loader.seed, loader.epoch, loader.position))
        self.count, self._rule = loader.count, rule
        self._source, self._loader = loader.for_all_ranks(), loader

    @property
    def stats(self) -> LoaderStats:
        """The statistics of reading: of the samples of all ranks."""
        return self._source.stats

    def __len__(self) -> int:
        raise TypeError("the number of batches is not known before they are made")

    def part(self, stride: int, offset: int) -> Iterator[Any]:
        """The share of one of ``stride`` workers: every ``stride``-th batch from ``offset`` on,
        counted from the current position.
        """
        place = Place(self.seed, self.epoch, self.position, self.skip)
        for number, (own, after) in enumerate(self._steps(place)):
            if number >= offset and (number - offset) % stride == 0 and own:
                self.go_to(after)
                yield self._rule.join(own[0].batch, self._loader.collate)

    def place_after(self, place: Place, batches: int) -> Place:
        """The place after this rank's first ``batches`` batches that follow ``place``; makes all of
        them again."""
        check_whole("Loader: batches", batches, 0)
        for number, (_, after) in enumerate(self._steps(place), 1):
            if number == batches:
                return self.normalize(after)
        if batches:
            raise ParioError(f"Loader: batches={batches}: the epoch has fewer")
        return place

    def division(self) -> tuple[int, int, int, str]:
        """The division of an epoch: batch size, ranks, this rank, treatment of the remainder."""
        return self._loader.division()

    def whole_order(self) -> list[Any]:
        """Names and numbers that determine the order, beside seed and epoch."""
        return [*self._loader.whole_order(), *self._rule.facts()]

    def normalize(self, place: Place) -> Place:
        """The place; after the last batch of an epoch the beginning of the next one."""
        return place.next_epoch() if place.position and place.position >= self.count else place

    def _steps(self, place: Place) -> Iterator[tuple[list[Output], Place]]:
        """For each step the output of this rank, or none, and the place after it."""
        samples = self._source.samples_from(place._replace(skip=0))
        outputs = self._rule.outputs(samples, place)
        _, world, rank, remainder = self.division()
        step = self._step(outputs)
        while step:
            following = self._step(outputs)
            last = step[-1]
            # Without another step the epoch is over, even if samples are left.
            end = place._replace(position=last.position, skip=last.skip)
            end = end if following else place._replace(position=self.count, skip=0)
            if len(step) < world and remainder == "pad":
                step = [step[number % len(step)] for number in range(world)]
            yield step[rank : rank + 1], end
            step = following

    def _step(self, outputs: Iterator[Output]) -> list[Output]:
        """The batches of the next step of all ranks; empty at the end."""
        _, world, _, remainder = self.division()
        step = list(islice(outputs, world))
        return step if len(step) == world or remainder in ("pad", "exact") else []


def _hash(place: Place, position: int) -> bytes:
    text = f"{place.seed} {place.epoch} {position}"
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
