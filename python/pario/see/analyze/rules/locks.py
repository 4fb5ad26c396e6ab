"""A rule about waiting for locks of files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, sums
from pario.see.analyze.cells import MPIIO, find_rows
from pario.see.analyze.durations import FAILED
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, WAITING, Claim
from pario.see.analyze.reconcile import queue_shares
from pario.see.analyze.rules import databases
from pario.see.analyze.rules.base import Candidate, Rule, Scene, all_but_one, code, fact, scene
from pario.see.analyze.rules.calling import find_outer_calls
from pario.see.analyze.split import LOCK

#: Most seconds of a lock call that waits for no owner: a system call, or a request over a network.
FREE_LOCK, FREE_NETWORK_LOCK = 5e-6, 1e-3
MANY_ATTEMPTS = 50
MANY_LOCKS = 1000
PER_ACCESS = 0.5  # lock calls for each read or write: set and released around two accesses
_FUNCTIONS = ("flock", "lockf", "lockf64", "fcntl_lock")
_ADVICE = (
    "Lock once for many records: collect them, and read or write them with few calls under one"
    " lock. A file that no other process uses needs no lock."
)
_ADVICE_MPI = (
    "The MPI library sets these locks: leave atomic mode (MPI_File_set_atomicity) where no rank"
    " reads what another one is writing; if they protect writes around holes, switch data sieving"
    " off (hint romio_ds_write=disable), or write collectively."
)
_FIXES = (
    code(
        "Lock only around the access itself, and only the bytes accessed (fcntl with a range);"
        " prepare the data before."
    ),
    code(
        "Give each process a file or a range of its own (MPI-IO needs no locks of the program), or"
        " let one process write for all."
    ),
)


def _lock_waits(facts: Facts) -> Iterator[Candidate]:
    yield from _blocking_locks(facts)
    yield from _polled_locks(facts)


def _blocking_locks(facts: Facts) -> Iterator[Candidate]:
    locks = facts.column("locks")
    free = _find_free_seconds(facts)
    seconds = np.maximum(facts.times.lock_seconds - free * locks, 0.0)
    mask = facts.stored & (seconds > free * locks) & (facts.lane >= 0)
    if not mask.any():
        return
    subject = scene(facts, mask, seconds)
    lanes = np.unique(facts.lane[mask])
    rows, count, took = subject.rows, subject.total("locks"), float(seconds[mask].sum())
    per_lane = sums(facts.lane[rows], seconds[rows], facts.ranks)
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
        fixes=_FIXES,
        claims=[Claim(lanes, WAITING, (per_lane * (1.0 - queue_shares(facts)))[lanes])],
        method="mean time of these processes in flock, lockf and the lock commands of fcntl,"
        " without that of locks that are free, and without the part of it in which processes wait"
        " for processors, as in the rest of the run",
    )


def _polled_locks(facts: Facts) -> Iterator[Candidate]:
    """Find locks that are tried again and again until the owner releases them: the program sleeps
    or computes nothing between the attempts."""
    attempts, seconds = _find_attempts(facts)
    mask = facts.stored & (facts.lane >= 0) & (attempts >= MANY_ATTEMPTS)
    if not mask.any():
        return
    subject = scene(facts, mask, seconds)
    rows, count, took = subject.rows, float(attempts[mask].sum()), float(seconds[mask].sum())
    per_lane = sums(facts.lane[rows], seconds[rows], facts.ranks)
    lanes = np.flatnonzero(per_lane > 0)
    yield subject.candidate(
        title=(
            f"lock waiting: {wording.count(count)} attempts to lock {subject.place} failed,"
            f" {wording.seconds(took)} between them"
        ),
        cause=(
            "A process that finds the file locked tries again after a pause, until the owner of the"
            " lock releases it: the processes work one after the other, and a free lock waits for"
            " the end of a pause."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} failed attempts, {wording.seconds(took / count)} from each"
                f" to the next{facts.over_all}",
                attempts=count,
            ),
        ),
        fixes=(
            code(
                "Let the kernel wait (flock with LOCK_EX, fcntl with F_SETLKW): it wakes the next"
                " process at once."
            ),
            *_FIXES,
        ),
        claims=[Claim(lanes, COMPUTE, per_lane[lanes])],
        method="time from each failed attempt to the next attempt of the same thread, by events",
        functions=_FUNCTIONS,
        processes=tuple(np.unique(facts.records["process"][rows]).tolist()),
    )


def _lock_storms(facts: Facts) -> Iterator[Candidate]:
    """Find locks around each access, by the cost of the calls alone: lock-waiting has the rest."""
    locks, moves = facts.column("locks"), facts.reads + facts.writes
    mask = facts.stored & (facts.lane >= 0) & (locks >= MANY_LOCKS)
    mask &= (locks >= PER_ACCESS * moves) & (_find_attempts(facts)[0] < 0.5 * locks)
    if mask.any():
        yield _lock_storm(facts, scene(facts, mask, facts.times.lock_seconds))


def _is_of_mpi(subject: Scene) -> bool:
    """Tell whether the files of a finding are open through MPI-IO, which locks parts of them."""
    facts = subject.facts
    opened = facts.file[facts.records["layer"] == MPIIO]
    return bool(np.isin(facts.file[subject.rows], opened).all())


def _lock_storm(facts: Facts, subject: Scene) -> Candidate:
    rows, count = subject.rows, float(subject.total("locks"))
    moves = float((facts.reads + facts.writes)[rows].sum())
    locks = facts.column("locks")[rows]
    seconds = np.minimum(facts.times.lock_seconds[rows], _find_free_seconds(facts)[rows] * locks)
    per_lane = sums(facts.lane[rows], seconds * all_but_one(locks / 2), facts.ranks)
    lanes = np.flatnonzero(per_lane > 0)
    per = f", {count / moves:.2g} per read or write" if moves else ""
    return subject.candidate(
        title=f"{wording.count(count)} lock calls on {subject.place}{per}",
        cause=(
            "Setting and releasing a lock are calls of the system, also while no other process"
            f" wants the file: {wording.seconds(float(seconds.sum()) / count)} each."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} lock calls, {wording.count(moves)} reads and writes,"
                f" {wording.seconds(float(seconds.sum()))}{facts.over_all}",
                locks=count,
            ),
        ),
        fixes=(
            *databases.fixes_of_sqlite(
                subject, "many statements in one transaction, or PRAGMA locking_mode=EXCLUSIVE."
            ),
            code(_ADVICE_MPI if _is_of_mpi(subject) else _ADVICE),
        ),
        claims=[Claim(lanes, WAITING, per_lane[lanes])],
        method=(
            "mean time of these processes in the lock calls but one pair per file, without waiting"
            " for the owners of locks"
        ),
        functions=_FUNCTIONS,
        processes=tuple(np.unique(facts.records["process"][rows]).tolist()),
    )


def _find_free_seconds(facts: Facts) -> Floats:
    """Return, per record, the most seconds of a lock call that waits for no owner."""
    return np.where(facts.network[facts.file], FREE_NETWORK_LOCK, FREE_LOCK)


def _find_attempts(facts: Facts) -> tuple[Floats, Floats]:
    """Return, per record, the lock calls that failed, and the seconds from each of them to the next
    lock call on the file by the same thread."""
    job, found = facts.job, np.zeros(len(facts.records))
    if not np.any((job.events["kind"] == LOCK) & ((job.events["flags"] & FAILED) != 0)):
        return found, found
    events, first = find_outer_calls(job)
    row = find_rows(job.records, events["process"], events["file"], events["layer"])
    row[events["kind"] != LOCK] = -1
    failed = (row >= 0) & ((events["flags"] & FAILED) != 0)
    again = failed[:-1] & (row[1:] == row[:-1]) & ~first[1:]
    gaps = np.maximum(events["start"][1:] - events["end"][:-1], 0.0) * again
    inside = np.maximum(events["end"] - events["start"] - events["duration"], 0.0)
    seconds = np.append(gaps, 0.0) + inside * (events["count"] > 1)
    attempts = sums(row[failed], events["count"][failed].astype(float), len(found))
    return attempts, sums(row[failed], seconds[failed], len(found))


LOCKS = Rule(
    name="lock-waiting",
    remedy="holding locks for a shorter time",
    sees="Processes that wait for locks of files: flock, lockf, fcntl.",
    threshold=(
        f"Lock calls of more than {wording.seconds(2 * FREE_LOCK)} on average per process and file"
        f" ({wording.seconds(2 * FREE_NETWORK_LOCK)} on network file systems); or"
        f" {MANY_ATTEMPTS} attempts that fail (needs events)."
    ),
    estimate=(
        "Time in lock calls, the mean of the processes that wait, without"
        f" {wording.seconds(FREE_LOCK)} per call ({wording.seconds(FREE_NETWORK_LOCK)} on network"
        " file systems), which free locks need, and without the part of it in which processes wait"
        " for processors, as in the rest of the run; time from each failed attempt to the next."
    ),
    advice="Shorter locks of smaller ranges, or a file for each process.",
    control="The same locks without another owner.",
    find=_lock_waits,
    why_not="a lock guards data that only the program knows",
)
STORM = Rule(
    name="lock-storm",
    remedy="locking once for many records",
    sees="Locks of a file that are set and released around each record.",
    threshold=(
        f"At least {MANY_LOCKS:,} lock calls per process and file, and one per"
        f" {1 / PER_ACCESS:.0f} reads or writes or more."
    ),
    estimate=(
        "Time in lock calls except one pair per process and file, at most"
        f" {wording.seconds(FREE_LOCK)} per call ({wording.seconds(FREE_NETWORK_LOCK)} on network"
        " file systems), the mean of the processes: the rest is waiting for owners (lock-waiting)."
    ),
    advice="One lock for many records; no lock on a file of one process.",
    control="One lock before the loop.",
    find=_lock_storms,
    by_calls=True,
    why_not="a lock guards data that only the program knows",
)
