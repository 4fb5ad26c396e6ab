"""Words and short texts that all reporters share."""

from __future__ import annotations

from collections.abc import Sequence

from pario import wording
from pario.see.analyze.comparison import Measure, OutputState
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.model import Analysis, FileRow, FunctionRow, HintRow, JobInfo, Verdict

#: How sure a finding is, in a word.
SURE = {"high": "sure", "medium": "likely", "low": "possible"}

#: The layers of pario.see.tables.model.LAYERS as people write them.
LAYERS = {"posix": "POSIX", "stdio": "stdio", "mpiio": "MPI-IO"}


#: Stands for an unknown value.
DASH = "–"


def lanes(job: JobInfo) -> str:
    """How many ran side by side: ranks, or without MPI processes."""
    return wording.plural(
        job.ranks if has_ranks(job) else job.processes, *lane_words(mpi=has_ranks(job))
    )


def has_ranks(job: JobInfo) -> bool:
    """Whether it is a job of MPI."""
    return bool(job.mpi_library) or job.ranks > 1


def rank(number: int) -> str:
    """A rank, or that it is not known."""
    return str(number) if number >= 0 else DASH


def of_slowest(row: FunctionRow | FileRow) -> str:
    """Seconds of the slowest rank, or that it is not known."""
    if row.slowest_rank < 0:
        return DASH
    return wording.seconds(row.slowest if isinstance(row, FunctionRow) else row.slowest_seconds)


def no_findings(verdict: Verdict) -> str:
    """Said in place of findings; praise only where the verdict gives reason."""
    if verdict.bound in ("io", "unknown"):
        return "No findings."
    return "No findings: nothing here is worth changing for the sake of I/O."


def rows_of(analysis: Analysis, table: str) -> list[HintRow]:
    """The settings of one table of ``pario.toml``."""
    return [row for row in analysis.audit if row.table == table]


def troubled(rows: Sequence[HintRow]) -> list[HintRow]:
    """Hints without effect: rejected, or not in force."""
    return [row for row in rows if row.state in ("not taken", "not in force")]


#: What is known of an output file, in words.
OUTPUTS: dict[OutputState, str] = {
    "identical": "identical",
    "differs": "differs",
    "only in A": "missing afterwards",
    "only in B": "new",
    "not written": "the same, but not written in every run",
    "varies": "differs among the runs of one side already",
}


def amount(measure: Measure, value: float) -> str:
    """A figure of a comparison in its unit."""
    if measure.unit == "seconds":
        return wording.seconds(value)
    return wording.size(value) if measure.unit == "bytes" else wording.count(value)


def change(before: float, after: float) -> str:
    """What became of a figure: ``-53 %``, ``+4 %``, ``×12``, ``÷30``, ``=``, ``new``, ``gone``."""
    if before == after:
        return "="
    if before == 0:
        return "new"
    if after == 0:
        return "gone"
    ratio = after / before
    if not 0.1 < ratio < 10:
        return f"×{wording.count(ratio)}" if ratio > 1 else f"÷{wording.count(1 / ratio)}"
    part = wording.share(abs(ratio - 1))
    return part if part.startswith("<") else f"{'+' if ratio > 1 else '-'}{part}"


def of_noise(measure: Measure) -> str:
    """Whether a difference counts, in a word; nothing where that is not known or there is none."""
    return {"within": "noise", "beyond": "beyond noise"}.get(measure.noise, "")


def spread(measure: Measure) -> str:
    """How far apart the runs of a side lie at most; nothing for single runs."""
    most = max(measure.a.spread, measure.b.spread)
    return f"±{amount(measure, most / 2)}" if most else ""
