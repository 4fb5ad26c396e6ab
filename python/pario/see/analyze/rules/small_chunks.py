"""The rule about datasets of HDF5 that consist of very small chunks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints, ratio
from pario.see.analyze.cells import KINDS, READS, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact, setting
from pario.see.analyze.rules.hdf5 import chunk_bytes, claims_of_calls, datasets_of

MANY_CHUNKS = 1000
SMALL_CHUNK = 4 << 10
CROSSED = 10  # chunks of a call: with fewer, the calls are small
CLOSE = KINDS.index("close")


def _small_chunks(facts: Facts) -> Iterator[Candidate]:
    rows, datasets = datasets_of(facts)
    small = [bool(one.chunk) and chunk_bytes(one) < SMALL_CHUNK for one in datasets]
    visits = facts.column("chunks_read")[rows] + facts.column("chunks_written")[rows]
    calls = facts.reads[rows] + facts.writes[rows]
    chosen = np.array(small, bool) & (visits >= np.maximum(MANY_CHUNKS, CROSSED * calls))
    if chosen.any():
        sizes = [chunk_bytes(one) for one, its in zip(datasets, chosen, strict=True) if its]
        yield _describe(facts, rows[chosen], max(sizes), float(visits[chosen].sum()))


def _describe(facts: Facts, rows: Ints, size: int, visits: float) -> Candidate:
    inner = sum(facts.column(f"inner_{part}_time")[rows] for part in ("read", "write", "other"))
    whole = facts.cells[rows].sum(axis=1) + inner
    took = float(whole.sum())
    claims: list[Claim] = claim_all(facts, rows, (CLOSE,))
    for direction in (READS, WRITES):
        its = facts.cells[rows, direction.kind]
        its = its + facts.column(f"inner_{direction.word}_time")[rows]
        share = 1.0 - ratio(facts.reference.cost(rows, direction), its, 0.0)
        claims += claims_of_calls(facts, rows, direction, np.clip(share, 0.0, 1.0))
    subject = Scene(facts, rows, whole)
    return subject.candidate(
        title=f"{wording.count(visits)} visits of chunks of {wording.size(size)}: {subject.place}",
        cause=(
            f"Each visit costs {wording.seconds(took / visits)}: HDF5 looks each chunk up in its"
            " index and moves it with a call of its own."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.seconds(took)} in reads and writes of {wording.count(visits)}"
                f" chunks{facts.over_all}",
                chunks=visits,
                mean_bytes=float(size),
            ),
        ),
        fixes=(
            setting(
                "chunks of 64 KiB to 1 MiB: h5py: create_dataset(..., chunks=(65536,)); C:"
                " H5Pset_chunk; existing files: h5repack -l DATASET:CHUNK=65536"
            ),
            code("Or a contiguous dataset (no chunks) if it is neither extended nor compressed."),
        ),
        claims=claims,
        method="time of the calls minus their bytes at the rate of large calls",
    )


SMALL_CHUNKS = Rule(
    name="small-chunks",
    remedy="making the chunks of HDF5 larger",
    sees="Datasets of HDF5 that consist of thousands of very small chunks.",
    threshold=(
        f"Per process and dataset at least {MANY_CHUNKS:,} visits of chunks of less than"
        f" {SMALL_CHUNK >> 10} KiB, by calls that cross {CROSSED} chunks or more on average."
    ),
    estimate="Time of the calls, and of closing, beyond their bytes at the reference rate.",
    advice="Chunks of 64 KiB to 1 MiB, or a contiguous dataset.",
    control="The same dataset in chunks of 512 KiB.",
    find=_small_chunks,
    why_not="the chunks belong to the dataset",
)
