"""The rule about training loops that load their batches by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.cells import META, READ
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim, claim_all
from pario.see.analyze.rules.base import Candidate, Rule, code, fact, sum_seconds
from pario.see.tables.model import LoaderUse

LEAST_STALL = 0.1
LEAST_BATCHES = 10
WORKERS = 4


def _no_workers(facts: Facts) -> Iterator[Candidate]:
    for use in facts.job.loaders:
        if (
            use.workers == 0
            and use.batches >= LEAST_BATCHES
            and use.waited >= LEAST_STALL * (use.waited + use.worked)
        ):
            yield _candidate(facts, use)


def _candidate(facts: Facts, use: LoaderUse) -> Candidate:
    workers = min(WORKERS, max(use.processors, 2))
    saved = min(use.waited, use.worked + use.waited * (1 - 1 / workers))
    stall = use.waited / (use.waited + use.worked)
    keras = use.kind == "Keras"
    name = f"{use.kind}({wording.name(use.data)})"
    wanted = (
        f"PyDataset(workers={workers}, use_multiprocessing=True)"
        if keras
        else f"num_workers={workers}, persistent_workers=True"
    )
    lane = int(facts.lanes.of(np.array([use.process]))[0])
    return Candidate(
        title=(
            f"{name} waits {wording.share(stall)} of step time:"
            f" {'workers=1' if keras else 'num_workers=0'}"
        ),
        cause=(
            "The training loop reads and decodes each batch by itself, and the model waits"
            " meanwhile; workers would make the next batches while the model computes."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"waited {wording.seconds(use.waited)} for"
                f" {wording.plural(use.batches, 'batch', 'batches')}, {wording.seconds(use.worked)}"
                f" between them, on {wording.plural(use.processors, 'processor')}",
                waited=use.waited,
                worked=use.worked,
                batches=float(use.batches),
            ),
        ),
        fixes=(
            code(f"{wanted}: processes load while the model computes."),
            code(
                "pario.records.Loader over packed records: threads read ahead, without processes"
                " (docs/training.md)."
            ),
        ),
        claims=_claims(facts, use.process, lane, saved),
        method=(
            f"waits less what {workers} workers side by side would leave of them beside the"
            " computation"
        ),
        ranks=(facts.lanes.rank(lane),) if facts.lanes.mpi and lane >= 0 else (),
    )


def _claims(facts: Facts, process: int, lane: int, saved: float) -> list[Claim]:
    """Return claims of the process's reads, and of its time outside of calls for the rest."""
    rows = np.flatnonzero(
        facts.stored & (facts.records["process"] == process) & (facts.records["bytes_read"] > 0)
    )
    kinds = (READ, *META)
    reading = sum_seconds(facts, rows, *kinds)
    claims = claim_all(facts, rows, kinds, min(1.0, saved / reading)) if reading else []
    if lane >= 0 and saved > reading:
        claims.append(Claim(np.array([lane]), COMPUTE, np.array([saved - reading])))
    return claims


NO_WORKERS = Rule(
    name="loader-without-workers",
    remedy="loading batches while the model computes",
    sees=(
        "Training loops that load their batches themselves: a PyTorch DataLoader with"
        " num_workers=0, a Keras PyDataset with one worker."
    ),
    threshold=(
        f"At least {LEAST_BATCHES} batches, and {wording.share(LEAST_STALL)} of the time of the"
        " steps spent waiting for them."
    ),
    estimate=(
        f"Waits minus those that would remain if {WORKERS} workers (fewer on fewer "
        "processors, at least 2) loaded during the computation."
    ),
    advice="num_workers, or pario.records.Loader.",
    control=(
        "Loaders with workers, however long the waits (the table of loaders shows them); loops that"
        " hardly wait."
    ),
    find=_no_workers,
    why_not="only the program sets the number of workers",
)
