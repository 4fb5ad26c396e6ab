"""Rules about repeated reads, missing files, and the places of reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import KINDS, READ, READS
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.reference import COPY_RATE
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.calling import (
    MANY_PARSED,
    PARSING,
    TEXT,
    TEXT_WORK,
    are_of_text,
    are_parsed_often,
    claim_computation,
    claim_mapped_parsing,
    claim_work,
    find_parsing,
    find_parsing_after,
    find_repeated_work,
)
from pario.see.analyze.rules.copies import find_repeated_copies
from pario.see.analyze.rules.map_or_read import instead_of_reading, use_of
from pario.see.analyze.rules.opens import find_open_loops
from pario.see.analyze.rules.requests import find_asynchronous
from pario.see.analyze.rules.small_calls import LINE_WORK, SMALL_CALL, are_copies, excess

SEEK, OPEN, CLOSE = (KINDS.index(kind) for kind in ("seek", "open", "close"))
REREAD_FACTOR = 1.5
ENOUGH_BYTES = 1 << 20
MANY_SEEKS = 1000
MANY_BACKWARD = 500
BACKWARD_SHARE = 0.8
LARGE_READ = 1 << 20
REFILLS = 0.9  # seeks for each read that fills a buffer
LEAST_BUFFERS = 16  # different places of such reads
OF_SEEKS = 0.5  # of the program's work for calls: one of two is a seek
SEEKS_OF_AN_OPEN = 4  # an open may include as many, as in Python
MANY_EMPTY = 1000
SERVED = 0.75  # of a copy's rate: reads as fast are served from memory already
#: The ends of the names of files whose bytes are decompressed, or otherwise converted, before use.
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_PARSED = (*TEXT, ".dat", ".fits", ".parquet", ".feather", ".npz", ".zip", ".xlsx", *_PACKED)
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".jp2")
_DECODED = (*_IMAGES, ".flac", ".mp3", ".ogg")
EXPANSION = 10  # bytes in memory for one of a compressed image or sound
#: Of files that are parsed from a mapping: other files are used in place.
_PARSED_FROM_MEMORY = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml", ".parquet", *_PACKED)
#: The most bytes to keep in memory: half of a process's memory for buffers.
MOST_KEPT = 128 << 20


def _rereads(facts: Facts) -> Iterator[Candidate]:
    yield from _read_again(facts)
    yield from _parsed_again(facts)


def _parsed_again(facts: Facts) -> Iterator[Candidate]:
    """Find files that are mapped, parsed and unmapped, again and again."""
    maps, mapped = facts.column("maps"), facts.column("bytes_mapped")
    size = facts.column("size_at_open")
    mask = facts.posix & (maps > 1) & (mapped >= ENOUGH_BYTES) & (mapped > REREAD_FACTOR * size)
    ends = [facts.path(file).lower().endswith(_PARSED_FROM_MEMORY) for file in facts.file[mask]]
    mask[mask] = ends
    if not mask.any():
        return
    rows = np.flatnonzero(mask)
    claims = claim_mapped_parsing(facts, rows, 1.0 - size[rows] / mapped[rows])
    subject = Scene(facts, rows, mapped[rows])
    times = float(np.average(mapped[rows] / np.maximum(size[rows], 1), weights=mapped[rows]))
    yield subject.candidate(
        title=f"{subject.place} mapped and parsed {times:.3g} times over",
        cause=(
            f"{wording.size(float(mapped[rows].sum()))} were parsed from files of"
            f" {wording.size(float(size[rows].sum()))}; keeping the result of the first pass would"
            " save the others."
        ),
        confidence="medium",
        why_not="the time is spent inside the program, which parses the bytes",
        evidence=(fact(f"{wording.count(float(maps[rows].sum()))} mappings", times=times),),
        fixes=(code("Read the file once before the loop, and keep the table in memory."),),
        claims=claims,
        method=(
            "the computation while the file is mapped, times the part of the bytes that had been"
            " mapped before"
        ),
        functions=("mmap", "mmap64"),
        processes=tuple(np.unique(facts.records["process"][rows]).tolist()),
    )


def _read_again(facts: Facts) -> Iterator[Candidate]:
    moved, extent = facts.column("bytes_read"), facts.read_extent
    ranks = np.maximum(facts.column("ranks"), 1)
    mask = (
        facts.stored
        & ~facts.mpiio
        & ~_below_mpiio(facts)
        & (extent > 0)
        & (moved > REREAD_FACTOR * extent * ranks)
        & (files_of_rows(facts) == 1)
        & (moved >= ENOUGH_BYTES)
    )
    mask &= (facts.read_size >= 512) | facts.stdio  # the buffer of a stream joins small reads
    copied = mask & are_copies(facts)
    mask &= ~copied
    if copied.any():
        yield from find_repeated_copies(facts, copied)
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, READ])
    rows = subject.rows
    times = float(np.average(moved[rows] / (extent * ranks)[rows], weights=moved[rows]))
    needless = 1.0 - (extent * ranks)[rows] / moved[rows]
    yield subject.candidate(
        title=f"{subject.place} read {times:.3g} times over",
        cause=(
            f"{wording.size(float(moved[rows].sum()))} were read from files (or parts) of "
            f"{wording.size(float((extent * ranks)[rows].sum()))}; "
            "keeping the bytes of the first read would save the others."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.seconds(sum_seconds(facts, rows, READ))} in"
                f" {wording.count(float(facts.reads[rows].sum()))} reads{facts.over_all}",
                times=times,
                **_whole(
                    facts,
                    rows,
                    worth=bool(
                        moved[rows].sum() < SERVED * COPY_RATE * sum_seconds(facts, rows, READ)
                    ),
                ),
            ),
        ),
        fixes=(
            code(
                "Read once before the loop and keep the data in memory; if it does not fit, order"
                " the work by blocks and finish with each block."
            ),
            *_advise_mapping(facts, subject),
        ),
        claims=[
            *claim_all(facts, rows, (READ, SEEK, OPEN, CLOSE), needless),
            *claim_computation(facts, rows, _find_parsing(facts, rows, needless)),
        ],
        method=(
            "time of the reads, times the part of the bytes that had been read before; of files of"
            " text and compressed files also that part of the computation while they are open"
        ),
    )


def _find_parsing(facts: Facts, rows: Ints, needless: Floats) -> Floats:
    """Return, per row, the seconds in which its bytes are parsed again. Of a file that is read in
    one pass: a part of all the time while it is open, and of text also after the close. Of others:
    the time after reads of places that an earlier open read, or an earlier pass over text."""
    parsed, passes = _are_parsed(facts, rows)
    found, whole = np.zeros(len(rows)), parsed & passes
    found[whole] = find_parsing(facts, rows[whole])
    found[whole] += find_parsing_after(facts, rows[whole], done=found[whole])
    found[whole] *= needless[whole]
    rewound = parsed & ~passes & _are_rewound(facts, rows)
    rest = parsed & ~passes & ((facts.records["opens"][rows] > 1) | rewound)
    found[rest] = find_repeated_work(facts, rows[rest], rows[rewound])
    return found


def _are_rewound(facts: Facts, rows: Ints) -> Mask:
    """True for rows of files of text that are read in order, pass after pass."""
    records = facts.records[rows]
    return np.asarray(
        are_of_text(facts, rows) & (records["consecutive_reads"] >= 0.5 * records["reads"])
    )


def _are_parsed(facts: Facts, rows: Ints) -> tuple[Mask, Mask]:
    """Return the masks of rows of files whose bytes are parsed or decompressed, and of those with
    one pass for each open, or for each seek in a compressed file; without those whose parsing
    open-close-loop claims, and without the images and sounds of a process if they are too many to
    keep, such as the images of a training."""
    names = [facts.path(file).lower() for file in facts.file[rows]]
    named, packed, decoded = (
        np.array([name.endswith(ends) for name in names], bool)
        for ends in (_PARSED, _PACKED, _DECODED)
    )
    records = facts.records[rows]
    process = records["process"] + 1  # 0: rows of several ranks
    kept = EXPANSION * facts.read_extent[rows] * decoded
    sizes = sums(process, kept, len(facts.job.processes) + 1)
    named |= decoded & (sizes[process] <= MOST_KEPT)
    packed &= records["consecutive_reads"] >= 0.5 * records["reads"]
    most = REREAD_FACTOR * (records["opens"] + packed * records["seeks"])
    passes = records["bytes_read"] <= most * facts.read_extent[rows]
    named &= ~are_parsed_often(facts, rows)
    named &= ~(find_open_loops(facts)[rows] & (records["opens"] >= MANY_PARSED))
    return np.asarray(named), np.asarray(passes)


def _advise_mapping(facts: Facts, subject: Scene) -> Iterator[Fix]:
    """Yield the repairs by memory that the processes of a node share."""
    posix = subject.rows[facts.posix[subject.rows]]
    shared = instead_of_reading(use_of(facts, posix, subject.place, "bytes_read"))
    yield code(shared or "For several processes on a node: MPI_Win_allocate_shared.")


def _whole(facts: Facts, rows: Ints, *, worth: bool) -> dict[str, float]:
    """Return figures of a copy in memory: MiB of the largest file, and whether it is small enough
    and ``worth`` keeping."""
    size = float(np.maximum(facts.records["end_read"], facts.records["size_at_open"])[rows].max())
    mapped = bool(facts.column("maps")[rows].any())  # mmap ends the use of the copy
    small = worth and size <= MOST_KEPT and not mapped
    return {"mib": float(np.ceil(size / 2**20)), "small": float(small)}


def _below_mpiio(facts: Facts) -> Mask:
    """True for POSIX rows whose reads were made by MPI-IO."""
    return np.asarray(
        facts.posix
        & (facts.column("nested_reads") > 0.5 * facts.column("reads"))
        & (facts.column("reads") > 0)
    )


def _backward_reads(facts: Facts) -> Iterator[Candidate]:
    reads = facts.reads
    backward = facts.column("reads") - facts.column("consecutive_reads")
    backward -= facts.column("forward_reads")
    mask = facts.posix & (reads >= MANY_BACKWARD) & (backward >= BACKWARD_SHARE * reads)
    mask &= facts.column("bytes_read") <= REREAD_FACTOR * facts.read_extent
    if not facts.has("events"):
        mask &= facts.column("strided_reads") >= 0.5 * reads
    mask &= ~_below_mpiio(facts) & (facts.read_size < LARGE_READ) & ~find_asynchronous(facts)
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
                **_whole(facts, rows, worth=True),
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
    if mask.any():
        yield _seeks(facts, scene(facts, mask, facts.cells[:, SEEK] + facts.cells[:, READ]))


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
    return subject.candidate(
        title=f"{wording.count(seeks)} seeks in {subject.place}, {per:.2g} per read or write",
        cause=(
            "Each seek is a call of its own (and empties a stream's buffer), and small records out"
            " of order cannot be read ahead."
        ),
        confidence="high" if not small.any() else "medium",
        evidence=(
            fact(
                f"{wording.seconds(sum_seconds(facts, rows, SEEK))} in seeks,"
                f" {wording.seconds(sum_seconds(facts, rows, READ))} in"
                f" {wording.count(reads)} reads,"
                f" {100 * random:.0f} % of them not where the last one ended",
                seeks=seeks,
                **_whole(facts, rows, worth=True),
            ),
        ),
        fixes=(
            code(
                "Use MPI_File_read_at or MPI_File_write_at, which take the offset."
                if subject.layers == ("mpiio",)
                else "Use pread/pwrite, which take the offset; ask for the file's length once"
                " (fstat), not by seeking to its end."
            ),
            code(
                "Sort the records by offset, or read the whole file in blocks of some MiB and take"
                " the records from memory."
            ),
        ),
        claims=claims,
        method=(
            "time in seeks, and time of the small reads and of those that fill a buffer again,"
            " beyond reading the touched part of the file once in large calls; and"
            f" {wording.share(OF_SEEKS)} of the program's time between calls, at most"
            f" {LINE_WORK.text} for each"
        ),
    )


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


REREAD = Rule(
    name="re-read",
    remedy="keeping the bytes that were read",
    sees=(
        "The same bytes of a file read, or parsed from a mapping, several times by the same"
        " process."
    ),
    threshold=(
        f"More than {REREAD_FACTOR} times as many bytes read as distinct bytes (without "
        "events: as the highest offset read), at least 1 MiB, calls of 512 B or more."
    ),
    estimate=(
        "Time of the reads times the share of bytes that had been read before (of copies within the"
        " kernel to other files also of the writes and removals of these); of files of text and"
        " compressed files (by their names; images and sounds only if they need at most"
        f" {wording.size(MOST_KEPT)} as decoded) that are opened for each pass (or compressed files"
        " with a seek back for each) also that share of the computation while they are open or"
        " mapped, or of that after reads at places which an earlier open (of files of text: an"
        " earlier pass) read, at most"
        f" {wording.seconds(PARSING)} for each byte; and of text that after the close, at most"
        f" {TEXT_WORK.text} (needs events)."
    ),
    advice="Keep the bytes in memory, or map a file that stays in memory.",
    control="One pass over the file.",
    find=_rereads,
    repairs=(repairs.KEPT_WHOLE,),
    why_not="each read must copy the bytes into the program's memory again, from any cache",
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
    advice="pread/pwrite; sort by offset; read in blocks.",
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
