"""The finding on files that the kernel copies again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints, Mask
from pario.see.analyze.cells import KINDS, READ, WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.rules.base import Candidate, Scene, code, fact, scene, sum_seconds
from pario.see.analyze.rules.small_calls import are_copies

SEEK, OPEN, CLOSE, OTHER = (KINDS.index(kind) for kind in ("seek", "open", "close", "other"))


def find_repeated_copies(facts: Facts, copied: Mask) -> Iterator[Candidate]:
    """Yield the finding on the rows ``copied``, files that the kernel copies again and again,
    unless their bytes went to sockets: then no file received them."""
    targets = _find_targets(facts, np.flatnonzero(copied))
    written = float(facts.column("bytes_written")[targets].sum())
    if written >= 0.5 * facts.column("bytes_read")[copied].sum():
        yield _name_copies(facts, scene(facts, copied, facts.cells[:, READ]), targets)


def _name_copies(facts: Facts, subject: Scene, targets: Ints) -> Candidate:
    """Return the finding on files that the kernel copies again and again for the program;
    ``targets``: the rows of the copies."""
    rows, moved = subject.rows, facts.column("bytes_read")[subject.rows]
    extent = facts.read_extent[rows] * np.maximum(facts.column("ranks"), 1)[rows]
    times, needless = float(moved.sum() / extent.sum()), 1.0 - extent / moved
    share = 1.0 - 1.0 / times
    return subject.candidate(
        title=f"{subject.place} copied {times:.3g} times over",
        cause=(
            f"{wording.size(float(moved.sum()))} were copied from files of"
            f" {wording.size(float(extent.sum()))}, by calls that copy within the kernel."
        ),
        confidence="medium",
        why_not="the bytes never pass through the program, so that no buffer can keep them",
        evidence=(
            fact(
                f"{wording.seconds(sum_seconds(facts, rows, READ))} in"
                f" {wording.count(float(facts.reads[rows].sum()))} copies{facts.over_all}",
                times=times,
            ),
        ),
        fixes=(
            code(
                "Where a copy is only read: read the original, or a hard link to it. Where a copy"
                " is changed: copy on write (cp --reflink, FICLONE), if the file system has it."
            ),
        ),
        claims=[
            *claim_all(facts, rows, (READ, SEEK, OPEN, CLOSE), needless),
            *claim_all(facts, targets, (OPEN, CLOSE, WRITE, OTHER), share),
        ],
        method=(
            "time of these calls and of those that make, close and remove the copies, times the"
            " part of the bytes that had been copied before"
        ),
        remedy="copying each file once",
    )


def _find_targets(facts: Facts, rows: Ints) -> Ints:
    """Return the rows of the same processes with files that copies within the kernel write."""
    processes = facts.records["process"]
    own = np.isin(processes, np.unique(processes[rows])) & (facts.column("bytes_written") > 0)
    return np.flatnonzero(own & facts.posix & are_copies(facts))
