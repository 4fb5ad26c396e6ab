"""Rules, and the candidates that they pass to the ledger."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, sums
from pario.see.analyze.cells import MPIIO, READS, STDIO, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim
from pario.see.analyze.model import Confidence, Evidence, Fix
from pario.see.analyze.rules.repairs import Repair
from pario.see.tables.model import LAYERS

MAX_FILES = 10
WORTH_NAMING = 0.01  # of the mean file
ALIKE = 0.95  # of the best rate: these calls are the ones that it was measured with
_NO_ROWS = np.zeros(0, np.int64)
_BYTES = (READS.bytes, WRITES.bytes)


@dataclass(frozen=True)
class Candidate:
    """A finding before the ledger decides its seconds: it claims cells, and the ledger grants a
    part."""

    title: str
    cause: str
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    fixes: tuple[Fix, ...]
    claims: list[Claim]
    method: str
    files: tuple[str, ...] = ()
    file_count: int = 0
    ranks: tuple[int, ...] = ()
    layers: tuple[str, ...] = ()  # of its calls
    writers: int = 0  # the largest number of processes that write one of its files
    inherited: bool = False  # its processes did not open its files
    pace: str = ""  # a sentence on the rate of its calls
    remedy: str = ""  # if another one than that of the rule
    why_not: str = ""  # why no setting repairs it; empty: the repairs of the rule may
    # functions and rows of Job.processes whose call sites are those of the finding, if its claims
    # are not the time of calls
    functions: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One row of the table of rules; its texts are the sections of docs/findings.md."""

    name: str
    remedy: str  # the repair, in words that fit after "mostly by"
    sees: str
    threshold: str
    estimate: str
    advice: str
    control: str
    find: Callable[[Facts], Iterable[Candidate]]
    repairs: tuple[Repair, ...] = ()  # by settings of pario
    why_not: str = ""  # why no (other) setting repairs it, if only a change of the program does
    # run only if no other rule has findings: their repair would invalidate its estimate
    alone: bool = False
    by_calls: bool = False  # its seconds come from the number of calls: so does the order of lines


def code(text: str) -> Fix:
    """Return a repair that changes calls."""
    return Fix("code", text)


def command(*words: str) -> Fix:
    """Return a command to type unchanged; explanations belong to another fix."""
    return Fix("command", shlex.join(words))


def setting(text: str) -> Fix:
    """Return a repair by a setting of the job."""
    return Fix("setting", text)


