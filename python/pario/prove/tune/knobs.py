"""The settings that ``pario tune`` tries for a run's files, the most promising first: those of the
last tune of the same pattern, the rules' proposals with the best knob of all other files, the
proposals alone, then the knobs by predicted gain."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pario import wording
from pario.fix.stripe.filesystem import LIKELY_TARGETS, FileSystem, facts_of
from pario.fix.stripe.policy import Expected, choose, load_sweeps
from pario.prove.calibration import kept_machine
from pario.prove.model.whatif import outcome, uses_of
from pario.prove.tune.choice import MPIIO_ON, Choice
from pario.prove.tune.history import last_choice
from pario.prove.tune.trials import Remedy
from pario.see.analyze.advise import advise, patterns
from pario.see.analyze.arrays import sums
from pario.see.analyze.model import Analysis
from pario.see.analyze.split import Times
from pario.see.tables.model import LAYERS, Job

#: Mean bytes per call: files with smaller accesses than SMALL are worth buffering; writes smaller
#: than LARGE can take place while the program continues.
SMALL, LARGE = 1 << 20, 16 << 20
#: The largest file, in bytes, that is kept whole in memory.
WHOLE = 256 << 20
#: The least share of the seconds in I/O that makes files worth a trial, and the most kinds of files
#: (with names that differ only in numbers) that a knob sets.
LEAST_SHARE, MOST_KINDS = 0.02, 4
#: The share of the seconds of its files that a setting saves, if nothing predicts it, and the
#: factor for each earlier setting of the same files, which may have saved it already.
USUAL_SHARE, ALTERNATIVE = 0.7, 0.5
LAST = "the settings of the last tune"
_POSIX, _STDIO, _MPIIO = (LAYERS.index(layer) for layer in ("posix", "stdio", "mpiio"))

Settings = Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class _Way:
    """Settings to try for some files, and the share of the seconds that they may save."""

    name: str
    settings: Settings
    share: float = USUAL_SHARE


@dataclass(frozen=True)
class _Group:
    """Files of one kind, the seconds in their calls, and the settings to try for them."""

    files: NDArray[np.int64]
    seconds: float
    ways: tuple[_Way, ...]

    def gains(self) -> Iterator[tuple[float, _Way]]:
        """Yield the predicted gain of each way, in seconds."""
        for place, way in enumerate(sorted(self.ways, key=lambda way: -way.share)):
            yield self.seconds * way.share * ALTERNATIVE**place, way


_WRITES = (
    _Way("buffers of 8M under writes", (("streams", "size", "8M"), ("streams", "count", "2"))),
    _Way("buffers of 1M under writes", (("streams", "size", "1M"), ("streams", "count", "4"))),
    _Way("buffers of 32M under writes", (("streams", "size", "32M"), ("streams", "count", "2"))),
)
_BEHIND = (
    _Way(
        "large writes in the background",
        (("streams", "size", "16M"), ("streams", "count", "2")),
    ),
    _Way("more writes in the background", (("streams", "size", "16M"), ("streams", "count", "8"))),
)
_READS = (
    _Way("reading ahead in 1M", (("streams", "size", "1M"), ("streams", "prefetch", "2"))),
    _Way("reading ahead in 4M", (("streams", "size", "4M"), ("streams", "prefetch", "2"))),
)
_KEPT = _Way("files kept whole", (("streams", "whole", str(WHOLE)),))
_BUFFERED = (
    _Way("stdio buffers of 1M", (("stdio", "mode", "full"), ("stdio", "size", "1M"))),
    _Way("stdio buffers of 64K", (("stdio", "mode", "full"), ("stdio", "size", "64K"))),
    _Way("stdio buffers of 8M", (("stdio", "mode", "full"), ("stdio", "size", "8M"))),
)
_INDEPENDENT = (
    _Way("write-behind", (("mpiio", "pario_write_behind", "16M"),)),
    _Way("no sieving", (("mpiio", "romio_ds_write", "disable"),)),
    _Way("sieving", (("mpiio", "romio_ds_write", "enable"), ("mpiio", "ind_wr_buffer_size", "4M"))),
)
_TOGETHER = (("mpiio", "romio_cb_write", "enable"), ("mpiio", "romio_cb_read", "enable"))
_MERGED = ("mpiio", "pario_merge_collectives", "64M")
_COLLECTIVE = (
    _Way("collective buffers", _TOGETHER),
    _Way("windows of 16M", (("mpiio", "cb_buffer_size", "16M"),)),
    _Way("consecutive calls as one", (_MERGED,)),
    _Way(
        "no collective buffers",
        (("mpiio", "romio_cb_write", "disable"), ("mpiio", "romio_cb_read", "disable")),
    ),
)
_SMALL_COLLECTIVE = (
    _Way("consecutive calls as one, with buffers", (*_TOGETHER, _MERGED)),
    *_COLLECTIVE,
)


def knobs(job: Job, analysis: Analysis, directory: Path) -> Iterator[Remedy]:
    """Yield the settings to try on a file system. None is risky: other processes see the same
    bytes, and a crash loses no more data."""
    if earlier := last_choice(job, directory):
        yield Remedy(LAST, earlier)
    proposed = Choice.of_proposals(advise(analysis).proposals)
    groups = [group for group in _groups(job, directory) if len(group.files)]
    least = LEAST_SHARE * sum(group.seconds for group in groups)
    ways = sorted(
        (
            (gain, _choice(job, group.files, way.settings), way.name, place)
            for group in groups
            if group.seconds >= least
            for place, (gain, way) in enumerate(group.gains())
        ),
        key=lambda found: -found[0],
    )
    together = Choice()
    for _, choice, _, place in reversed(ways):
        together = together if place else together.with_(choice)
    together = together.with_(proposed)
    yield Remedy("the most promising settings together", together, added=True)
    yield Remedy("the proposals of pario advise", proposed)
    for _, choice, name, _ in ways:
        yield Remedy(name, choice, added=True)


def _choice(job: Job, files: NDArray[np.int64], settings: Settings) -> Choice:
    paths = [job.path(int(file)) for file in files]
    made = MPIIO_ON if any(table in ("mpiio", "run") for table, _, _ in settings) else Choice()
    of_files = [one for one in settings if one[0] != "run"]
    for match in patterns(paths, len(paths)) if of_files else ():
        made = made.with_(Choice.of(match, *of_files))
    return made


def _groups(job: Job, directory: Path) -> Iterator[_Group]:
    times = Times(job)
    records, count = times.job.records, len(job.files)
    seconds = times.cells.sum(axis=1)

    def files(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.unique(records["file"][chosen & times.storage[records["file"]]]).astype(np.int64)

    def group(chosen: NDArray[np.bool_], ways: Iterable[_Way]) -> _Group:
        each = sums(records["file"][chosen], seconds[chosen], count)
        total = float(seconds[chosen].sum())
        return _Group(_heaviest(job, files(chosen), each), total, tuple(ways))

    mpiio = np.zeros(count, bool)
    mpiio[records["file"][records["layer"] == _MPIIO]] = True
    low = ~mpiio[records["file"]]
    writers = np.bincount(records["file"][records["writes"] > 0], minlength=count)[records["file"]]
    posix, stdio = low & (records["layer"] == _POSIX), low & (records["layer"] == _STDIO)
    written = posix & (writers == 1) & (records["writes"] > 0)
    read = posix & (writers == 0) & (records["reads"] > 0)
    small, large = (_below(limit, records, "writes", "bytes_written") for limit in (SMALL, LARGE))
    yield group(written & small, _WRITES)
    yield group(written & large & ~small, _BEHIND)
    yield group(read & _below(SMALL, records, "reads", "bytes_read"), (_READS[0], _KEPT, _READS[1]))
    yield group(stdio & (writers <= 1), _BUFFERED)
    upper = records["layer"] == _MPIIO
    calls = records["collective_writes"] + records["collective_reads"]
    together = calls > 0
    yield group(upper & ~together, _INDEPENDENT)
    tiny = records["bytes_written"] + records["bytes_read"] < SMALL * calls
    yield group(upper & tiny, _SMALL_COLLECTIVE)
    yield group(upper & together & ~tiny, _COLLECTIVE)
    new = (records["writes"] > 0) & (records["size_at_open"] == 0)
    yield group(new & (records["layer"] <= _MPIIO), _stripes(job, directory))


def _heaviest(
    job: Job, files: NDArray[np.int64], seconds: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The files of the kinds that take the most seconds."""
    kinds = [re.sub(r"\d+", "#", job.path(int(file))) for file in files]
    worth: dict[str, float] = defaultdict(float)
    for kind, file in zip(kinds, files, strict=True):
        worth[kind] += float(seconds[file])
    least = LEAST_SHARE * sum(worth.values())
    kept = [
        kind
        for kind in sorted(worth, key=lambda kind: -worth[kind])[:MOST_KINDS]
        if worth[kind] >= least
    ]
    return np.asarray(files[np.array([kind in kept for kind in kinds], bool)])


