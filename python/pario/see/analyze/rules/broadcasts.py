"""The rule about files that one rank reads and broadcasts in small pieces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Mask, ratio, sums
from pario.see.analyze.cells import READ
from pario.see.analyze.counted import COMMUNICATION_CATEGORIES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMMUNICATION, Claim
from pario.see.analyze.reference import COPY_RATE
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene
from pario.see.analyze.rules.small_calls import SMALL_CALL

MANY_CALLS = 1000
ENOUGH_BYTES = 1 << 20
ALMOST_ALL = 0.9  # of all bytes read
CARRIED = 0.5  # bytes broadcast for each byte read
_FUNCTIONS = ("MPI_Bcast", "MPI_Ibcast")


def find_broadcasts(facts: Facts) -> Mask:
    """True for rows of ``Job.functions`` that broadcast."""
    functions = facts.job.functions
    return np.asarray(facts.job.select_functions(_FUNCTIONS.__contains__)[functions["name"]])


def is_broadcast(facts: Facts, rank: int, moved: float) -> bool:
    """True if a rank broadcasts about as many bytes as it reads (``moved``): all ranks need all."""
    functions = facts.job.functions
    own = find_broadcasts(facts) & (facts.lanes.of(functions["process"]) == rank)
    return bool(functions["bytes"][own].sum() >= CARRIED * moved)


def _small_broadcasts(facts: Facts) -> Iterator[Candidate]:
    if facts.ranks < 2 or not facts.lanes.mpi or not facts.has("per_rank"):
        return
    own = facts.stored & (facts.lane >= 0)
    moved = facts.asked_bytes("bytes_read")
    by_rank = sums(facts.lane[own], moved[own], facts.ranks)
    rank = int(np.argmax(by_rank))
    if by_rank[rank] < ENOUGH_BYTES or by_rank[rank] <= ALMOST_ALL * by_rank.sum():
        return
    functions = facts.job.functions
    lane = facts.lanes.of(functions["process"])
    used = find_broadcasts(facts) & (lane >= 0)
    calls, size, took = (
        sums(lane[used], functions[name][used].astype(float), facts.ranks)
        for name in ("calls", "bytes", "seconds")
    )
    small = calls[rank] >= MANY_CALLS and size[rank] < SMALL_CALL * calls[rank]
    if not small or not is_broadcast(facts, rank, float(by_rank[rank])):
        return
    talk = np.isin(functions["category"], COMMUNICATION_CATEGORIES) & (lane >= 0)
    share = ratio(took, sums(lane[talk], functions["seconds"][talk], facts.ranks))
    seconds = facts.times.lane_times.communication * np.minimum(share, 1.0) - size / COPY_RATE
    subject = scene(facts, own & (facts.lane == rank) & (moved > 0), facts.cells[:, READ])
    count = float(calls[rank])
    yield subject.candidate(
        title=(
            f"rank {rank} reads {subject.place} and broadcasts it in {wording.count(count)} pieces"
            f" of {wording.size(float(size[rank]) / count)}"
        ),
        cause=(
            f"All ranks meet in each broadcast ({wording.seconds(float(took.max()) / count)}),"
            " regardless of its bytes."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} broadcasts, {wording.size(float(size[rank]))} together,"
                f" {wording.seconds(float(took.max()))} in them, with waiting",
                calls=count,
                bytes=float(size[rank]),
            ),
        ),
        fixes=(
            code(
                f"Read many records (1 MiB or more) into an array on rank {rank}, and broadcast it"
                " with one call; each rank then takes the records from its copy."
            ),
        ),
        claims=[Claim(np.arange(facts.ranks), COMMUNICATION, np.maximum(seconds, 0.0))],
        method=(
            "time in these broadcasts without waiting, minus a copy of their bytes at"
            f" {wording.rate(COPY_RATE)}"
        ),
        functions=_FUNCTIONS,
        processes=tuple(np.unique(functions["process"][used]).tolist()),
    )


SMALL_BROADCASTS = Rule(
    name="small-broadcasts",
    remedy="broadcasting many records at once",
    sees="A file that one rank reads and broadcasts in small pieces.",
    threshold=(
        f"A rank that reads {wording.share(ALMOST_ALL)} of all bytes, {ENOUGH_BYTES >> 20} MiB or"
        f" more, and makes at least {MANY_CALLS:,} broadcasts of less than {SMALL_CALL >> 10} KiB"
        " on average, together of half these bytes or more."
    ),
    estimate=(
        "Time in these broadcasts without waiting, minus a copy of their bytes at"
        f" {wording.rate(COPY_RATE)}."
    ),
    advice="Broadcasts of 1 MiB or more.",
    control="The same bytes in one broadcast.",
    find=_small_broadcasts,
    why_not="only the program knows the records that it broadcasts next",
)
