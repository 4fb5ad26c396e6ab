"""The rule about ranks that do their I/O one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Mask
from pario.see.analyze.cells import READ, WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.intervals import Intervals, IntervalSet
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene

#: Ranks in I/O at the same time, on average, up to which their I/O counts as one after the other.
ALONE = 1.2
#: Seconds of I/O on the critical path, times those of the rank with most I/O.
LONGER = 1.25


def _turns(facts: Facts) -> Iterator[Candidate]:
    times = facts.times
    if not times.exact or not times.path_known or facts.ranks < 2:
        return
    path, longest = times.critical.io, float(times.lane_times.io.max())
    if longest <= 0 or path < LONGER * longest:
        return
    together = _overlap(facts)
    if together > ALONE:
        return
    mask = facts.stored & (facts.lane >= 0)
    subject = scene(facts, mask, facts.cells[:, READ] + facts.cells[:, WRITE])
    saved = 1.0 - longest / path
    at_once = np.where(_are_locked_writes(facts)[subject.rows], 0.0, saved)
    busy = int((times.lane_times.io > 0.1 * longest).sum())
    yield subject.candidate(
        title=f"{busy} ranks do their I/O one after the other: {subject.place}",
        cause=(
            "Each rank waits until another one has finished its reads or writes, so that the run"
            " takes the sum of all ranks' times, not the longest."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{together:.2f} ranks in I/O at the same time on average;"
                f" {wording.seconds(path)} of I/O on the critical path, at most"
                f" {wording.seconds(longest)} on one rank",
                path=path,
                longest=longest,
            ),
        ),
        fixes=(
            code(
                "Let all ranks write at the same time, each at its own offset (MPI_Exscan of the"
                " sizes, then pwrite or MPI_File_write_at_all), without a barrier or token between"
                " them."
            ),
        ),
        claims=[
            *claim_all(facts, subject.rows, (READ,), saved),
            *claim_all(facts, subject.rows, (WRITE,), at_once),
        ],
        method=(
            "I/O on the critical path minus the I/O of the rank with most; not of writes to one"
            " file of a local file system, which lets one process at a time write it"
        ),
    )


def _are_locked_writes(facts: Facts) -> Mask:
    """Return, per row, True if several processes write its file on a local file system, where the
    kernel holds the file's lock during a write."""
    return np.asarray((facts.writers > 1)[facts.file] & ~facts.network[facts.file])


def _overlap(facts: Facts) -> float:
    """Return the mean number of ranks in I/O while any rank is."""
    times = facts.times
    spans = times.intervals(times.io_events)
    together = Intervals(spans.start, spans.end, np.zeros_like(spans.lane))
    some = float(IntervalSet(together, facts.wall).measure(0, 0.0, facts.wall))
    lanes = np.arange(facts.ranks)
    each = IntervalSet(spans, facts.wall).measure(lanes, 0.0, facts.wall)
    return float(each.sum()) / some if some > 0 else 0.0


TURNS = Rule(
    name="serialized-ranks",
    remedy="letting all ranks do I/O at the same time",
    sees="Ranks that take turns: one reads or writes while the others wait for it.",
    threshold=(
        f"I/O on the critical path takes {LONGER} times that of the rank with most I/O or more, and"
        f" at most {ALONE} ranks are in I/O at the same time on average. Needs events."
    ),
    estimate=(
        "I/O on the critical path minus the I/O of the rank with most, without writes to one file"
        " of a local file system: the kernel lets one process at a time write it."
    ),
    advice="Offsets for all ranks, and writes at the same time.",
    control="The same I/O of all ranks at the same time.",
    find=_turns,
    why_not="the order of the ranks is that of the program's messages and barriers",
)
