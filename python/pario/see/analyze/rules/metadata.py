"""Rules about calls that move no data: stat, fsync."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import KINDS, WRITE, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.row_facts import MANY_SYNCS, WRITES_OF_A_SYNC
from pario.see.analyze.rules import databases
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    all_but_one,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.call_words import name_functions, stat_words, sync_words
from pario.see.analyze.rules.calling import Work, claim_work, find_running_shares
from pario.see.analyze.rules.imports import find_packages
from pario.see.analyze.rules.small_calls import excess

STAT, SYNC, OPEN, CLOSE, OTHER = (
    KINDS.index(kind) for kind in ("stat", "sync", "open", "close", "other")
)
MANY_STATS = 1000
MANY_POLLS, POLLED = 100, 0.9  # stat calls, and the part of them that find no file
_ATTRIBUTES = re.compile(r"[lf]?(get|list)xattr\b")
STAT_WORK = Work(idioms.ask_for_a_name, "asking for a name")


def _stat_storms(facts: Facts) -> Iterator[Candidate]:
    stats, opens = facts.calls("stats"), facts.calls("opens")
    own = facts.stored & ~find_packages(facts)
    in_lane = own & (facts.lane >= 0)
    many = sums(facts.lane[in_lane], stats[in_lane], facts.ranks)
    busy = (
        np.where(facts.lane >= 0, many[facts.lane], stats / np.maximum(facts.column("ranks"), 1))
        >= MANY_STATS
    )
    mask = own & busy & (stats > 2 * opens)
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, STAT])
    rows, count = subject.rows, subject.total("stats")
    polled = find_polled(facts)[rows]
    needless = all_but_one(stats[rows]) * np.where(polled, _displaced_share(facts, rows), 1.0)
    yield subject.candidate(
        **_describe_stats(subject, polled),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} stat, access, readlink or getxattr calls,"
                f" {wording.seconds(sum_seconds(facts, rows, STAT))}{facts.over_all}",
                stats=count,
            ),
        ),
        fixes=(
            *databases.fixes_of_sqlite(
                subject,
                "many queries in one transaction (BEGIN ... COMMIT), each of which looks for the"
                " journal of another process.",
            ),
            *_advise_on_stats(facts, rows),
        ),
        claims=[
            *claim_all(facts, rows, (STAT,), needless),
            *claim_work(facts, rows, STAT_WORK, needless),
        ],
        method=(
            "time in stat calls beyond the first per process and file, and the program's time"
            f" between them, at most {STAT_WORK.text} for each"
            + ("; of waiting for files the part that it takes from others" * bool(polled.any()))
        ),
    )


def _ask_for_attributes(facts: Facts, rows: Ints) -> bool:
    """True if most of the questions are for extended attributes, by events."""
    return _ATTRIBUTES.match(name_functions(facts, rows, "stat")) is not None


def _advise_on_stats(facts: Facts, rows: Ints) -> tuple[Fix, ...]:
    if _ask_for_attributes(facts, rows):
        return (
            code(
                "Read the attribute once and keep its value; where another program changes it, wait"
                " with inotify (IN_ATTRIB), not by asking again."
            ),
        )
    return (
        code(
            "Ask once and keep the answer; wait for a file with inotify, or a message from the"
            " rank that writes it, not by asking again."
        ),
        code("List a directory once (scandir) instead of asking for each name."),
    )


def _describe_stats(subject: Scene, polled: Mask) -> dict[str, str]:
    """Return title and cause; ``polled``: rows whose process waits for another to make the file."""
    facts, rows, count = subject.facts, subject.rows, subject.total("stats")
    words = stat_words(facts, rows)
    if facts.calls("stats")[rows[polled]].sum() > 0.5 * count:
        return {
            "title": f"{wording.count(count)} {words} wait for {subject.place}",
            "cause": (
                "The program asks again and again until another process has made the file. It"
                " waits for that process, and takes processor time from others meanwhile."
            ),
            "remedy": "waiting for files without asking",
        }
    each = (
        "is a request to the metadata server each time"
        if facts.network[facts.file[rows]].any()
        else "makes the kernel follow the path each time"
    )
    title = f"{wording.count(count)} {words} on {subject.place}"
    if _ask_for_attributes(facts, rows):
        return {
            "title": title,
            "cause": f"Asking for an attribute of a file {each}; the answer was known already.",
            "remedy": "asking once for the attributes of a file",
        }
    return {
        "title": title,
        "cause": f"Asking for a file's size or existence {each}; the answer was known already.",
    }


def find_polled(facts: Facts) -> Mask:
    """True for rows of a process that asks for a file until another process of the job makes it."""
    stats, opens = facts.calls("stats"), facts.calls("opens")
    waits = (stats >= MANY_POLLS) & (facts.column("failed") >= POLLED * stats) & (opens == 0)
    return np.asarray(waits & (facts.per_file(opens)[facts.file] > 0))


def _displaced_share(facts: Facts, rows: Ints) -> Floats:
    """Return, per row, the part of its time that the other lanes would gain if it waited without a
    processor: none if they never wait for one."""
    lanes = np.arange(facts.ranks)
    running = find_running_shares(facts, lanes)
    others = np.array([(1.0 - running)[lanes != lane].max(initial=0.0) for lane in lanes])
    processors = max(int(facts.job.processes["processors"].max(initial=0)), 1)
    share = np.append(running * others / processors, 0.0)  # the last for rows of several ranks
    return np.asarray(share[facts.lane[rows]])


def _sync_storms(facts: Facts) -> Iterator[Candidate]:
    mask = facts.often_synced | facts.synced_writes
    if not mask.any():
        return
    waited = _wait_inside_writes(facts)
    subject = scene(facts, mask, facts.cells[:, SYNC] + waited)
    rows, count = subject.rows, subject.total("syncs") + subject.total("sync_writes")
    needless = all_but_one(facts.syncs_in_turn[rows])
    took = sum_seconds(facts, rows, SYNC) + float(waited[rows].sum())
    words = sync_words(facts, rows)
    commits = databases.find_sqlite(facts)[rows]  # each makes and removes a journal, too
    yield subject.candidate(
        title=(
            f"{wording.count(count)} {words} on {subject.place},"
            f" {_per(subject.total('writes'), count)}"
        ),
        cause=(
            f"Each of these {words} waits until the device has stored the bytes; the program waits"
            " for the device each time instead of once."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} syncs, {wording.seconds(took / max(count, 1))} each,"
                f" {wording.seconds(took)}{facts.over_all}",
                syncs=count,
            ),
        ),
        fixes=(
            *databases.fixes_of_sqlite(
                subject,
                "many statements in one transaction (BEGIN ... COMMIT); PRAGMA journal_mode=WAL"
                " syncs less often.",
            ),
            *databases.fixes_of_duckdb(subject),
            code(
                "Synchronise once, after the last write of a file (or of a checkpoint), not after"
                " each write; open without O_SYNC or O_DSYNC."
            ),
            code(
                "Where every record must survive a crash, collect several and sync them together."
            ),
        ),
        claims=[
            *claim_all(facts, rows, (SYNC,), needless),
            Claim(rows, WRITE, waited[rows]),
            *claim_all(facts, rows[commits], (OPEN, CLOSE, OTHER), needless[commits]),
        ],
        method=(
            f"time in {words}, all but one per file and process (or chain of processes)"
            + ("; and in calls that make and remove SQLite's journals" * bool(commits.any()))
        ),
    )


def _wait_inside_writes(facts: Facts) -> Floats:
    """Return, per row, the time of writes that wait for the device: with O_SYNC, and syncs whose
    time the log adds to that of the writes, without a usual cost of the writes."""
    rows = np.flatnonzero(facts.synced_writes)
    usual = 0.0 if facts.has("meta_split") else facts.reference.call[facts.file[rows]]
    seconds = np.zeros(len(facts.records))
    seconds[rows] = np.maximum(excess(facts, rows, WRITES) - usual * facts.writes[rows], 0.0)
    return seconds


def _per(writes: int, syncs: int) -> str:
    if not writes:
        return "with no write call between them"
    if writes <= 1.5 * syncs:
        return "one per write"
    return f"one per {wording.count(writes / max(syncs, 1))} writes"


SYNCS = Rule(
    name="sync-storm",
    remedy="syncing once",
    sees=(
        "fsync, fdatasync, msync or MPI_File_sync after (nearly) every write, or files opened"
        " with O_SYNC."
    ),
    threshold=(
        f"At least {MANY_SYNCS} syncs of a file by a process, or by processes that run one after"
        f" another, and one per {WRITES_OF_A_SYNC} writes or fewer."
    ),
    estimate=(
        "Time in all sync calls but one per file and process (or chain of processes); with O_SYNC,"
        " and in Darshan logs, which add that time to the time of writes, time of writes minus"
        " their bytes at the reference rate and the usual cost of a call. Of SQLite also the opens,"
        " closes and removals of journals: a commit has each of these calls."
    ),
    advice="Sync once, after the last write.",
    control="One fsync at the end.",
    find=_sync_storms,
    why_not=(
        "an fsync promises that bytes survive a crash; only the program knows which promises it"
        " needs"
    ),
)
STATS = Rule(
    name="stat-storm",
    remedy="asking once for the state of a file",
    sees="Thousands of stat, access or fstat calls on files that are hardly opened.",
    threshold=(
        f"At least {MANY_STATS} such calls per process, on files with more than two per open;"
        " not on installed packages of Python."
    ),
    estimate=(
        "Time in these calls beyond the first per process and file, and the program's time"
        f" between them, at most {STAT_WORK.text} for each (needs events). Of calls that wait until"
        " another process has made the file only the processor time that others wait for."
    ),
    advice="Ask once and keep the answer.",
    control="One stat per file.",
    find=_stat_storms,
    why_not="each answer may differ, because other programs change files, too",
)
