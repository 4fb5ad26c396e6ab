"""The choice between mmap and read(), by the reuse, the order and the memory of the run at hand.

A mapping pays where the same pages are used again and stay in memory. Large read calls pay where
bytes are used once, or do not fit into memory; single reads where few bytes are needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Ints
from pario.see.analyze.facts import Facts

#: The part of the machine's memory that a file may take to stay in the cache.
FIT = 0.5
#: A file is used again from this many times its size on.
AGAIN = 1.5
#: Less of a file is a small part, and fewer touched bytes per fault are no order.
SMALL_PART, IN_ORDER = 0.5, 64 << 10


@dataclass(frozen=True)
class Use:
    """The use of some files by processes that each move their own bytes."""

    place: str
    files: float  # bytes of all files
    size: float  # the same, each file as often as processes use it
    moved: float  # bytes that came into memory by faults or read calls; each time counts
    memory: float  # of the machine; 0: not known
    faults: float = 0.0

    @property
    def times(self) -> float:
        """How often a process moved a file, on average."""
        return self.moved / max(self.size, 1.0)

    @property
    def fits(self) -> bool:
        """True if the files stay in memory, as far as that is known."""
        return 0 < self.files <= FIT * self.memory

    @property
    def beside_memory(self) -> str:
        """The size beside the memory of the machine."""
        return f"{wording.size(self.files)} of files, {wording.size(self.memory)} of memory"


def use_of(facts: Facts, rows: Ints, place: str, column: str) -> Use:
    """Return the use of the files of rows. ``column`` counts the moved bytes."""
    records = facts.records[rows]
    size = np.maximum(records["size_at_open"], records["end_read"]).astype(float)
    once = np.unique(records["file"], return_index=True)[1]
    return Use(
        place,
        float(size[once].sum()),
        float(size.sum()),
        float(records[column].sum()),
        _memory(facts, rows),
        float(records["mapped_faults"].sum()),
    )


def _memory(facts: Facts, rows: Ints) -> float:
    """Return the memory of the smallest machine of the rows; 0: not known."""
    processes = facts.records["process"][rows]
    known = facts.job.processes["memory"][processes[processes >= 0]].astype(float)
    return float(known.min()) if len(known) and (known > 0).all() else 0.0


def instead_of_mapping(use: Use) -> str:
    """Return the advice for mapped files whose faults cost time."""
    if use.times >= AGAIN:
        beside = f" ({use.beside_memory})" if use.memory else ""
        return (
            f"read() instead of mmap: the pages of {use.place} were fetched {use.times:.2g} times,"
            f" because they did not stay in memory{beside}. Read blocks with large calls, and"
            " finish with each before the next."
        )
    share = wording.percent(use.moved, max(use.size, use.moved, 1.0))
    each = use.moved / max(use.faults, 1.0)
    if use.times < SMALL_PART and each < IN_ORDER:
        return (
            f"pread() instead of mmap: {share} of {use.place} was touched, {wording.size(each)} for"
            " each fault. Read the records that are needed, sorted by offset; or"
            " madvise(MADV_RANDOM), so that a fault fetches one page."
        )
    fits = f" It fits into memory ({use.beside_memory})." if use.fits else ""
    return (
        f"read() instead of mmap: {share} of {use.place} was touched, once. Read it with large"
        f" calls (safetensors, numpy: load without mmap_mode).{fits}"
    )


def instead_of_reading(use: Use) -> str:
    """Return the advice for files that read calls read several times; empty without one."""
    if use.times < AGAIN or not use.memory:
        return ""
    if use.fits:
        return (
            f"mmap instead of read(): {use.place} was read {use.times:.2g} times, and stays in"
            f" memory ({use.beside_memory}). A mapping copies nothing, and the processes of a node"
            " share its pages."
        )
    return (
        f"No mmap: {use.place} was read {use.times:.2g} times, but does not stay in memory"
        f" ({use.beside_memory}), so that its pages would be fetched again."
    )
