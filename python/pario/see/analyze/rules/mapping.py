"""Rules about mapped files: pages fetched one by one, and mappings made again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints, ratio, sums
from pario.see.analyze.cells import KINDS, READS
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
from pario.see.analyze.rules.map_or_read import instead_of_mapping, use_of

MAP = KINDS.index("map")
MANY_FAULTS = 1000
FAULT_SECONDS = 0.1e-3
NETWORK_FAULT_SECONDS = 0.5e-3
# On network file systems, if the log has the seconds that nothing else explains:
FEW_REQUESTS, REQUEST = 64, 128 << 10  # of a process; touched bytes of each
MOST_SECONDS = 20e-3  # of a request: a process that took longer waited for something else
MANY_MAPS = 1000
FIRST_ACCESS_SECONDS = 5e-6  # the most for the fault of a new mapping whose page is in memory
_OUTSIDE = " outside of its own code, traced calls and processor queues"


def _page_faults(facts: Facts) -> Iterator[Candidate]:
    waits = _Waits(facts)
    if not waits.many.any():
        return
    subject = scene(facts, waits.many, waits.seconds)
    rows, count = subject.rows, subject.total("mapped_faults")
    touched = subject.total("bytes_resident")
    use = use_of(facts, rows, subject.place, "bytes_resident")
    over = " over the network" if waits.network[rows].all() else ""
    saved = np.maximum(waits.seconds - waits.needed, 0.0)[rows]
    yield subject.candidate(
        title=f"Page faults fetch {wording.size(touched)} of mapped files{over}: {subject.place}",
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
            code(instead_of_mapping(use)),
            code("Or madvise(MADV_POPULATE_READ / MADV_WILLNEED) right after mmap."),
            code("Or copy the file to memory or a local disk first, and map the copy."),
            command("cp", subject.paths[0], "/dev/shm/"),
        ),
        claims=[Claim(facts.lane[rows], COMPUTE, saved)],
        method=waits.describe(rows),
    )


class _Waits:
    """The seconds of page faults on mapped files, and those that reading them ahead needs, by row.

    They are at most the time of the process that nothing else explains (``rest``). On network file
    systems they are all of it, as far as the touched bytes can explain that: the kernel counts only
    some faults as major ones, because a fault also waits for pages that an earlier one requested.
    """

    def __init__(self, facts: Facts) -> None:
        own, lane = facts.posix & (facts.lane >= 0), np.maximum(facts.lane, 0)
        faults = np.where(own, facts.column("mapped_faults"), 0.0)
        touched = np.where(own, facts.column("bytes_resident"), 0.0)
        self.network = facts.network[facts.file] if len(facts.job.files) else facts.stored
        rest = unexplained_seconds(facts)[lane] if touched.any() else np.full(len(lane), np.nan)
        self.measured = self.network & ~np.isnan(rest)
        requests = np.where(self.measured, np.maximum(faults, touched / REQUEST), faults)
        each = np.where(self.network, NETWORK_FAULT_SECONDS, FAULT_SECONDS)
        most = requests * np.where(self.measured, MOST_SECONDS, each)
        whole = sums(lane, most, facts.ranks)[lane]
        self.seconds = most * np.minimum(ratio(np.nan_to_num(rest, nan=np.inf), whole, 1.0), 1.0)
        # One reader's rate in this run is not that of many requests at the same time.
        alone, many = facts.reference.row_rate(READS), facts.reference.default[facts.file, 0]
        self.needed = touched / np.where(self.measured, np.maximum(alone, many), alone)
        of_lane = sums(lane, requests, facts.ranks)[lane]
        enough = np.where(self.measured, FEW_REQUESTS, MANY_FAULTS)
        self.many = (requests > 0) & (of_lane >= enough)

    def describe(self, rows: Ints) -> str:
        """Return the text on the estimate of rows."""
        local, far = wording.seconds(FAULT_SECONDS), wording.seconds(NETWORK_FAULT_SECONDS)
        less = "; minus the bytes at the rate of large reads"
        if self.measured[rows].all():
            return f"the process's time{_OUTSIDE}{less}"
        return (
            f"page faults times {local}, a small read of a local disk, or {far}, a network round"
            f" trip (assumed), at most the process's time{_OUTSIDE}{less}"
        )


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
        claims=[
            *claim_all(facts, rows, (MAP,), all_but_one(maps[rows])),
            _first_accesses(facts, rows),
        ],
        method=(
            "time in mmap and munmap, of all but one mapping per process and file, and the kernel's"
            f" time outside of traced calls, {wording.seconds(FIRST_ACCESS_SECONDS)} per page fault"
            " at most"
        ),
    )


def _first_accesses(facts: Facts, rows: Ints) -> Claim:
    """Return a claim of the page faults of new mappings: time of the kernel that no call explains,
    at most one fault per mapping."""
    processes = facts.job.processes
    faults = facts.lanes.sum_processes(processes["minor_faults"].astype(float))
    system = facts.lanes.sum_processes(np.nan_to_num(processes["cpu_system"]))
    lane = facts.lane[rows]
    mapped = facts.column("maps")[rows] - 1
    maps = sums(np.maximum(lane, 0), np.where(lane >= 0, mapped, 0.0), facts.ranks)
    rest = np.minimum(np.nan_to_num(unexplained_seconds(facts)), system)
    seconds = np.minimum(rest, FIRST_ACCESS_SECONDS * np.minimum(maps, faults))
    found = np.flatnonzero(seconds > 0)
    return Claim(found, COMPUTE, seconds[found])


FAULTS = Rule(
    name="mmap-network",
    remedy="reading mapped files with large calls",
    sees="Files that are mapped and fetched page by page.",
    threshold=(
        f"At least {MANY_FAULTS:,} major page faults of a process on mapped files; on network file"
        f" systems {wording.size(FEW_REQUESTS * REQUEST)} of touched bytes if the time of a process"
        " is known. The tracer divides the faults of a process among its mapped files by the growth"
        " of their resident bytes."
    ),
    estimate=(
        f"Major faults times {wording.seconds(FAULT_SECONDS)} (assumed), at most the time of a"
        " process of one thread outside of its own code, traced calls and processor queues. On"
        f" network file systems all of that time, at most {wording.seconds(MOST_SECONDS)} per"
        f" {REQUEST >> 10} KiB, or {wording.seconds(NETWORK_FAULT_SECONDS)} per major fault if that"
        " time is not known. Minus the bytes at the reference rate."
    ),
    advice=(
        "read() instead of mmap if the bytes are used once or do not stay in memory, pread() if few"
        " are needed; MADV_POPULATE_READ, or a local copy."
    ),
    control="The same file read with large calls.",
    find=_page_faults,
    repairs=(repairs.MAPPED_AHEAD,),
)
STORM = Rule(
    name="mapping-storm",
    remedy="mapping a file once",
    sees="The same file mapped and unmapped again and again by the same process.",
    threshold=f"At least {MANY_MAPS:,} mmap calls per process and file.",
    estimate=(
        "Time in mmap and munmap, except for one mapping per process and file; and the time of the"
        " kernel that no traced call explains, at most"
        f" {wording.seconds(FIRST_ACCESS_SECONDS)} per mapping that has a page fault."
    ),
    advice="One mapping of the whole file, or pread and pwrite.",
    control="One mapping before the loop.",
    find=_mapping_storms,
    why_not="a mapping is memory of the program, which only the program can keep",
)
