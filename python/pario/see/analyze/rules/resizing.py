"""The rule about files whose size is set again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints, ratio
from pario.see.analyze.cells import KINDS, POSIX
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene

OTHER = KINDS.index("other")
MANY_RESIZES = 100
SEVERAL_RESIZES, COSTLY = 20, 0.1  # calls, and a part of the run that they take


def _resizes(facts: Facts) -> Iterator[Candidate]:
    resizes = facts.column("truncates")
    # The time of other calls, such as unlink, is in the same counter.
    share = ratio(resizes, resizes + facts.column("others"))
    seconds = facts.cells[:, OTHER] * share
    costly = (resizes >= SEVERAL_RESIZES) & (seconds >= COSTLY * facts.wall)
    mask = facts.stored & (facts.lane >= 0)
    mask &= costly | (resizes >= MANY_RESIZES * files_of_rows(facts))
    if not mask.any():
        return
    subject = scene(facts, mask, seconds)
    rows = subject.rows
    count, took = subject.total("truncates"), float(seconds[rows].sum())
    yield subject.candidate(
        title=f"the size of {subject.place} is set {wording.count(count)} times",
        cause=(
            f"Each ftruncate, fallocate or MPI_File_set_size ({wording.seconds(took / count)})"
            " changes the file's metadata, waits for writers of the file, and in MPI-IO for all"
            f" ranks.{_describe_preallocation(facts, rows)}"
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.seconds(took)}{facts.over_all}",
                resizes=count,
            ),
        ),
        fixes=(
            code(
                "Set the final size once before the writes; a write at the end of a file extends it"
                " anyway."
            ),
            code(
                "Fortran: BACKSPACE, REWIND and ENDFILE after a write cut the file off behind it;"
                " keep the last records in memory instead of reading them back."
            ),
        ),
        claims=claim_all(
            facts, rows, (OTHER,), share[rows] * (1.0 - 1.0 / np.maximum(resizes[rows], 1.0))
        ),
        method="time in these calls but one per process and file",
    )


def _describe_preallocation(facts: Facts, rows: Ints) -> str:
    """Return a sentence on MPI-IO that writes all bytes of a file to preallocate it."""
    functions = facts.job.functions
    own = np.isin(functions["process"], facts.records["process"][rows])
    own &= facts.job.select_functions("MPI_File_preallocate".__eq__)[functions["name"]]
    below = facts.find_in_layer(rows[facts.mpiio[rows]], POSIX)
    moved = facts.column("nested_writes")[below[below >= 0]].sum()
    if not functions["calls"][own].sum() or not moved:
        return ""
    return " MPI_File_preallocate may also read and write all bytes of the file, old ones included."


RESIZES = Rule(
    name="resize-storm",
    remedy="setting the size of a file once",
    sees="A file whose size is set before or after each write.",
    threshold=(
        f"At least {MANY_RESIZES} calls of ftruncate, fallocate, MPI_File_set_size or"
        f" MPI_File_preallocate per process and file, or {SEVERAL_RESIZES} that take"
        f" {wording.share(COSTLY)} of the run."
    ),
    estimate="Time in these calls but one per process and file.",
    advice="Set the size once, or let writes extend the file.",
    control="One such call.",
    find=_resizes,
    why_not="only the program knows the final size",
)
