"""Batches whose borders depend on the samples: full ones, by tokens, by length, packed windows.

The samples of all ranks, in the order of the epoch, are divided into batches by a rule; each step
gives the next ``world`` batches to the ranks. A restart place is enough to continue the division,
so that a state fits any number of ranks. The division needs the lengths of all samples: a rank that
knows them reads its own samples only, otherwise it reads all.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from pario.errors import ParioError
from pario.records.epochs import Epochs
from pario.records.passes import Place
from pario.records.rules import Contents, Item, Output, Rule
from pario.records.state import check_whole
from pario.records.stats import LoaderStats

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SampleSource(Protocol):
    """The samples of an epoch; Loader documents the members."""

    seed: int
    epoch: int
    position: int
    count: int
    stats: LoaderStats

    def for_all_ranks(self) -> SampleSource: ...  # noqa: D102
    def samples_from(self, place: Place) -> Iterator[tuple[int, Any]]: ...  # noqa: D102
    def numbers_from(self, place: Place) -> Iterator[tuple[int, int]]: ...  # noqa: D102
    def read_batches(  # noqa: D102
        self, batches: Iterator[list[int]]
    ) -> Iterator[tuple[list[int], Any]]: ...
    def collate(self, samples: list[Any]) -> Any: ...  # noqa: D102
    def division(self) -> tuple[int, int, int, str]: ...  # noqa: D102
    def whole_order(self) -> list[Any]: ...  # noqa: D102


#: The batches of a rank with the places behind them; and with their contents between.
_Planned = Iterator[tuple[list[Any], Place]]
_Filled = Iterator[tuple[list[Any], Contents, Place]]


class _AllSamples:
    """Reads all samples of all ranks, to measure them."""

    def __init__(self, source: SampleSource, rule: Rule) -> None:
        self._source, self._rule = source, rule

    def facts(self) -> list[Any]:
        """Numbers that determine the lengths: none."""
        return []

    def items_from(self, place: Place) -> Iterator[Item]:
        """The samples from a place on, with their contents."""
        for position, sample in self._source.samples_from(place):
            yield Item(position, *self._rule.measure(sample))

    def fill(self, batches: _Planned) -> _Filled:
        """The contents of each batch."""
        for batch, after in batches:
            items = self._rule.items_of(batch)
            yield batch, {item.position: item.source for item in items}, after


class _OwnSamples:
    """Reads the samples of given batches. ``lengths``: of all records by their numbers; negative: a
    filter leaves the record out."""

    def __init__(self, source: SampleSource, rule: Rule, lengths: NDArray[Any]) -> None:
        self._source, self._rule, self._lengths = source, rule, lengths

    def facts(self) -> list[Any]:
        """A checksum of the lengths."""
        return ["lengths", zlib.crc32(self._lengths.tobytes())]

    def items_from(self, place: Place) -> Iterator[Item]:
        """The samples from a place on, with the numbers of their records."""
        for position, number in self._source.numbers_from(place):
            length = int(self._lengths[number])
            if length >= 0:
                yield Item(position, self._rule.known_length(length), number)

    def fill(self, batches: _Planned) -> _Filled:
        """The contents of each batch, which are read ahead."""
        begun: deque[tuple[list[Any], list[Item], Place]] = deque()

        def begin() -> Iterator[list[int]]:
            for batch, after in batches:
                items = self._rule.items_of(batch)
                begun.append((batch, items, after))
                yield [item.source for item in items]

        for places, samples in self._source.read_batches(begin()):
            batch, items, after = begun.popleft()
            found = [items[place] for place in places]
            yield (
                batch,
                {
                    item.position: self._rule.content(item, sample)
                    for item, sample in zip(found, samples, strict=True)
                },
                after,
            )


class Regrouped(Epochs):
    """The batches of one rank that a rule makes of a Loader's samples.

    ``Loader.batch`` and ``Loader.pack_tokens`` make it. It is iterated, resumed and given to
    PyTorch as a Loader; ``len`` is not known.
    """

    def __init__(
        self, loader: SampleSource, rule: Rule, lengths: NDArray[Any] | None = None
    ) -> None:
        super().__init__(Place(loader.seed, loader.epoch, loader.position))
        self.count, self._rule, self._loader = loader.count, rule, loader
        self._source = loader.for_all_ranks()
        #: Of the samples of all ranks, or with known lengths of this rank's.
        self.stats = self._source.stats
        self._samples = (
            _AllSamples(self._source, rule)
            if lengths is None
            else _OwnSamples(self._source, rule, lengths)
        )

    def __len__(self) -> int:
        raise TypeError("the number of batches is not known before they are made")

    def part(self, stride: int, offset: int) -> Iterator[Any]:
        """The share of one of ``stride`` workers: every ``stride``-th batch from ``offset`` on,
        counted from the current position.
        """
        steps = islice(self._steps(self.place), offset, None, stride)
        planned = ((own[0].batch, after) for own, after in steps if own)
        for batch, contents, after in self._samples.fill(planned):
            self.go_to(after)
            yield self._rule.join(batch, contents, self._loader.collate)

    def place_after(self, place: Place, batches: int) -> Place:
        """The place after this rank's first ``batches`` batches that follow ``place``; divides all
        of them again."""
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
        return [*self._loader.whole_order(), *self._rule.facts(), *self._samples.facts()]

    def normalize(self, place: Place) -> Place:
        """The place; after the last batch of an epoch the beginning of the next one."""
        return place.next_epoch() if place.position and place.position >= self.count else place

    def _steps(self, place: Place) -> Iterator[tuple[list[Output], Place]]:
        """For each step the output of this rank, or none, and the place after it."""
        items = self._samples.items_from(place._replace(skip=0))
        outputs = self._rule.outputs(items, place)
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
