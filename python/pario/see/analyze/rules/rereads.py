"""The rule about bytes that are read or parsed several times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import KINDS, READ
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.reference import COPY_RATE
from pario.see.analyze.rules import databases, repairs
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, scene, sum_seconds
from pario.see.analyze.rules.calling import (
    MANY_PARSED,
    PARSING,
    TEXT,
    TEXT_WORK,
    are_of_text,
    are_parsed_often,
    claim_computation,
    claim_mapped_parsing,
    find_parsing,
    find_parsing_after,
    find_repeated_work,
)
from pario.see.analyze.rules.copies import find_repeated_copies
from pario.see.analyze.rules.map_or_read import instead_of_reading, use_of
from pario.see.analyze.rules.opens import find_open_loops
from pario.see.analyze.rules.repairs import MOST_KEPT, figures_of_copy
from pario.see.analyze.rules.small_calls import are_copies

SEEK, OPEN, CLOSE = (KINDS.index(kind) for kind in ("seek", "open", "close"))
REREAD_FACTOR = 1.5
ENOUGH_BYTES = 1 << 20
SERVED = 0.75  # of a copy's rate: reads as fast are served from memory already
#: The ends of the names of files whose bytes are decompressed, or otherwise converted, before use.
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_PARSED = (*TEXT, ".dat", ".fits", ".parquet", ".feather", ".npz", ".zip", ".xlsx", *_PACKED)
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".jp2")
_DECODED = (*_IMAGES, ".flac", ".mp3", ".ogg")
EXPANSION = 10  # bytes in memory for one of a compressed image or sound
#: Of files that are parsed from a mapping: other files are used in place.
_PARSED_FROM_MEMORY = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xml", ".parquet", *_PACKED)


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
        & ~below_mpiio(facts)
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
    of_sqlite = databases.find_sqlite(facts)
    for its in (mask & ~of_sqlite, mask & of_sqlite):
        if its.any():
            yield _describe_reads(scene(facts, its, facts.cells[:, READ]))


def _describe_reads(subject: Scene) -> Candidate:
    """Return a finding on the rows whose bytes are read several times."""
    facts, rows = subject.facts, subject.rows
    moved, extent = facts.column("bytes_read"), facts.read_extent
    ranks = np.maximum(facts.column("ranks"), 1)
    times = float(np.average(moved[rows] / (extent * ranks)[rows], weights=moved[rows]))
    needless = 1.0 - (extent * ranks)[rows] / moved[rows]
    database = databases.is_of_sqlite(subject)
    return subject.candidate(
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
                **figures_of_copy(
                    facts,
                    rows,
                    worth=bool(
                        moved[rows].sum() < SERVED * COPY_RATE * sum_seconds(facts, rows, READ)
                    ),
                ),
            ),
        ),
        why_not=databases.WHY_NOT_CACHED if database else "",
        fixes=databases.fixes_of_sqlite(subject, databases.OF_READS)
        or (
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


def below_mpiio(facts: Facts) -> Mask:
    """True for POSIX rows whose reads were made by MPI-IO."""
    return np.asarray(
        facts.posix
        & (facts.column("nested_reads") > 0.5 * facts.column("reads"))
        & (facts.column("reads") > 0)
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
