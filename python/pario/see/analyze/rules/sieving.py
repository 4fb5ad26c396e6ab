"""The rule about holes that MPI-IO reads and writes back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, counts, ratio
from pario.see.analyze.cells import WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, setting
from pario.see.analyze.rules.collective import COLLECTIVE_FIX
from pario.see.analyze.rules.storage import Storage, find_storage

PIECE, PIECE_EVERY = 64, 8192
_BYTES = ("bytes_read", "bytes_written")


def _holes(facts: Facts) -> Iterator[Candidate]:
    """Find files of MPI-IO writes for which the library read windows of the file, changed them and
    wrote them back. In collective calls a process writes the bytes of others, too."""
    asked_read, asked = (facts.per_file(facts.column(name), facts.mpiio) for name in _BYTES)
    moved_read, moved = (facts.per_file(facts.column(name), facts.posix) for name in _BYTES)
    fills = moved_read > 1.5 * asked_read + 4096
    # Of a new file the windows are empty: their reads return nothing.
    empty = facts.per_file(facts.column("reads"), facts.mpiio) == 0
    empty &= moved > 1.5 * asked + 4096
    sieving = (facts.per_file(facts.column("nested_reads")) > 0) & (fills | empty)
    rows = np.flatnonzero(facts.mpiio & (facts.column("writes") > 0) & sieving[facts.file])
    storage = find_storage(facts, rows)
    found = storage.total > 0
    if found.any():
        needless = (1.0 - ratio(asked_read, moved_read), 1.0 - ratio(asked, moved))
        yield _hole(facts, rows[found], storage.select(found), (asked, moved), needless)


def _hole(
    facts: Facts,
    upper: Ints,
    storage: Storage,
    totals: tuple[Floats, Floats],
    needless: tuple[Floats, Floats],
) -> Candidate:
    """``totals``: bytes per file that were asked for, and written; ``needless``: the part of the
    bytes read and written per file beyond those."""
    subject = Scene(facts, upper, facts.cells[upper, WRITE])
    file, (asked, written) = facts.file[upper], totals
    of_reads, of_writes = (np.clip(part[file], 0.0, 1.0) for part in needless)
    pieces = np.minimum(asked / PIECE, written / PIECE_EVERY) * facts.reference.call
    lost = storage.read * of_reads + storage.write * of_writes + storage.other
    lost = lost - (pieces / np.maximum(counts(file, len(pieces)), 1))[file]
    below = facts.records[facts.posix & np.isin(facts.file, subject.files)]
    wanted = float(asked[subject.files].sum())
    moved = int(below["bytes_read"].sum() + below["bytes_written"].sum())
    amplified = moved / max(wanted, 1)
    nothing = int(below["zero_reads"].sum())
    vain = f", {wording.count(nothing)} of the reads returned nothing" if nothing else ""
    return subject.candidate(
        title=(
            f"holes read and written back in {subject.place}: {wording.size(moved)} moved to write"
            f" {wording.size(wanted)}"
        ),
        cause=(
            "Data sieving reads a window of the file, changes the few bytes that were written, and"
            " writes the whole window back, under a lock."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(int(below['nested_reads'].sum()))} reads and"
                f" {wording.count(int(below['nested_writes'].sum()))} writes made by MPI-IO,"
                f" {amplified:.3g} bytes moved per byte written{vain}",
                amplification=amplified,
            ),
            fact(
                f"{wording.seconds(float(below['nested_read_time'].sum()))} reading, "
                f"{wording.seconds(float(below['nested_write_time'].sum()))} "
                "writing windows over all ranks"
            ),
        ),
        fixes=(
            code('MPI_Info_set(info, "romio_ds_write", "disable") before MPI_File_open'),
            setting(
                f'on Cray systems MPICH_MPIIO_HINTS="{subject.paths[0]}:romio_ds_write=disable"'
            ),
            COLLECTIVE_FIX,
        ),
        claims=[Claim(upper, WRITE, lost)],
        method=(
            "time of the library's reads and locks and of the writes that put old bytes back, minus"
            " writing the pieces one by one"
        ),
    )


HOLES = Rule(
    name="hole-read-modify-write",
    remedy="not reading and rewriting holes",
    sees=(
        "MPI-IO writes with holes that make the library read windows of the file and write them"
        " back (data sieving)."
    ),
    threshold=(
        "POSIX reads inside MPI-IO writes of more than 1.5 times the bytes that all ranks read of"
        " the file; or reads of a new file that return nothing, and 1.5 times as many bytes"
        " written."
    ),
    estimate=(
        "Time of the library's reads and locks, and of the share of its writes that only restores"
        f" old bytes, minus a write per piece (one per {wording.block(PIECE_EVERY)} of window, at"
        f" least {PIECE} bytes each)."
    ),
    advice="pario's MPI-IO, romio_ds_write=disable, or a collective call that fills the holes.",
    control="The same pieces with sieving switched off.",
    find=_holes,
    repairs=(repairs.MPIIO_WRITE_BEHIND,),
)
