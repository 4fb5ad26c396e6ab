"""The rule about directories in which thousands of names are asked for, made or removed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import counts, sums
from pario.see.analyze.cells import KINDS
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import Claim
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene, sum_seconds
from pario.see.analyze.rules.small_files import find_installed

STAT, OTHER, OPEN = (KINDS.index(kind) for kind in ("stat", "other", "open"))
MANY_NAMES = 500
LISTED = 2e-6  # seconds per name of one listing


def _directory_storms(facts: Facts) -> Iterator[Candidate]:
    if not len(facts.records):
        return
    calls = facts.calls("stats") + facts.calls("others") + facts.calls("failed_opens")
    asked = facts.stored & (calls > 0) & (calls >= facts.calls("opens"))
    asked &= ~find_installed(facts)[facts.file]
    directory = facts.directory[facts.file]
    names = sums(directory[asked], files_of_rows(facts)[asked], len(facts.directories))
    mask = asked & (names >= MANY_NAMES)[directory]
    if mask.any():
        yield _directory_storm(facts, mask, calls)


def _directory_storm(facts: Facts, mask: np.ndarray, calls: np.ndarray) -> Candidate:
    subject = scene(facts, mask, facts.cells[:, STAT] + facts.cells[:, OTHER])
    rows = subject.rows
    directory = facts.directory[facts.file[rows]]
    busiest = int(np.argmax(counts(directory, len(facts.directories))))
    several = len(np.unique(directory))
    where = wording.name(facts.directories[busiest])
    if several > 1:
        where = f"{wording.count(several)} directories ({where}, ...)"
    count, names = float(calls[rows].sum()), float(files_of_rows(facts)[rows].sum())
    took = sum_seconds(facts, rows, STAT, OTHER, OPEN)
    return subject.candidate(
        title=(
            f"{wording.count(count)} calls on {wording.count(names)} names in {where}, one name"
            " at a time"
        ),
        cause=(
            f"Each stat, create, rename or unlink is a request of its own"
            f" ({wording.seconds(took / max(count, 1))}), and the directory's lock serves one"
            " after the other."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(subject.total('stats'))} stat, access or fstat calls,"
                f" {wording.count(subject.total('others'))} unlink, rename, mkdir and similar"
                f" calls, {wording.count(subject.total('failed_opens'))} failed opens,"
                f" {wording.seconds(took)}{facts.over_all}",
                calls=count,
                names=names,
            ),
        ),
        fixes=(
            code(
                "List the directory once (os.scandir, readdir with d_type) and keep the answers,"
                " instead of asking for each name."
            ),
            code(
                "Keep scratch files in one file or in memory; spread files that must exist over"
                " subdirectories."
            ),
        ),
        claims=[
            Claim(rows, kind, facts.cells[rows, kind] - LISTED * files_of_rows(facts)[rows])
            for kind in (STAT, OTHER)
        ],
        method=f"time in these calls minus {wording.seconds(LISTED)} per name, as in one listing",
    )


STORM = Rule(
    name="directory-storm",
    remedy="listing a directory once",
    sees="Hundreds of names of a directory that are asked for, renamed or removed one by one.",
    threshold=(
        f"At least {MANY_NAMES} names of a directory, without installed software, each with at"
        " least as many such calls as opens."
    ),
    estimate=f"Time in stat and similar calls minus {wording.seconds(LISTED)} per name.",
    advice="One listing, fewer files, subdirectories.",
    control="One listing of the directory.",
    find=_directory_storms,
    why_not="each answer may differ, because other programs change the directory, too",
)
