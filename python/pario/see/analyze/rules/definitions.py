"""Rules about the end of netCDF's definitions, which fills variables or moves them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.cells import KINDS, READ, WRITE
from pario.see.analyze.definitions import LEAST, MOVED, SHARE, DefinedFile
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim
from pario.see.analyze.model import Evidence
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact

OTHER = KINDS.index("other")


def _subject(facts: Facts, file: DefinedFile) -> Scene:
    rows = np.array([file.row])
    return Scene(facts, rows, facts.cells[rows].sum(axis=1))


def _claims(facts: Facts, file: DefinedFile, kinds: tuple[int, ...]) -> list[Claim]:
    """Return claims of the library's own time, and of its calls on the file."""
    seconds = float(facts.column("inner_other_time")[file.row]) * file.share
    rows = np.array([file.row])
    claims = [Claim(rows, OTHER, facts.cells[rows, OTHER] * file.share)]
    whole = float(sum(facts.cells[file.below, kind] for kind in kinds))
    for kind in kinds:
        part = seconds * float(facts.cells[file.below, kind]) / max(whole, 1e-12)
        claims.append(Claim(np.array([file.below]), kind, np.array([part])))
    if READ not in kinds:
        rows = np.array([file.below])
        claims.append(Claim(rows, READ, facts.cells[rows, READ] * file.read_back))
    return claims


def _candidate(
    subject: Scene,
    file: DefinedFile,
    kinds: tuple[int, ...],
    *,
    title: str,
    cause: str,
    bytes_are: str,
    remedy: str,
) -> Candidate:
    """Return the candidate of either rule. ``kinds``: the calls on the file that it costs."""
    return subject.candidate(
        title=title,
        cause=cause,
        confidence="high",
        evidence=(_evidence(subject.facts, file, bytes_are),),
        fixes=(code(remedy),),
        claims=_claims(subject.facts, file, kinds),
        method=(
            "time of the definitions, by their share of bytes that are no variable's, and of the"
            " reads of these bytes"
        ),
    )


def _fills(facts: Facts) -> Iterator[Candidate]:
    for file in facts.defined_files:
        if not file.is_moved:
            subject = _subject(facts, file)
            yield _candidate(
                subject,
                file,
                (WRITE,),
                title=(
                    f"netCDF writes {wording.size(file.needless)} of fill values to {subject.place}"
                    " before the program's own"
                ),
                cause=(
                    "At the end of the definitions each variable is filled; the program then writes"
                    " the same bytes again."
                ),
                bytes_are="written by nc_enddef and similar calls",
                remedy=(
                    "Switch filling off before nc_enddef if the program writes all elements:"
                    " nc_set_fill(file, NC_NOFILL, &old); Fortran: nf90_set_fill(file,"
                    " NF90_NOFILL, old); Python: dataset.set_fill_off()."
                ),
            )


def _moves(facts: Facts) -> Iterator[Candidate]:
    for file in facts.defined_files:
        if file.is_moved:
            subject = _subject(facts, file)
            calls = float(facts.column("others")[file.row])
            yield _candidate(
                subject,
                file,
                (READ, WRITE),
                title=(
                    f"nc_enddef moves {wording.size(file.needless)} of variables in {subject.place}"
                ),
                cause=(
                    "New definitions enlarge the header of the file, so that all variables behind"
                    f" it are read and written at another place; {wording.count(calls)} calls"
                    " concern definitions."
                ),
                bytes_are="read and written again",
                remedy=(
                    "Define all dimensions, variables and attributes before the first"
                    " nc_enddef, or reserve space in the header: nc__enddef(file, 65536, 4, 0,"
                    " 4)."
                ),
            )


def _evidence(facts: Facts, file: DefinedFile, words: str) -> Evidence:
    return fact(
        f"{wording.size(file.needless)} {words}, {wording.size(file.asked)} by the program"
        f"{facts.over_all}",
        needless=file.needless,
        asked=file.asked,
    )


def _threshold(words: str) -> str:
    return (
        f"Per process and file at least {LEAST >> 20} MiB, and {wording.share(SHARE)} of the bytes"
        f" of its variables, {words} outside of reads and writes of variables."
    )


FILLS = Rule(
    name="fill-values",
    remedy="switching netCDF's fill values off",
    sees="Variables of netCDF that are filled before the program writes them.",
    threshold=_threshold("written"),
    estimate=(
        "Time of these calls, by their share of bytes that are no variable's, and of the reads of"
        " these bytes."
    ),
    advice="nc_set_fill with NC_NOFILL.",
    control="The same file without filling.",
    find=_fills,
    why_not="filling is a setting of the program's file",
)
MOVES = Rule(
    name="header-moves",
    remedy="defining all variables of netCDF at once",
    sees="Definitions of netCDF after the first data, which move all variables in the file.",
    threshold=_threshold(f"written, and {wording.share(MOVED)} of them read before"),
    estimate=FILLS.estimate,
    advice="All definitions before the data, or space in the header.",
    control="The same variables defined at once.",
    find=_moves,
    why_not="only the program knows its later definitions",
)
