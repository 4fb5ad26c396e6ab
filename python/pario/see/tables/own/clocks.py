"""Relates the monotonic clocks of the hosts of one job: pure arithmetic on notes of processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

_DRIFT_BASELINE_NS = 1_000_000_000  # barriers closer together show no drift
_MAX_DRIFT = 1e-3  # quartz is two orders better; more is a mistake in the log

Pair = tuple[
    int, int
]  # the same moment: on the host's monotonic clock, and in nanoseconds since the epoch


@dataclass(frozen=True)
class Sample:
    """The facts of one process about the clock of its host."""

    host: str  # boot id
    world: Hashable  # the MPI job; processes of one world leave barriers together
    mono_ns: int
    realtime_ns: int  # at the same moment
    barriers: Sequence[int] = ()  # monotonic moments at which barriers over the world returned


@dataclass(frozen=True)
class Clock:
    """The linear function from monotonic nanoseconds of a host to nanoseconds since the epoch."""

    mono_ns: int
    epoch_ns: int
    drift: float = 0.0

    def epoch(self, mono_ns: int) -> int:
        """Return nanoseconds since the epoch, on the reference host's clock."""
        elapsed = mono_ns - self.mono_ns
        return self.epoch_ns + elapsed + round(elapsed * self.drift)


def relate(samples: Sequence[Sample]) -> dict[str, Clock]:
    """Return a clock for every host. The reference is the host of the first sample with barriers;
    hosts without a common barrier use their real-time clocks.
    """
    clocks = {host: _from_realtime(group) for host, group in _by_host(samples).items()}
    reference = next((s.host for s in samples if s.barriers), None)
    if reference is None:
        return clocks
    for host, pairs in _common_moments(samples, reference, clocks[reference]).items():
        clocks[host] = _through(sorted(pairs))
    return clocks


def _by_host(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    groups: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.host].append(sample)
    return groups


def _from_realtime(samples: Sequence[Sample]) -> Clock:
    return Clock(0, int(median(s.realtime_ns - s.mono_ns for s in samples)))


def _common_moments(
    samples: Sequence[Sample], reference: str, clock: Clock
) -> dict[str, list[Pair]]:
    """Return, for each other host, the barriers that it left together with the reference host."""
    left: dict[tuple[Hashable, int], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        for number, mono_ns in enumerate(sample.barriers):
            left[sample.world, number][sample.host].append(mono_ns)
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for hosts in left.values():
        for host, moments in hosts.items():
            if host != reference and reference in hosts:
                pairs[host].append(
                    (int(median(moments)), clock.epoch(int(median(hosts[reference]))))
                )
    return pairs


def _through(pairs: Sequence[Pair]) -> Clock:
    """Return the line through the first and the last pair, or with the median offset if they are
    too close together."""
    (mono0, epoch0), (mono1, epoch1) = pairs[0], pairs[-1]
    if mono1 - mono0 >= _DRIFT_BASELINE_NS:
        drift = (epoch1 - epoch0) / (mono1 - mono0) - 1
        if abs(drift) <= _MAX_DRIFT:
            return Clock(mono0, epoch0, drift)
    return Clock(0, int(median(epoch - mono for mono, epoch in pairs)))
