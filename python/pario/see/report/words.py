"""Words and short texts that all reporters share."""

from __future__ import annotations

from collections.abc import Sequence

from pario import wording
from pario.see.analyze.comparison import Measure, OutputState
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.model import Analysis, FileRow, FunctionRow, HintRow, JobInfo, Verdict

#: Words for the confidence of a finding.
SURE = {"high": "sure", "medium": "likely", "low": "possible"}

#: The display names of pario.see.tables.model.LAYERS.
LAYERS = {"posix": "POSIX", "stdio": "stdio", "mpiio": "MPI-IO"}

#: The text of an unknown value.
DASH = "–"


def lanes(job: JobInfo) -> str:
    """Return the number of ranks as text; without MPI that of processes."""
    return wording.plural(
        job.ranks if has_ranks(job) else job.processes, *lane_words(mpi=has_ranks(job))
    )


def has_ranks(job: JobInfo) -> bool:
    """Return True for an MPI job."""
    return bool(job.mpi_library) or job.ranks > 1


def rank(number: int) -> str:
    """Return a rank as text; a dash if it is not known."""
    return str(number) if number >= 0 else DASH


def of_slowest(row: FunctionRow | FileRow) -> str:
    """Return the seconds of the slowest rank as text; a dash if it is not known."""
    if row.slowest_rank < 0:
        return DASH
    return wording.seconds(row.slowest if isinstance(row, FunctionRow) else row.slowest_seconds)


def no_findings(verdict: Verdict) -> str:
    """Return the text for a report without findings; praise only if the verdict justifies it."""
    if verdict.bound in ("io", "unknown"):
        return "No findings."
    return "No findings: no change of the I/O would save much time."


def rows_of(analysis: Analysis, table: str) -> list[HintRow]:
    """Return the settings of one table of ``pario.toml``."""
    return [row for row in analysis.audit if row.table == table]


def hints_without_effect(rows: Sequence[HintRow]) -> list[HintRow]:
    """Return the hints without effect: rejected, or not in force."""
    return [row for row in rows if row.state in ("not taken", "not in force")]


#: Texts for the state of an output file.
OUTPUTS: dict[OutputState, str] = {
    "identical": "identical",
    "differs": "differs",
    "only in A": "missing afterwards",
    "only in B": "new",
    "not written": "the same, but not written in every run",
    "varies": "differs among the runs of one side already",
}


def amount(measure: Measure, value: float) -> str:
    """Return a figure of a comparison in its unit."""
    if measure.unit == "seconds":
        return wording.seconds(value)
    return wording.size(value) if measure.unit == "bytes" else wording.count(value)


def change(before: float, after: float) -> str:
    """Return the change of a figure: ``-53 %``, ``+4 %``, ``×12``, ``÷30``, ``=``, ``new`` (from
    0), ``gone`` (to 0)."""
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
    """Return whether a difference exceeds the noise, in words; empty if unknown or equal."""
    return {"within": "noise", "beyond": "beyond noise"}.get(measure.noise, "")


def format_spread(measure: Measure) -> str:
    """Return half the larger spread of the two sides as ``±x``; empty without a spread."""
    most = max(measure.a.spread, measure.b.spread)
    return f"±{amount(measure, most / 2)}" if most else ""
