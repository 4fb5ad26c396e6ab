"""Rules about MPI-IO calls that move few bytes each."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, Mask, Table, ratio, sums
from pario.see.analyze.cells import KINDS, READ, READS, WRITE, WRITES, Direction
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.model import Evidence, Fix
from pario.see.analyze.rules import repairs
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
from pario.see.analyze.rules.calling import find_running_shares
from pario.see.analyze.rules.collective import find_joinable, sharers
from pario.see.analyze.rules.small_calls import SMALL_CALL, claim_excess, excess

MANY_CALLS = 500
VIEWS = 0.5  # set for each call
_VIEWED = "most of the time is in the views that the program sets, in each of which all ranks meet"
#: Seconds of a value that data sieving picks from a window (MPICH 5: 0.17 us for 256 bytes).
PICKING = 0.17e-6
OTHER = KINDS.index("other")
_SHARED = re.compile(r"MPI_File_i?(read|write)_(shared|ordered)(_begin|_end)?")


def _tiny_calls(collective: bool) -> Rule:
    def find(facts: Facts) -> Iterator[Candidate]:
        for direction in (WRITES, READS):
            calls = facts.column(direction.calls)
            together = facts.column(f"collective_{direction.calls}")
            mask = facts.mpiio & (calls >= MANY_CALLS) & (facts.mean_size(direction) < SMALL_CALL)
            mask &= (together > 0.5 * calls) == collective
            if not collective:
                mask &= _set_views(facts, direction) | ~find_joinable(facts, direction)
            if mask.any():
                subject = scene(facts, mask, facts.cells[:, direction.kind])
                yield _tiny(subject, direction, collective)

    kind = "collective" if collective else "independent"
    return Rule(
        name=f"tiny-{kind}-calls",
        remedy=f"joining tiny {kind} MPI-IO calls",
        sees=f"Thousands of {kind} MPI-IO calls that each move a few bytes.",
        threshold=(
            f"At least {MANY_CALLS} {kind} calls of less than {SMALL_CALL >> 10} KiB on average per"
            " process and file."
            + ("" if collective else " Not those that missing-collectives names.")
        ),
        estimate=(
            "Time of the calls minus their bytes at the reference rate; and of the calls of"
            " MPI_File_set_view, if there is one per two calls or more. Of independent reads of a"
            f" file of several ranks minus {wording.seconds(PICKING)} per call and the bytes that"
            " lie between, which data sieving needs."
        ),
        advice="Collect the values of many steps and move them with one call.",
        control="The same bytes in a few calls.",
        find=find,
        by_calls=True,
        repairs=repairs.SMALL_COLLECTIVE if collective else repairs.SMALL_INDEPENDENT,
    )


def _tiny(subject: Scene, direction: Direction, collective: bool) -> Candidate:
    facts, rows, kind, word = subject.facts, subject.rows, direction.kind, direction.word
    calls = float(facts.column(direction.calls)[rows].sum())
    moved = subject.total(direction.bytes)
    took = sum_seconds(facts, rows, kind)
    each = wording.seconds(took / max(calls, 1))
    viewed = rows[_set_views(facts, direction)[rows]]
    views = float(facts.column("others")[viewed].sum())
    return subject.candidate(
        title=(
            f"{wording.count(calls)} {'collective ' if collective else ''}MPI-IO {word}s of"
            f" {wording.size(moved / max(calls, 1))} {direction.preposition} {subject.place}"
        ),
        cause=(
            f"All ranks meet in each call and exchange their few bytes ({each} per call)."
            if collective
            else f"Each call passes through the MPI library to the file system for a few bytes"
            f" ({each} per call)."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(calls)} calls, {wording.size(moved)} together,"
                f" {wording.seconds(took)}{facts.over_all}",
                calls=calls,
                bytes=float(moved),
                **{direction.calls: calls},
            ),
            *_describe_views(facts, viewed, views),
        ),
        fixes=(*_view_fix(direction, collective), _array_fix(word)),
        why_not=_VIEWED if sum_seconds(facts, viewed, OTHER) > took else "",
        claims=[
            Claim(rows, kind, excess(facts, rows, direction) - _picking_seconds(subject, word)),
            *claim_all(facts, viewed, (OTHER,), all_but_one(facts.column("others")[viewed])),
        ],
        method=(
            f"time of the calls minus {wording.size(moved)} at the rate of large calls"
            + (", and time of the views set for each" if views else "")
        ),
    )


def _set_views(facts: Facts, direction: Direction) -> Mask:
    """Return, per row, True if the program sets a view for most of its calls."""
    return facts.column("others") >= VIEWS * facts.column(direction.calls)


def _picking_seconds(subject: Scene, word: str) -> Floats:
    """Return the seconds in which data sieving would pick the values of small independent reads
    from windows that several ranks read; longer for ranks that wait for processors, as their calls
    are."""
    facts, rows = subject.facts, subject.rows
    shared = sharers(facts, facts.mpiio)[facts.file[rows]]
    calls = facts.column("reads")[rows] - facts.column("collective_reads")[rows]
    windows = (shared - 1) * facts.reference.cost(rows, READS)
    seconds = PICKING * calls / find_running_shares(facts, facts.lane[rows]) + windows
    return np.where((shared >= 2) & (word == READS.word), seconds, 0.0)


def _describe_views(facts: Facts, rows: Ints, views: float) -> Iterator[Evidence]:
    """Yield the seconds in which views and similar calls prepare each call."""
    if views:
        took = sum_seconds(facts, rows, OTHER)
        yield fact(
            f"{wording.count(views)} calls such as MPI_File_set_view between them,"
            f" {wording.seconds(took)}{facts.over_all}",
            views=views,
        )


def _array_fix(word: str) -> Fix:
    return code(
        f"Collect the values in an array and {word} it with one call per 1 MiB or more (a derived"
        " datatype describes scattered places)."
    )


def _view_fix(direction: Direction, collective: bool) -> tuple[Fix, ...]:
    """Return the repair for small reads side by side: without an exchange, data sieving costs less
    for each piece than a collective call."""
    if collective or direction is WRITES:
        return ()
    return (
        code(
            "Describe the places of a rank's values as a file view (MPI_File_set_view) and read"
            " them with one MPI_File_read: the library reads windows of the file and picks the"
            " values (data sieving)."
        ),
    )


def _shared_pointers(facts: Facts) -> Iterator[Candidate]:
    used = facts.job.select_functions(_SHARED.fullmatch)
    own = facts.job.functions[used[facts.job.functions["name"]]]
    calls = sums(own["process"], own["calls"], len(facts.job.processes))
    moved = sums(own["process"], own["bytes"], len(facts.job.processes))
    tiny = (calls >= MANY_CALLS) & (moved < SMALL_CALL * calls)
    rows = np.flatnonzero(facts.mpiio & (facts.records["process"] >= 0))
    rows = rows[tiny[facts.records["process"][rows]]] if len(rows) else rows
    rows = rows[_shared_files(facts, used)[facts.file[rows]]] if len(rows) else rows
    if len(rows):
        own = own[tiny[own["process"]]]
        yield _shared_pointer(facts, rows, own, float(moved[tiny].sum()))


def _shared_files(facts: Facts, used: Mask) -> Mask:
    """Return, per file, True if its events are calls of ``used`` functions; True without events."""
    files = np.ones(len(facts.job.files), bool)
    events = facts.job.events
    of_kind = used[events["function"]] & (events["file"] >= 0) if len(events) else np.zeros(0, bool)
    if of_kind.any():
        files[:] = False
        files[events["file"][of_kind]] = True
    return files


def _shared_pointer(facts: Facts, rows: Ints, own: Table, moved: float) -> Candidate:
    subject = Scene(facts, rows, facts.cells[rows].sum(axis=1))
    calls, took = float(own["calls"].sum()), float(own["seconds"].sum())
    whole = float(facts.cells[rows][:, [READ, WRITE]].sum())
    share = min(1.0, ratio(np.array([took]), np.array([whole]), 1.0)[0])
    names = sorted({facts.job.function_names[number] for number in own["name"]})
    return subject.candidate(
        title=(
            f"{wording.count(calls)} calls of {', '.join(names)} with"
            f" {wording.size(moved / max(calls, 1))} each on {subject.place}"
        ),
        cause=(
            "The ranks share one file pointer, so that each call waits for the others to advance"
            " it (in a hidden file, under a lock)."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(calls)} calls, {wording.size(moved)} together,"
                f" {wording.seconds(took)} with waiting{facts.over_all}",
                calls=calls,
                bytes=moved,
            ),
        ),
        fixes=(
            code(
                "Compute the offset of each rank once (MPI_Exscan of the sizes) and call"
                " MPI_File_write_at_all with many values at once."
            ),
        ),
        claims=claim_excess(facts, rows, READS, WRITES, share=share),
        method="time of these calls minus their bytes at the rate of large calls",
    )


SHARED_POINTER = Rule(
    name="shared-file-pointer",
    remedy="computing offsets, not sharing a pointer",
    sees="Thousands of small calls with the shared file pointer (_ordered, _shared).",
    threshold=(
        f"At least {MANY_CALLS} such calls of less than {SMALL_CALL >> 10} KiB on average per"
        " process."
    ),
    estimate="Time of these calls minus their bytes at the reference rate.",
    advice="Offsets from MPI_Exscan, and collective calls with explicit offsets.",
    control="The same bytes in one ordered call.",
    find=_shared_pointers,
    by_calls=True,
    repairs=(repairs.OWN_MPIIO,),
)
TINY_COLLECTIVE, TINY_INDEPENDENT = _tiny_calls(True), _tiny_calls(False)
