"""The rule about flushes: of streams, and of files of libraries such as HDF5."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints
from pario.see.analyze.cells import KINDS, POSIX, WRITE, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    all_but_one,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.tables.model import LAYER_NAMES, LAYERS

FLUSH = KINDS.index("flush")
MANY_FLUSHES = 100
LARGE_FLUSH = 1 << 20  # bytes
MUCH_MORE = 4  # bytes written for each changed one


def _flush_storms(facts: Facts) -> Iterator[Candidate]:
    yield from _stream_flushes(facts)
    yield from _library_flushes(facts)


def _library_flushes(facts: Facts) -> Iterator[Candidate]:
    """Find files and datasets of libraries that are flushed after few bytes, again and again."""
    flushes = facts.column("flushes")
    written = facts.per_file(facts.column("bytes_written"), facts.posix)[facts.file]
    mask = facts.library & (flushes >= MANY_FLUSHES) & (written < LARGE_FLUSH * flushes)
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, FLUSH])
    rows, count = subject.rows, float(flushes[subject.rows].sum())
    took, needless = sum_seconds(facts, rows, FLUSH), all_but_one(flushes[rows])
    inside = float(np.nan_to_num(facts.column("inner_other_time")[rows]).sum())
    library = LAYER_NAMES[LAYERS[facts.records["layer"][rows[0]]]]
    yield subject.candidate(
        title=f"{wording.count(count)} flushes of {library} on {subject.place}",
        cause=(
            f"Each flush ({wording.seconds((took + inside) / count)})"
            f" {_describe_writes(facts, rows, count)}."
        ),
        confidence="high",
        why_not="a flush shows readers the data so far; only the program knows when they look",
        evidence=(
            fact(
                f"{wording.count(count)} flushes, {wording.seconds(took)} inside the library and"
                f" {wording.seconds(inside)} in its calls on the file{facts.over_all}",
                flushes=count,
            ),
        ),
        fixes=(
            code(
                "Flush after many steps (H5Fflush, nc_sync; h5py: flush(), netCDF4: sync()), or"
                " only close the file."
            ),
        ),
        claims=[
            *claim_all(facts, rows, (FLUSH,), needless),
            *_claim_writes(facts, rows, needless),
        ],
        method=(
            "time in flushes inside the library and in the writes that they make, all but one per"
            " process and file"
        ),
    )


def _describe_writes(facts: Facts, rows: Ints, count: float) -> str:
    """Return what a flush writes, in words: far more bytes than the program has changed, if the
    library stores whole chunks."""
    written = float(facts.column("inner_bytes_written")[rows].sum())
    paths = {facts.path(file) for file in np.unique(facts.file[rows])}
    own = [facts.path(file).partition(":/")[0] in paths for file in range(len(facts.job.files))]
    data = (facts.records["layer"] == facts.records["layer"][rows[0]]) & np.array(own)[facts.file]
    changed = float(facts.column("bytes_written")[data].sum())
    if not 0 < changed * MUCH_MORE <= written:
        return "writes the few changed bytes and the metadata of the library"
    return (
        f"writes {wording.size(written / count)} for {wording.size(changed / count)} of new data:"
        " the library stores each changed chunk as a whole, with its metadata"
    )


def _claim_writes(facts: Facts, rows: Ints, needless: Floats) -> list[Claim]:
    """Return claims of the calls on files inside the flushes of a library."""
    below = facts.find_in_layer(rows, POSIX)
    inner = np.nan_to_num(facts.column("inner_other_time")[rows]) * needless
    return [Claim(below[below >= 0], WRITE, inner[below >= 0])]


def _stream_flushes(facts: Facts) -> Iterator[Candidate]:
    flushes, writes = facts.column("flushes"), facts.calls("writes")
    mask = facts.stdio & (flushes >= MANY_FLUSHES) & (flushes * 50 >= writes)
    if not mask.any():
        return
    kind = FLUSH if facts.has("meta_split") else WRITE  # some logs add it to the time of writes
    subject = scene(facts, mask, facts.cells[:, kind])
    rows, count = subject.rows, subject.total("flushes")
    yield subject.candidate(
        title=f"{wording.count(count)} fflush calls on {subject.place}",
        cause="Each fflush writes the few bytes of the buffer, so that the buffer joins no writes.",
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} flushes,"
                f" {wording.seconds(sum_seconds(facts, rows, kind))}{facts.over_all}",
                flushes=count,
            ),
        ),
        fixes=(
            code(
                "Flush at the end of a step, not after each line (C++: '\\n' instead of std::endl;"
                " Fortran: no flush in the loop)."
            ),
        ),
        claims=[Claim(rows, kind, facts.cells[rows, kind] - facts.reference.cost(rows, WRITES))],
        method="time in fflush minus the bytes at the rate of large calls",
    )


FLUSHES = Rule(
    name="flush-storm",
    remedy="flushing less often",
    sees=(
        "fflush (std::endl, Fortran flush) after every line or two; flushes of HDF5 and netCDF"
        " after each step."
    ),
    threshold=(
        f"At least {MANY_FLUSHES} flushes per process and stream, and one per 50 writes or"
        f" fewer; as many of a file of a library, with less than {LARGE_FLUSH >> 20} MiB each."
    ),
    estimate=(
        "Time in fflush minus the bytes at the reference rate; time inside the library, and in its"
        " writes, in all flushes but one."
    ),
    advice="Flush at the end of a step.",
    control="The same output without flush.",
    find=_flush_storms,
    repairs=(repairs.FEWER_FLUSHES,),
)
