"""Rules about the places of reads: backwards, after a seek each, and at the end of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, Mask
from pario.see.analyze.cells import READ, READS
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, scene, sum_seconds
from pario.see.analyze.rules.calling import claim_work
from pario.see.analyze.rules.repairs import figures_of_copy
from pario.see.analyze.rules.requests import find_asynchronous
from pario.see.analyze.rules.rereads import REREAD_FACTOR, SEEK, below_mpiio
from pario.see.analyze.rules.small_calls import LINE_WORK, SMALL_CALL, excess
from pario.see.tables.scripts import base_name

MANY_SEEKS = 1000
MANY_BACKWARD = 500
BACKWARD_SHARE = 0.8
LARGE_READ = 1 << 20
REFILLS = 0.9  # seeks for each read that fills a buffer
LEAST_BUFFERS = 16  # different places of such reads
OF_SEEKS = 0.5  # of the program's work for calls: one of two is a seek
SEEKS_OF_AN_OPEN = 4  # an open may include as many, as in Python
MANY_EMPTY = 1000
_SEEKS_COST = (
    "Each seek is a call of its own (and may empty a stream's buffer); small records out of order"
    " cannot be read ahead."
)
_SHELLS = ("bash", "sh", "dash", "ksh", "mksh", "zsh")
_LINES_OF_SHELLS: dict[str, Any] = {
    "cause": (
        "The shell's read asks the kernel for a block at each line, and seeks back to the end of"
        " the line, because a program that it starts may read the rest."
    ),
    "fixes": (
        code(
            "Read all lines with one command: mapfile -t lines <FILE (bash), then a loop over"
            ' "${lines[@]}". A pipe into the loop costs more: the shell then reads single bytes.'
        ),
        code("Or let one awk read the file and do the work of the loop."),
    ),
    "remedy": "reading all lines with one command",
}
_WASTED_STREAMS = (
    "{} streams were made of the file's descriptor, for a read or two each. Each stream seeks to"
    " find its place, and reads a whole buffer, which the next one reads again."
)
_ONE_STREAM = (
    "Read many records with each call (np.fromfile with a larger count), map the file (np.memmap),"
    " or keep one stream for all reads."
)


def _backward_reads(facts: Facts) -> Iterator[Candidate]:
    reads = facts.reads
    backward = facts.column("reads") - facts.column("consecutive_reads")
    backward -= facts.column("forward_reads")
    mask = facts.posix & (reads >= MANY_BACKWARD) & (backward >= BACKWARD_SHARE * reads)
    mask &= facts.column("bytes_read") <= REREAD_FACTOR * facts.read_extent
    if not facts.has("events"):
        mask &= facts.column("strided_reads") >= 0.5 * reads
    mask &= ~below_mpiio(facts) & (facts.read_size < LARGE_READ) & ~find_asynchronous(facts)
    if mask.any():
        yield _backward(facts, scene(facts, mask, facts.cells[:, READ]))


def _backward(facts: Facts, subject: Scene) -> Candidate:
    rows, moved = subject.rows, subject.total("bytes_read")
    reads, seeks = float(facts.reads[rows].sum()), subject.total("seeks")
    return subject.candidate(
        title=(
            f"{subject.place} read backwards, in {wording.count(reads)} reads of"
            f" {wording.size(moved / max(reads, 1))}"
        ),
        cause=(
            "Each read begins before the last one, where neither the kernel nor a buffer reads"
            " ahead."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.seconds(sum_seconds(facts, rows, READ))} in {wording.count(reads)}"
                f" reads, {wording.seconds(sum_seconds(facts, rows, SEEK))} in"
                f" {wording.count(seeks)} seeks",
                reads=reads,
                **figures_of_copy(facts, rows, worth=True),
            ),
        ),
        fixes=(
            code(
                "Read the file forwards, or in blocks of some MiB from its end, and take the"
                " records of a block from memory."
            ),
        ),
        claims=[
            *claim_all(facts, rows, (SEEK,)),
            Claim(rows, READ, _estimate_scattered_excess(facts, rows)),
        ],
        method="time in seeks and reads beyond reading the file once in large calls",
    )


def _seek_storms(facts: Facts) -> Iterator[Candidate]:
    seeks, moves = facts.calls("seeks"), facts.reads + facts.writes
    mask = (
        facts.stored
        & (seeks >= MANY_SEEKS)
        & (seeks >= 0.5 * moves)
        & (seeks > SEEKS_OF_AN_OPEN * facts.calls("opens"))
    )
    shells = _read_lines_by_shells(facts)
    for its in (mask & ~shells, mask & shells):
        if its.any():
            found = _seeks(facts, scene(facts, its, facts.cells[:, SEEK] + facts.cells[:, READ]))
            yield replace(found, **_LINES_OF_SHELLS) if its[shells].any() else found


def _read_lines_by_shells(facts: Facts) -> Mask:
    """True for rows of shells that read a block for each line, and seek back to its end."""
    again = facts.column("bytes_read") > REREAD_FACTOR * facts.read_extent
    return np.asarray(facts.are_of_programs(_is_shell) & again & (facts.writes == 0))


def _is_shell(program: str) -> bool:
    return base_name(program) in _SHELLS


def _seeks(facts: Facts, subject: Scene) -> Candidate:
    rows = subject.rows
    seeks, reads = subject.total("seeks"), float(facts.reads[rows].sum())
    random = 1.0 - subject.total("consecutive_reads") / max(reads, 1)
    small = (facts.read_size[rows] < SMALL_CALL) | _refill_buffers(facts, rows)
    claims = [
        *claim_all(facts, rows, (SEEK,)),
        Claim(rows[small], READ, _estimate_scattered_excess(facts, rows[small])),
        *claim_work(facts, rows, LINE_WORK, OF_SEEKS),
    ]
    per = seeks / max(reads + float(facts.writes[rows].sum()), 1)
    streams = _count_streams(facts, rows)
    return subject.candidate(
        title=f"{wording.count(seeks)} seeks in {subject.place}, {per:.2g} per read or write",
        cause=_WASTED_STREAMS.format(wording.count(streams)) if streams else _SEEKS_COST,
        confidence="high" if not small.any() else "medium",
        evidence=(
            fact(
                f"{wording.seconds(sum_seconds(facts, rows, SEEK))} in seeks,"
                f" {wording.seconds(sum_seconds(facts, rows, READ))} in"
                f" {wording.count(reads)} reads,"
                f" {100 * random:.0f} % of them not where the last one ended",
                seeks=seeks,
                **figures_of_copy(facts, rows, worth=True),
            ),
        ),
        fixes=_advise_on_seeks(subject, streams),
        claims=claims,
        method=(
            "time in seeks, and time of the small reads and of those that fill a buffer again,"
            " beyond reading the touched part of the file once in large calls; and"
            f" {wording.share(OF_SEEKS)} of the program's time between calls, at most"
            f" {LINE_WORK.text} for each"
        ),
    )


def _advise_on_seeks(subject: Scene, streams: float) -> tuple[Fix, ...]:
    """Return the changes of the program, the best first: a stream that skips records has them in
    its buffer, so that a pread of each would cost more."""
    facts, rows = subject.facts, subject.rows
    forward = facts.column("forward_reads")[rows].sum() >= 0.5 * facts.reads[rows].sum()
    skips = bool(forward and facts.stdio[rows].all())
    offset = (
        "Use MPI_File_read_at or MPI_File_write_at, which take the offset."
        if subject.layers == ("mpiio",)
        else "Use pread/pwrite, which take the offset; ask for the file's length once (fstat), not"
        " by seeking to its end."
    )
    blocks = (
        "Read the file in blocks of some MiB, and skip the bytes between the records in memory."
        if skips
        else "Sort the records by offset, or read the whole file in blocks of some MiB and take the"
        " records from memory."
    )
    first = (_ONE_STREAM,) if streams else ()
    return tuple(code(text) for text in (*first, *((blocks,) if skips else (offset, blocks))))


def _count_streams(facts: Facts, rows: Ints) -> float:
    """Return the streams that were made of a descriptor and closed, as np.fromfile does, if every
    second read or more had one of its own; else 0."""
    rows = rows[facts.stdio[rows]]
    records = facts.records[rows]
    made = np.maximum(records["closes"] - records["opens"], 0)
    return float(made[made >= 0.5 * facts.reads[rows]].sum())


def _refill_buffers(facts: Facts, rows: Ints) -> Mask:
    """True for rows of streams that read a buffer again after each seek: their reads are larger
    than the records of the program, at places out of order, and overlap."""
    reads, extent = facts.reads[rows], facts.read_extent[rows]
    scattered = facts.column("consecutive_reads")[rows] < 0.5 * reads
    scattered &= facts.calls("seeks")[rows] >= REFILLS * reads
    many = facts.read_size[rows] <= extent / LEAST_BUFFERS
    again = facts.column("bytes_read")[rows] > REREAD_FACTOR * extent
    return np.asarray(scattered & many & again)


def _estimate_scattered_excess(facts: Facts, rows: Ints) -> Floats:
    took = facts.cells[rows, READ]
    whole = facts.records["end_read"][rows] / facts.reference.row_rate(READS)[rows]
    return np.asarray(np.where(whole < took, took - whole, excess(facts, rows, READS)))


def _empty_reads(facts: Facts) -> Iterator[Candidate]:
    # One at the end of each pass finds the end of the file.
    empty = np.maximum(facts.column("zero_reads") - facts.column("opens"), 0.0)
    reads = facts.column("reads")
    mask = facts.stored & (empty >= MANY_EMPTY) & (empty > 0.3 * reads)
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, READ])
    rows, count = subject.rows, float(empty[subject.rows].sum())
    yield subject.candidate(
        title=f"{wording.count(count)} reads of {subject.place} returned no bytes",
        cause=(
            "The program reads again and again at the end of a file; each call returns no bytes."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.percent(count, subject.total('reads'))} of the reads returned 0 bytes",
                empty=count,
            ),
        ),
        fixes=(
            code(
                "Stop at end of file; to wait for more data use inotify, a pipe, or a message; or"
                " sleep between looks."
            ),
        ),
        claims=claim_all(facts, rows, (READ,), empty[rows] / np.maximum(reads[rows], 1)),
        method="the part of the reads' time that belongs to empty ones",
    )


BACKWARD = Rule(
    name="backward-reads",
    remedy="reading forwards",
    sees="A file that is read from its end to its beginning.",
    threshold=(
        f"At least {MANY_BACKWARD} reads of less than {LARGE_READ >> 20} MiB per process and file,"
        f" {wording.share(BACKWARD_SHARE)} of which begin before the last one, each byte about"
        " once."
    ),
    estimate=(
        "Time in seeks and reads minus one read of the file in large calls at the reference rate."
    ),
    advice="Read forwards, or in large blocks.",
    control="The same file read forwards.",
    find=_backward_reads,
    repairs=(repairs.KEPT_WHOLE,),
    why_not="only the program knows the records that it needs next",
)
SEEKS = Rule(
    name="seek-storm",
    remedy="reading in order",
    sees="A seek for (nearly) every read or write, mostly to read small records out of order.",
    threshold=(
        f"At least {MANY_SEEKS:,} seeks per process and file, one per two reads or writes or more,"
        f" and more than {SEEKS_OF_AN_OPEN} per open."
    ),
    estimate=(
        "Time in seeks, plus time in small reads, and in reads that fill a buffer again after each"
        " seek, minus one read of the touched part of the file in large calls at the reference"
        f" rate; and {wording.share(OF_SEEKS)} of the program's time between calls, at most"
        f" {LINE_WORK.text} for each (needs events)."
    ),
    advice="pread/pwrite; sort by offset; read in blocks; in a shell mapfile or awk.",
    control="The file read once in large blocks.",
    find=_seek_storms,
    repairs=(repairs.KEPT_WHOLE,),
    why_not="only the program knows the records that it needs, and when",
)
EMPTY = Rule(
    name="empty-reads",
    remedy="not reading beyond the end",
    sees="Reads that return no bytes, again and again.",
    threshold=(
        f"At least {MANY_EMPTY:,} reads of zero bytes per process and file beyond one per open,"
        " more than 30 % of the reads."
    ),
    estimate="The share of the read time that belongs to empty reads.",
    advice="Stop at the end of the file; wait without reading.",
    control="One empty read at the end of the file.",
    find=_empty_reads,
    why_not="each read must check for newly written bytes",
)
