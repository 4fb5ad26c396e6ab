"""Rules about mapped files: pages fetched one by one, and mappings made again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, ratio, sums
from pario.see.analyze.cells import KINDS
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim, claim_all
from pario.see.analyze.reconcile import unexplained_seconds
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    all_but_one,
    code,
    command,
    fact,
    scene,
    sum_seconds,
)

MAP = KINDS.index("map")
MANY_FAULTS = 1000
FAULT_SECONDS = 0.1e-3
NETWORK_FAULT_SECONDS = 0.5e-3
MANY_MAPS = 1000
_LIMIT = ", at most the process's time outside of its own code, traced calls and processor queues"


def _page_faults(facts: Facts) -> Iterator[Candidate]:
    faults = facts.column("mapped_faults")
    network = facts.network[facts.file] if len(facts.job.files) else facts.stored
    own = facts.lane >= 0
    many = sums(facts.lane[own], faults[own], facts.ranks)
    mask = facts.posix & own & (faults > 0) & (many[np.maximum(facts.lane, 0)] >= MANY_FAULTS)
    if not mask.any():
        return
    subject = scene(facts, mask, faults)
    seconds, limited = _fault_seconds(facts, subject.rows, faults[subject.rows])
    rows, count = subject.rows, subject.total("mapped_faults")
    touched = subject.total("bytes_resident")
    over = " over the network" if network[rows].all() else ""
    yield subject.candidate(
        title=f"{wording.count(count)} page faults on mapped files{over}: {subject.place}",
        cause=(
            "A mapped file is fetched page by page as it is touched; each fault waits for one small"
            " read, without deep read-ahead."
        ),
        confidence="low",
        evidence=(
            fact(
                f"{wording.size(subject.total('bytes_mapped'))} mapped, {wording.size(touched)}"
                f" touched, {wording.count(count)} faults that waited for I/O",
                faults=count,
                bytes=touched,
            ),
        ),
        fixes=(
            code(
                "Read the file with large read calls, or madvise(MADV_POPULATE_READ /"
                " MADV_WILLNEED) right after mmap (safetensors, numpy: load without mmap_mode)."
            ),
            code("Or copy the file to memory or a local disk first, and map the copy."),
            command("cp", subject.paths[0], "/dev/shm/"),
        ),
        claims=[Claim(facts.lane[rows], COMPUTE, seconds)],
        method=(
            f"page faults times {wording.seconds(FAULT_SECONDS)}, a small read of a local disk, or"
            f" {wording.seconds(NETWORK_FAULT_SECONDS)}, a network round trip (assumed)"
            f"{_LIMIT if limited else ''}; minus the"
            " bytes at the rate of large reads"
        ),
    )


def _fault_seconds(facts: Facts, rows: Ints, faults: Floats) -> tuple[Floats, bool]:
    """Return the seconds per row that large reads would save, and True if the rest of the process's
    time limits them."""
    network = facts.network[facts.file[rows]]
    assumed = faults * np.where(network, NETWORK_FAULT_SECONDS, FAULT_SECONDS)
    lane = facts.lane[rows]
    whole = sums(lane, assumed, facts.ranks)
    most = np.nan_to_num(unexplained_seconds(facts), nan=np.inf)
    limited = bool((most < whole).any())
    took = assumed * np.minimum(ratio(most, whole, 1.0), 1.0)[lane]
    needed = facts.column("bytes_resident")[rows] / facts.reference.row_rate(False)[rows]
    return np.maximum(took - needed, 0.0), limited


def _mapping_storms(facts: Facts) -> Iterator[Candidate]:
    maps = facts.column("maps")
    mask = facts.posix & (maps >= MANY_MAPS)
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, MAP])
    rows, took = subject.rows, sum_seconds(facts, subject.rows, MAP)
    count = max(subject.total("maps"), 1)
    size = subject.total("bytes_mapped") / count
    yield subject.candidate(
        title=f"{wording.count(count)} mappings of {wording.size(size)} of {subject.place}",
        cause=(
            f"Each mmap and munmap changes the page tables ({wording.seconds(took / count)}), and"
            " the first access to each new mapping is a page fault."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} mmap calls, {wording.seconds(took)} in mmap and"
                f" munmap{facts.over_all}",
                maps=count,
                seconds=took,
            ),
        ),
        fixes=(
            code("Map the whole file once and use offsets into it; unmap it at the end."),
            code("Or use pread and pwrite for single records: no page table changes."),
        ),
        claims=claim_all(facts, rows, (MAP,), all_but_one(maps[rows])),
        method="time in mmap and munmap, of all but one mapping per process and file",
    )


FAULTS = Rule(
    name="mmap-network",
    remedy="reading mapped files with large calls",
    sees="Files that are mapped and fetched page by page.",
    threshold=(
        f"At least {MANY_FAULTS:,} major page faults of a process on mapped files. The tracer"
        " divides the faults of a process among its mapped files by the growth of their"
        " resident bytes."
    ),
    estimate=(
        f"Major faults times {wording.seconds(NETWORK_FAULT_SECONDS)} on a network file system,"
        f" otherwise {wording.seconds(FAULT_SECONDS)} (assumed), at most the time of a process of"
        " one thread outside of its own code, traced calls and processor queues, minus the bytes at"
        " the reference rate."
    ),
    advice="Large reads, MADV_POPULATE_READ, or a local copy.",
    control="The same file read with large calls.",
    find=_page_faults,
    repairs=(repairs.MAPPED_AHEAD,),
)
STORM = Rule(
    name="mapping-storm",
    remedy="mapping a file once",
    sees="The same file mapped and unmapped again and again by the same process.",
    threshold=f"At least {MANY_MAPS:,} mmap calls per process and file.",
    estimate="Time in mmap and munmap, except for one mapping per process and file.",
    advice="One mapping of the whole file, or pread and pwrite.",
    control="One mapping before the loop.",
    find=_mapping_storms,
    why_not="a mapping is memory of the program, which only the program can keep",
)
