"""The rule about files of ADIOS2 with many steps of a few bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints
from pario.see.analyze.cells import KINDS, READ, READS, WRITE, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene
from pario.see.analyze.rules.calling import LIBRARY_WORK, claim_work
from pario.see.analyze.rules.small_calls import claim_excess
from pario.see.tables.model import LAYERS

MANY_STEPS = 1000
SMALL_STEP = 64 << 10  # bytes of all variables
#: Steps that one step can replace.
JOINED = 100
ADIOS2 = LAYERS.index("adios2")
OPEN, CLOSE = KINDS.index("open"), KINDS.index("close")
#: All times but those of opening and closing, and of the transfers.
_REST = tuple(set(range(len(KINDS))) - {OPEN, CLOSE, READ, WRITE})


def _small_steps(facts: Facts) -> Iterator[Candidate]:
    rows = np.flatnonzero(facts.library & (facts.records["layer"] == ADIOS2))
    steps = facts.column("others")  # BeginStep
    for row in rows[steps[rows] >= MANY_STEPS * np.maximum(facts.column("ranks")[rows], 1)]:
        inside = _rows_of_file(facts, int(row))
        variables = inside[facts.records["layer"][inside] == ADIOS2]
        moved = (facts.column("bytes_written") + facts.column("bytes_read"))[variables].sum()
        if moved < SMALL_STEP * steps[row]:
            yield _describe(facts, int(row), inside, float(steps[row]), float(moved))


def _rows_of_file(facts: Facts, row: int) -> Ints:
    """Return the rows of the variables of a file, and those of the files in its directory, of the
    same process."""
    path = facts.path(int(facts.file[row]))
    inside = [facts.job.path(file).startswith((f"{path}:", f"{path}/"))
              for file in range(len(facts.job.files))]  # fmt: skip
    own = facts.records["process"] == facts.records["process"][row]
    return np.flatnonzero(np.array(inside)[facts.file] & own)


def _describe(facts: Facts, row: int, inside: Ints, steps: float, moved: float) -> Candidate:
    its = np.append(inside, row)
    mask = np.zeros(len(facts.file), bool)
    mask[row] = True
    subject = scene(facts, mask, facts.cells.sum(axis=1))
    share = 1.0 - 1.0 / JOINED
    took = float(facts.cells[its].sum() - facts.cells[its][:, [OPEN, CLOSE]].sum())
    return subject.candidate(
        title=(
            f"{wording.count(steps)} ADIOS2 steps of {wording.size(moved / steps)} in"
            f" {subject.place}"
        ),
        cause=(
            f"Each step costs {wording.seconds(took / steps)}: BeginStep, EndStep, and an entry in"
            " the file's metadata (md.idx, md.0), regardless of its bytes."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(steps)} steps with {wording.size(moved)} of variables together,"
                f" {wording.seconds(took)}{facts.over_all}",
                steps=steps,
                bytes=moved,
            ),
        ),
        fixes=(
            code(
                "Collect the values of many steps in an array, and write it as one step: one more"
                " dimension of the variable holds the time. BeginStep and EndStep belong around"
                " megabytes."
            ),
        ),
        claims=[
            *claim_all(facts, its, _REST, share),
            *claim_excess(facts, its, WRITES, READS, share=share),
            *claim_work(facts, its, LIBRARY_WORK, share),
        ],
        method=(
            f"time of the steps and of the calls on the parts of the file, if one step replaces"
            f" {JOINED}, without that of {wording.size(moved)} at the rate of large calls; and the"
            f" program's time between them, at most {LIBRARY_WORK.text} for each"
        ),
    )


SMALL_STEPS = Rule(
    name="small-steps",
    remedy="joining steps of ADIOS2",
    sees="Files of ADIOS2 with a step for each value or for a few of them.",
    threshold=(
        f"At least {MANY_STEPS:,} steps per process and file, with less than {SMALL_STEP >> 10}"
        " KiB of variables each on average."
    ),
    estimate=(
        "Time of the steps, of their transfers and of the calls on the parts of the file, if one"
        f" step replaces {JOINED}, without that of their bytes at the reference rate; and the"
        f" program's time between them, at most {LIBRARY_WORK.text} for each (needs events)."
    ),
    advice="One step for an array of many values.",
    control="The same values in one step.",
    find=_small_steps,
    why_not="only the program knows where its steps begin and end",
)
