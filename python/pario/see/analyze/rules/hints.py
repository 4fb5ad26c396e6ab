"""The rule about hints that are not in force: from the values that the program requested and read
back, or from the audit of pario's MPI-IO."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pario import wording
from pario.see.analyze.audit import state
from pario.see.analyze.cells import READ, WRITE
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import claim_all
from pario.see.analyze.model import Evidence, Fix
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, command, fact
from pario.see.tables.model import HintOutcome

_STRENGTH = ("striping_factor", "cb_nodes")
_BAD = ("not taken", "not in force")


@dataclass(frozen=True)
class Shortfall:
    """Fewer stripes or aggregators than requested."""

    file: int
    key: str  # as requested
    meant: str  # the hint with that meaning, one of _STRENGTH
    wanted: int
    got: int
    reasons: tuple[str, ...] = ()


def _hints(facts: Facts) -> Iterator[Candidate]:
    """Find files with fewer stripes or aggregators than requested."""
    for short in (*_read_audit(facts), *_read_back(facts)):
        rows = np.flatnonzero(facts.mpiio & (facts.file == short.file))
        if 0 < short.got < short.wanted and len(rows):
            yield _hint(facts, Scene(facts, rows, facts.cells[rows].sum(axis=1)), short)


def _read_back(facts: Facts) -> Iterator[Shortfall]:
    """Compare requests with the answers of MPI_File_get_info, for files without an audit."""
    asked: dict[tuple[int, str], dict[str, str]] = {}
    audited = {outcome.file for outcome in facts.job.audit if outcome.table == "mpiio"}
    for hint in facts.job.hints:
        if hint.file not in audited:
            asked.setdefault((hint.file, hint.key), {})[hint.when] = hint.value
    for (file, key), values in asked.items():
        wanted, got = values.get("requested", ""), values.get("effective", "")
        if key in _STRENGTH and wanted.isdigit() and got.isdigit():
            yield Shortfall(file, key, key, int(wanted), int(got))


def _read_audit(facts: Facts) -> Iterator[Shortfall]:
    bad: dict[int, list[HintOutcome]] = {}
    for outcome in facts.job.audit:
        if outcome.table == "mpiio" and outcome.file >= 0 and state(outcome) in _BAD:
            bad.setdefault(outcome.file, []).append(outcome)
    for file, outcomes in bad.items():
        for outcome in outcomes:
            if short := _shortfall(facts, outcome):
                others = [other for other in outcomes if other is not outcome]
                reasons = (
                    outcome.reason,
                    *(
                        wording.hint_reason(other.key, other.requested, other.reason)
                        for other in others
                    ),
                )
                yield Shortfall(file, outcome.key, *short, tuple(filter(None, reasons)))


def _shortfall(facts: Facts, outcome: HintOutcome) -> tuple[str, int, int] | None:
    """Return the intended hint, its requested value and its value in force; None if these are not
    numbers."""
    if outcome.applied:
        known = (
            outcome.key in _STRENGTH and outcome.applied.isdigit() and outcome.effective.isdigit()
        )
        return (outcome.key, int(outcome.applied), int(outcome.effective)) if known else None
    meant = re.search(r"did you mean (\w+)\?", outcome.reason)
    if not meant or meant[1] not in _STRENGTH or not outcome.requested.isdigit():
        return None
    return _misspelt(facts, outcome.file, meant[1], int(outcome.requested))


def _misspelt(facts: Facts, file: int, meant: str, wanted: int) -> tuple[str, int, int] | None:
    """Return the same for a misspelt hint. The value in force is that of the file without the hint:
    its stripes, if the file system has any, or its aggregators, of at most one per node."""
    row = facts.job.mpiio[facts.job.mpiio["file"] == file][:1]
    if not len(row) or (meant == "striping_factor" and facts.job.files["layout"][file] < 0):
        return None
    if meant == "cb_nodes":
        return meant, min(wanted, int(row["nodes"][0])), int(row["aggregators"][0])
    return meant, wanted, int(row["stripe_count"][0])


def _hint(facts: Facts, subject: Scene, short: Shortfall) -> Candidate:
    misspelt = short.key != short.meant
    asked = fact(
        f"requested {short.key}={short.wanted}, effective {short.meant}={short.got}",
        requested=short.wanted,
        effective=short.got,
    )
    reasons = tuple(Evidence(reason, facts.path(short.file)) for reason in short.reasons)
    return subject.candidate(
        title=(
            f"hint {short.key}={short.wanted} was not followed for {subject.place}: {short.got} in"
            " force"
        ),
        cause=(
            "No MPI-IO knows a hint of that name."
            if misspelt
            else "The library or file system kept another value, silently."
        ),
        confidence="low",
        evidence=(*reasons, asked),
        fixes=_fixes(subject, short),
        claims=claim_all(facts, subject.rows, (READ, WRITE), 1.0 - short.got / short.wanted),
        method=f"time of the file's calls, if it fell in proportion to {short.meant}",
    )


def _fixes(subject: Scene, short: Shortfall) -> tuple[Fix, ...]:
    if short.key != short.meant:
        return (code(f"The hint is called {short.meant}; `pario hints` lists all."),)
    fixes: list[Fix] = [
        code(
            f"Set {short.key} in the MPI_Info of MPI_File_open (not of set_view) and read it back"
            " with MPI_File_get_info."
        )
    ]
    if short.key == "striping_factor":
        fixes.append(
            code(
                "Stripes are fixed when a file is created: remove an old file first, or set them"
                " for its directory."
            )
        )
        fixes.append(command("lfs", "setstripe", "-c", str(short.wanted), subject.directory))
    return tuple(fixes)


NOT_EFFECTIVE = Rule(
    name="hints-not-effective",
    remedy="getting MPI-IO hints into force",
    sees="MPI-IO hints that were requested but are not in force.",
    threshold=(
        "striping_factor or cb_nodes in force below the requested value, or misspelt in a run of"
        " pario's MPI-IO, whose reasons are the evidence. All other hints are only in the tables of"
        " hints, because their cost is unknown."
    ),
    estimate="Time of the file's calls times the missing share of the hint's value.",
    advice="Set the hint where it is read (file creation), or stripe the directory.",
    control="Requested and effective values agree.",
    find=_hints,
)
