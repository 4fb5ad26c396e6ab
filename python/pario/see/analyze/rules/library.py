"""Rules about time and bytes between a program's MPI-IO calls and the file system."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, ratio, sums
from pario.see.analyze.cells import READS, WRITES, Direction
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim
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
    setting,
    sum_seconds,
)
from pario.see.analyze.rules.collective import collective_share, sharers
from pario.see.analyze.rules.small_calls import SMALL_CALL
from pario.see.analyze.rules.storage import find_storage

AMPLIFIED = 1.5
MUCH = 1 << 20  # bytes moved beyond those that the program asked for
QUEUED = 0.6  # of the run
LIBRARY_SHARE = 0.5
LEAST_BUFFER = 1 << 20
USUAL_BUFFER = 16 << 20
_LOCKED_FIX = (
    code(
        "On NFS the library locks the bytes of each call, and the client then flushes its cache:"
        " make fewer, larger calls; or collective ones with few aggregators (hint cb_nodes); or"
        " keep the file on a parallel file system."
    ),
)


def _amplification(facts: Facts) -> Iterator[Candidate]:
    for direction in (READS, WRITES):
        calls, values = direction.calls, facts.column(direction.bytes)
        upper, lower = facts.find_below(np.flatnonzero(facts.mpiio & (facts.lane >= 0)))
        nested = ratio(facts.column(f"nested_{calls}")[lower], facts.column(calls)[lower])
        asked = facts.per_file(values, facts.mpiio)
        moved = sums(facts.file[upper], values[lower] * nested, len(asked))
        extra = (asked > 0) & (moved > AMPLIFIED * asked) & (moved - asked >= MUCH)
        # Collective calls would use the bytes between the pieces if they are other ranks' pieces.
        extra &= moved > AMPLIFIED * asked * np.maximum(sharers(facts, facts.mpiio), 1)
        chosen = extra[facts.file[upper]] & (nested > 0)
        if chosen.any():
            rows = upper[chosen], lower[chosen]
            yield _describe_amplification(facts, *rows, (asked, moved), direction)


def _describe_amplification(
    facts: Facts, upper: Ints, lower: Ints, totals: tuple[Floats, Floats], direction: Direction
) -> Candidate:
    kind, word, preposition = direction.kind, direction.word, direction.preposition
    subject = Scene(facts, upper, facts.cells[upper, kind])
    asked, moved = (float(values[subject.files].sum()) for values in totals)
    times = moved / max(asked, 1)
    needless = 1.0 - ratio(*totals)[facts.file[upper]]
    seconds = facts.column(f"nested_{word}_time")[lower]
    calls = float(facts.column(f"nested_{word}s")[lower].sum())
    return subject.candidate(
        title=(
            f"MPI-IO {word}s {wording.size(moved)} {preposition} {subject.place} for"
            f" {wording.size(asked)} that the program {word}s: {times:.3g} times as much"
        ),
        cause=(
            "The library joins the small pieces of a call into windows of the file, and moves the"
            " bytes between the pieces, too."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"asked of MPI-IO: {wording.size(asked)}; moved by POSIX {word}s below it:"
                f" {wording.size(moved)} in {wording.count(calls)} calls,"
                f" {wording.seconds(float(seconds.sum()))}{facts.over_all}",
                asked=asked,
                moved=moved,
                amplification=times,
            ),
        ),
        fixes=(
            code(
                "Make the pieces that a call needs neighbours in the file (another order of"
                f" dimensions or chunks), or {word} the whole window once and use all of it."
            ),
            setting(f"hint romio_ds_{word}=disable, if the pieces are large (16 KiB or more)"),
        ),
        claims=[Claim(upper, kind, seconds * needless)],
        method=f"time of the library's {word}s times the share of bytes beyond those asked for",
    )


def _library_time(facts: Facts) -> Iterator[Candidate]:
    if facts.has("own_mpiio"):
        return
    upper = np.flatnonzero(facts.mpiio)
    storage = find_storage(facts, upper)
    one_host = len(facts.job.hosts) == 1
    for direction in (WRITES, READS):
        took, stored = facts.cells[upper, direction.kind], storage.inside(facts, upper, direction)
        calls = facts.column(direction.calls)[upper]
        together = collective_share(facts, direction.word)[upper] > 0.5
        inside = took - stored
        chosen = (calls > 0) & (stored > 0) & (inside > LIBRARY_SHARE * took)
        # A tiny buffer is the cause of this time, with a finding of its own.
        tiny = np.isin(facts.file[upper], list(_find_tiny_buffers(facts)))
        chosen &= ~together | (one_host & ~tiny & (not _wait_for_processors(facts)))
        if chosen.any():
            seconds = np.stack([inside, stored, storage.scale])[:, chosen]
            yield _inside_library(facts, upper[chosen], seconds, direction)


def _wait_for_processors(facts: Facts) -> bool:
    """True if the mean rank waits for a processor in most of the run: then collective calls wait
    for ranks that cannot run."""
    queued = np.maximum(facts.job.processes["run_queue_delay"], 0) * 1e-9
    return float(facts.lanes.sum_processes(queued).mean()) > QUEUED * facts.wall


def _inside_library(facts: Facts, rows: Ints, seconds: Floats, direction: Direction) -> Candidate:
    word, subject = direction.word, Scene(facts, rows, seconds[0])
    inside, storage = seconds[:2].sum(axis=1)
    collective = bool((collective_share(facts, word)[rows] > 0.5).any())
    own = facts.mpiio & np.isin(facts.file, subject.files)
    moved = float(facts.column(direction.bytes)[own].sum()) / len(rows)
    calls = "collective " if collective else ""
    piece = _own_piece(facts, np.flatnonzero(own), direction) if collective else 0.0
    whole = not collective and _are_whole(facts, subject.files, direction)
    return subject.candidate(
        title=(
            f"{calls}MPI-IO {word}s {direction.preposition} {subject.place} spend"
            f" {wording.percent(inside, inside + storage)} of their time inside the MPI library,"
            " not in storage"
        ),
        cause=(
            f"Each rank {word}s its own {wording.size(piece)} of a call itself and needs no other"
            " rank's data, but in every call all ranks first tell each other the places of their"
            " pieces."
            if piece
            else "The library sends the pieces of all ranks to its aggregators through its own"
            " messages, although all ranks share this node's memory."
            if collective
            else "The library makes one call on storage for each of its own, and spends the rest"
            " of the time around it: in locks and flushes (NFS), or in copies."
            if whole
            else "The library divides each call into the pieces of a view; that costs more than"
            " moving the bytes."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.seconds(inside)} inside MPI-IO and neither in storage nor waiting for"
                f" a rank to arrive, {wording.seconds(storage)} in storage, on"
                f" {wording.plural(len(np.unique(facts.lane[rows])), 'rank')}",
                inside=float(inside),
                storage=float(storage),
            ),
        ),
        fixes=_LOCKED_FIX if whole else _library_fixes(word, collective, piece),
        claims=[Claim(rows, direction.kind, seconds[0] - seconds[2] * moved / COPY_RATE)],
        method=(
            "time in the calls outside storage and waiting, minus a copy of their bytes at"
            f" {wording.rate(COPY_RATE)}"
        ),
    )


def _own_piece(facts: Facts, rows: Ints, direction: Direction) -> float:
    """Return the bytes of a rank's piece of a call if every rank that moves bytes in ``rows`` makes
    one system call for each of its calls, with the same bytes; 0 if ranks exchange data."""
    values, calls = facts.column(direction.bytes), facts.column(direction.calls)
    moving = rows[values[rows] > 0]
    upper, lower = facts.find_below(moving)
    if len(upper) < len(moving) or (facts.lane[upper] < 0).any():
        return 0.0
    asked, moved, calls = values[upper], values[lower], calls[upper]
    made = facts.column(f"nested_{direction.calls}")[lower]
    alone = (np.abs(moved - asked) <= (AMPLIFIED - 1) * asked) & (made <= AMPLIFIED * calls)
    return float(asked.sum() / max(calls.sum(), 1)) if alone.all() else 0.0


def _are_whole(facts: Facts, files: Ints, direction: Direction) -> bool:
    """True if the library makes about one call on storage for each call of MPI-IO."""
    chosen = np.isin(facts.file, files)
    calls = facts.column(direction.calls)[chosen & facts.mpiio].sum()
    return bool(facts.column(f"nested_{direction.calls}")[chosen].sum() <= AMPLIFIED * calls)


def _library_fixes(word: str, collective: bool, piece: float) -> tuple[Fix, ...]:
    disabled = f"hint romio_cb_{word}=disable"
    if piece >= SMALL_CALL:
        return (
            code(
                f"Call MPI_File_{word}_at instead of MPI_File_{word}_at_all (HDF5:"
                " H5FD_MPIO_INDEPENDENT), as long as each rank's part of a call is one piece."
            ),
            setting(f"{disabled}, which has the same effect"),
        )
    if collective:
        return (
            setting(f"{disabled} where each rank's part is one large piece (1 MiB or more)"),
            code("Let each rank own whole rows or planes, so that pieces are large."),
        )
    return (code(f"Pass larger contiguous pieces to each {word}, or make the calls collective."),)


def _tiny_buffers(facts: Facts) -> Iterator[Candidate]:
    small = _find_tiny_buffers(facts)
    for direction in (WRITES, READS):
        mask = facts.mpiio & np.isin(facts.file, list(small))
        mask &= facts.column(f"collective_{direction.calls}") > 0
        if mask.any():
            subject = scene(facts, mask, facts.cells[:, direction.kind])
            yield _tiny_buffer(facts, subject, small[int(subject.files[0])], direction)


def _find_tiny_buffers(facts: Facts) -> dict[int, int]:
    """Return files and their ``cb_buffer_size`` in force, if it is tiny."""
    sizes = {
        hint.file: int(hint.value)
        for hint in facts.job.hints
        if hint.key == "cb_buffer_size" and hint.when == "effective" and hint.value.isdigit()
    }
    return {file: size for file, size in sizes.items() if 0 < size < LEAST_BUFFER}


def _tiny_buffer(facts: Facts, subject: Scene, size: int, direction: Direction) -> Candidate:
    rows, kind, word = subject.rows, direction.kind, direction.word
    below = facts.per_file(facts.column(f"nested_{word}s"))[subject.files].sum()
    copied = facts.column(direction.bytes)[rows] / COPY_RATE
    needed = facts.reference.cost(rows, direction) + copied
    return subject.candidate(
        title=(
            f"collective {word}s {direction.preposition} {subject.place} in rounds of"
            f" {wording.block(size)}: cb_buffer_size={size}"
        ),
        cause=(
            "Each round exchanges one buffer per aggregator and moves it to the file; a tiny buffer"
            " makes many rounds, each with messages and a system call."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(subject.total(f'{word}s'))} collective {word}s became"
                f" {wording.count(float(below))} POSIX {word}s,"
                f" {wording.seconds(sum_seconds(facts, rows, kind))}{facts.over_all}",
                buffer=float(size),
                calls=float(below),
            ),
        ),
        fixes=(
            setting(
                f"hint cb_buffer_size={USUAL_BUFFER} at MPI_File_open (the default; a multiple of"
                " the stripe size)"
            ),
        ),
        claims=[Claim(rows, kind, facts.cells[rows, kind] - needed)],
        method=(
            "time of the calls minus their bytes at the rate of large calls and a copy of them at"
            f" {wording.rate(COPY_RATE)}: the exchange"
        ),
    )


TINY_BUFFER = Rule(
    name="tiny-collective-buffer",
    remedy="a larger cb_buffer_size",
    sees="Collective calls in rounds of a tiny buffer.",
    threshold=f"cb_buffer_size in force below {LEAST_BUFFER >> 20} MiB, and collective calls.",
    estimate=(
        "Time of the calls minus their bytes at the reference rate and a copy of them at"
        f" {wording.rate(COPY_RATE)}."
    ),
    advice="The default of 16 MiB, or a multiple of the stripe size.",
    control="The same calls with a buffer of 16 MiB.",
    find=_tiny_buffers,
    repairs=(repairs.OWN_MPIIO,),
)
AMPLIFICATION = Rule(
    name="amplification",
    remedy="moving only the bytes that are needed",
    sees="MPI-IO that reads or writes many more bytes than the program asked for.",
    threshold=(
        f"Below MPI-IO more than {AMPLIFIED} times the bytes that the ranks asked for in the same"
        f" direction, times the ranks that share the file, and at least {MUCH >> 20} MiB more"
        " (missing-collectives has pieces of ranks that lie side by side)."
    ),
    estimate="Time of the library's calls times the share of bytes beyond those asked for.",
    advice="Pieces that are neighbours in the file; no sieving of large pieces.",
    control="The same bytes in one piece.",
    find=_amplification,
    repairs=(repairs.OWN_MPIIO,),
)
LIBRARY_TIME = Rule(
    name="mpi-library-time",
    remedy="spending less time inside MPI-IO",
    sees=(
        "MPI-IO calls whose time is neither in storage nor waiting for ranks: the exchange of"
        " collective calls on one host, or the processing of views."
    ),
    threshold=(
        f"More than {wording.share(LIBRARY_SHARE)} of the time of processes that reach the file"
        " system; collective calls on one host only (collective-exchange has those of several),"
        " without a tiny buffer (tiny-collective-buffer), and not if the mean rank waits for a"
        f" processor in more than {wording.share(QUEUED)} of the run."
    ),
    estimate=f"That time minus a copy of the bytes at {wording.rate(COPY_RATE)}.",
    advice="pario's MPI-IO: the ranks of a node exchange data through shared memory.",
    control="Calls that spend their time in storage, or pario's MPI-IO.",
    find=_library_time,
    repairs=(repairs.OWN_MPIIO,),
)