@dataclass(frozen=True)
class Scene:
    """The rows of a candidate, with their names in texts."""

    facts: Facts
    rows: Ints
    weight: Floats  # seconds per row; the worst rows have most

    @cached_property
    def files(self) -> Ints:
        """File rows, the worst first, without those of negligible weight."""
        files, place = np.unique(self.facts.file[self.rows], return_inverse=True)
        weight = sums(place, self.weight, len(files))
        order = np.argsort(-weight, kind="stable")
        worth_naming = weight[order] * len(files) >= WORTH_NAMING * weight.sum()
        return np.asarray(files[order[worth_naming]])

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the worst files."""
        return tuple(self.facts.path(file) for file in self.files[:MAX_FILES])

    @property
    def place(self) -> str:
        """``out.dat`` or ``48 files (out.0 ...)``."""
        files = self.files
        first = wording.name(self.facts.path(files[0]))
        return first if len(files) == 1 else f"{wording.count(len(files))} files ({first}, ...)"

    @property
    def directory(self) -> str:
        """The directory of the worst file."""
        return self.paths[0].rpartition("/")[0] or "/"

    @property
    def ranks(self) -> tuple[int, ...]:
        """The affected ranks, empty for all."""
        return self.facts.ranks_of(self.rows)

    @property
    def layers(self) -> tuple[str, ...]:
        """Layers of the calls of the rows."""
        return tuple(LAYERS[number] for number in np.unique(self.facts.records["layer"][self.rows]))

    def total(self, column: str) -> int:
        """Return the sum of a counter over the rows; calls and bytes that the MPI-IO library
        passes on count once."""
        if column not in _BYTES:
            return int(self.facts.calls(column)[self.rows].sum())
        both = (self.facts.records["layer"][self.rows] == MPIIO).any()
        moved = self.facts.asked_bytes(column) if both else self.facts.column(column)
        return int(moved[self.rows].sum())

    def candidate(
        self,
        *,
        fixes: tuple[Fix, ...],
        claims: list[Claim],
        evidence: tuple[Evidence, ...],
        **texts: Any,
    ) -> Candidate:
        """Return a candidate for these rows."""
        files = self.files
        who = (self._who(),) if self.facts.lanes.mpi else ()
        return Candidate(
            fixes=fixes,
            claims=claims,
            evidence=(*evidence, *who),
            files=self.paths,
            file_count=len(files),
            ranks=self.ranks,
            layers=self.layers,
            writers=int(self.facts.writers[self.facts.file[self.rows]].max(initial=0)),
            inherited=self._are_inherited(),
            pace=pace(self.facts, claims),
            **texts,
        )

    def _are_inherited(self) -> bool:
        """True if the files were open before: logs of pario hold each open of a process, by open or
        by fopen, as streams of C++ do."""
        rows = self.rows[self.facts.posix[self.rows]]
        streams = self.facts.find_in_layer(rows, STDIO)
        opens = self.facts.records["opens"]
        opened = opens[rows].any() or opens[streams[streams >= 0]].any()
        return bool(len(rows)) and not opened and self.facts.job.format == "pario"

    def _who(self) -> Evidence:
        ranks = self.ranks
        if not ranks:
            return Evidence(f"all {self.facts.ranks} ranks")
        return Evidence(
            f"{'rank' if len(ranks) == 1 else 'ranks'} {wording.ranks(ranks)}", ranks=ranks
        )


def scene(facts: Facts, mask: Any, weight: Floats) -> Scene:
    """Return the scene of the rows of a mask; ``weight`` is per record."""
    rows = np.flatnonzero(mask)
    return Scene(facts, rows, weight[rows])


def pace(facts: Facts, claims: Sequence[Claim]) -> str:
    """Return a sentence on the rate of the claimed reads or writes, whichever take longer, and on
    its share of the best rate of the same file system; empty without such claims, and if no
    rate was measured in this run."""
    rows_of = {
        one: np.unique(
            np.concatenate([_NO_ROWS, *(claim.rows for claim in claims if claim.kind == one.kind)])
        )
        for one in (READS, WRITES)
    }
    direction = max(rows_of, key=lambda one: sum_seconds(facts, rows_of[one], one.kind))
    rows, word = rows_of[direction], direction.word
    took = sum_seconds(facts, rows, direction.kind)
    moved = float(facts.column(direction.bytes)[rows].sum())
    best, seen = facts.reference.rate(direction)
    worst = facts.file[rows[np.argmax(facts.cells[rows, direction.kind])]] if len(rows) else -1
    if took <= 0 or moved <= 0 or not seen[worst]:
        return ""
    own, most = moved / took, float(best[worst])
    if ALIKE * most <= own <= most:
        return f"These {word}s run at {wording.rate(own)}, and none of this run were faster."
    if own > most:
        return (
            f"These {word}s run at {wording.rate(own)}, faster than large {word}s on this file"
            f" system did in this run ({wording.rate(most)})."
        )
    return (
        f"These {word}s run at {wording.rate(own)}, {wording.percent(own, most)} of the"
        f" {wording.rate(most)} that this file system gave in this run."
    )


def fact(text: str, **values: float) -> Evidence:
    """Return evidence that belongs to no single file."""
    return Evidence(text, values=values)


def all_but_one(calls: Floats) -> Floats:
    """Return the share of the calls of each row that one call instead of all saves."""
    return np.asarray(1.0 - 1.0 / np.maximum(calls, 1.0))


def sum_seconds(facts: Facts, rows: Ints, *kinds: int) -> float:
    """Return the seconds in cells, summed over ranks."""
    return float(facts.cells[np.ix_(rows, np.array(kinds))].sum())