def _below(limit: int, records: NDArray[np.void], calls: str, size: str) -> NDArray[np.bool_]:
    """True for records whose calls move less than ``limit`` bytes on average."""
    return np.asarray(records[size] < limit * np.maximum(records[calls], 1))


def _stripes(job: Job, directory: Path) -> Iterator[_Way]:
    """Yield the stripe counts to try if the file system has stripes: those of a kept sweep or of
    the policy, all targets, half of them, and one; but not the present count, and no more than the
    largest file fills. If the number of targets is unknown, a likely one is assumed."""
    facts = facts_of(directory)
    parts = facts.stripes.parts
    targets = facts.targets or (LIKELY_TARGETS if parts and facts.stripes.settable else 0)
    if targets < 2:
        return
    records, layers = job.records, (_POSIX, _STDIO, _MPIIO)
    written = (np.where(records["layer"] == layer, records["bytes_written"], 0) for layer in layers)
    by_file = [sums(records["file"], one, len(job.files)).max(initial=0) for one in written]
    largest = int(max(by_file))
    writers = max(len(np.unique(records["process"][records["writes"] > 0])), 1)
    mount = (facts.mount.type, facts.mount.point)
    chosen = choose(Expected(largest, writers, job.ranks, targets, 1, mount), load_sweeps())
    present = parts[-1].count if parts else 0
    most = min(targets, -(-largest // (chosen.unit or SMALL)))
    seconds = _predict_seconds(job, directory, facts, chosen.unit)
    for count in dict.fromkeys(max(min(n, most), 1) for n in (chosen.count, targets, most // 2, 1)):
        if count == present:
            continue
        share = 1 - seconds(count) / seconds(present or 1)
        if chosen.saves is not None and count == chosen.count:
            share = chosen.saves
        settings = (
            ("striping", "striping_factor", str(count)),
            ("striping", "striping_unit", str(chosen.unit or SMALL)),
        )
        yield _Way(wording.plural(count, "stripe"), settings, share)


def _predict_seconds(
    job: Job, directory: Path, facts: FileSystem, unit: int
) -> Callable[[int], float]:
    """Return a function that predicts the seconds with a number of stripes: by the model if the
    file system was measured; else in proportion to the stripes that a file does not have."""
    machine, uses = kept_machine(directory), uses_of(job)
    if machine is None or outcome(machine, uses, 1, "as it is", 0.0).io <= 0:
        return lambda count: 1 / count
    there = replace(machine, unit=unit or facts.lock_unit or machine.unit)
    return lambda count: outcome(there, uses, count, "as it is", 0.0).io
