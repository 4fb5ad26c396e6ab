"""A rule about waiting for locks of files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import WAITING, Claim
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene

#: Most seconds of a lock call that waits for no owner: a system call, or a request over a network.
FREE_LOCK, FREE_NETWORK_LOCK = 5e-6, 1e-3


def _lock_waits(facts: Facts) -> Iterator[Candidate]:
    locks = facts.column("locks")
    free = np.where(facts.network[facts.file], FREE_NETWORK_LOCK, FREE_LOCK)
    seconds = np.maximum(facts.times.lock_seconds - free * locks, 0.0)
    mask = facts.stored & (seconds > free * locks) & (facts.lane >= 0)
    if not mask.any():
        return
    subject = scene(facts, mask, seconds)
    lanes = np.unique(facts.lane[mask])
    rows, count, took = subject.rows, subject.total("locks"), float(seconds[mask].sum())
    yield subject.candidate(
        title=f"lock waiting: {wording.seconds(took)} in locks of {subject.place}",
        cause=(
            "A process that locks a file waits until the owner of the lock releases it, so that"
            " the processes work one after the other."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} lock calls, {wording.seconds(took / max(count, 1))}"
                f" each{facts.over_all}",
                locks=count,
            ),
        ),
        fixes=(
            code(
                "Lock only around the access itself, and only the bytes accessed (fcntl with a"
                " range); prepare the data before."
            ),
            code(
                "Give each process a file or a range of its own (MPI-IO needs no locks of the"
                " program), or let one process write for all."
            ),
        ),
        claims=[Claim(lanes, WAITING, sums(facts.lane[rows], seconds[rows], facts.ranks)[lanes])],
        method="mean time of these processes in flock, lockf and the lock commands of fcntl,"
        " without that of locks that are free",
    )


LOCKS = Rule(
    name="lock-waiting",
    remedy="holding locks for a shorter time",
    sees="Processes that wait for locks of files: flock, lockf, fcntl.",
    threshold=(
        f"Lock calls of more than {wording.seconds(2 * FREE_LOCK)} on average per process and file"
        f" ({wording.seconds(2 * FREE_NETWORK_LOCK)} on network file systems)."
    ),
    estimate=(
        "Time in lock calls, the mean of the processes that wait, without"
        f" {wording.seconds(FREE_LOCK)} per call ({wording.seconds(FREE_NETWORK_LOCK)} on network"
        " file systems), which free locks need."
    ),
    advice="Shorter locks of smaller ranges, or a file for each process.",
    control="The same locks without another owner.",
    find=_lock_waits,
    why_not="a lock guards data that only the program knows",
)
