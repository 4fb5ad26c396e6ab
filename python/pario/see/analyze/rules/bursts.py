"""The rule about bursts of output between phases of computation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pario import wording
from pario.see.analyze.cells import WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.phases import phases
from pario.see.analyze.reference import COPY_RATE
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, scene

MIN_BURSTS = 3
MIN_BURST_SECONDS = 1.0
MIN_SHARE = 0.1


def _bursts(facts: Facts) -> Iterator[Candidate]:
    found = [phase for phase in phases(facts) if phase.kind in ("write", "mixed")]
    lengths = np.array([phase.end - phase.start for phase in found])
    if (
        len(found) < MIN_BURSTS
        or lengths.mean() < MIN_BURST_SECONDS
        or lengths.sum() < MIN_SHARE * facts.wall
    ):
        return
    between = np.array([after.start - before.end for before, after in pairwise(found)])
    hidden = float(np.minimum(lengths[:-1], between).sum()) / float(lengths.sum())
    subject = scene(facts, facts.stored & (facts.cells[:, WRITE] > 0), facts.cells[:, WRITE])
    if not len(subject.rows):
        return
    copying = sum(phase.bytes for phase in found) / max(facts.ranks, 1) / COPY_RATE
    share = max(hidden - copying / float(lengths.sum()), 0.0)
    yield subject.candidate(
        title=(
            f"{len(found)} bursts of output of {wording.seconds(float(lengths.mean()))} each,"
            " between which storage is idle"
        ),
        cause=(
            "The program computes, then writes, then computes; a copy of the data could be written"
            " while the next step is computed."
        ),
        confidence="low",
        evidence=(
            fact(
                f"{wording.seconds(float(lengths.sum()))} in bursts,"
                f" {wording.seconds(float(between.sum()))} of computation between them",
                bursts=float(len(found)),
                seconds=float(lengths.sum()),
            ),
        ),
        fixes=(
            code(
                "Copy the data and write them in the background: MPI_File_iwrite_all or a writer"
                " thread, HDF5's asynchronous VOL, ADIOS2's asynchronous write."
            ),
        ),
        claims=claim_all(facts, subject.rows, (WRITE,), share),
        method=(
            "the part of the writes that the computation after each burst could hide, minus a copy"
            f" of the data at {wording.rate(COPY_RATE)}"
        ),
    )


BURSTS = Rule(
    name="overlap",
    remedy="writing while computing",
    sees="Bursts of output that could be written while the program computes.",
    threshold=(
        f"At least {MIN_BURSTS} bursts of {MIN_BURST_SECONDS:.0f} s or more (mean), together "
        f"{wording.share(MIN_SHARE)} of the run; no other finding."
    ),
    estimate=(
        "The part of the write time that the computation after each burst could hide, minus a copy"
        " of the data."
    ),
    advice="Non-blocking collective I/O, a writer thread, asynchronous HDF5.",
    control=(
        "Jobs in which another rule finds a cause. Output shorter than a second, or without"
        " computation after it."
    ),
    find=_bursts,
    alone=True,
)
