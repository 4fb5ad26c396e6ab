"""Rules about time and bytes between a program's MPI-IO calls and the file system."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, Mask, Table, ratio, sums
from pario.see.analyze.cells import READ, READS, WRITE, WRITES, Direction
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
from pario.see.analyze.rules.small_calls import SMALL_CALL, claim_excess
from pario.see.analyze.rules.storage import find_storage

MANY_CALLS = 500
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
_SHARED = re.compile(r"MPI_File_i?(read|write)_(shared|ordered)(_begin|_end)?")


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


def _tiny_calls(collective: bool) -> Rule:
    def find(facts: Facts) -> Iterator[Candidate]:
        for direction in (WRITES, READS):
            calls = facts.column(direction.calls)
            together = facts.column(f"collective_{direction.calls}")
            mask = facts.mpiio & (calls >= MANY_CALLS) & (facts.mean_size(direction) < SMALL_CALL)
            mask &= (together > 0.5 * calls) == collective
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
        ),
        estimate="Time of the calls minus their bytes at the reference rate.",
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
        ),
        fixes=(
            code(
                f"Collect the values in an array and {word} it with one call per 1 MiB or more"
                " (a derived datatype describes scattered places)."
            ),
        ),
        claims=claim_excess(facts, rows, direction),
        method=f"time of the calls minus {wording.size(moved)} at the rate of large calls",
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
