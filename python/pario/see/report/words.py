"""Words and short texts that all reporters share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pario import wording
from pario.see.analyze.comparison import Measure, OutputState
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.model import (
    Analysis,
    Contention,
    FileRow,
    FunctionRow,
    HintRow,
    JobInfo,
    KernelTotals,
    Outlier,
    OverlappingWrites,
    Split,
    WriteRange,
)

#: Words for the confidence of a finding.
SURE = {"high": "sure", "medium": "likely", "low": "possible"}

#: The share of a run from which on its I/O by the MPI's own MPI-IO is worth replays.
WORTH_REPLAYS = 0.1

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


def no_findings(analysis: Analysis) -> str:
    """Return the text for a report without findings; praise only if the verdict justifies it."""
    if _is_for_replays(analysis):
        return (
            "No findings. `pario advise` of this log measures by replays whether pario's MPI-IO is"
            " faster."
        )
    if analysis.verdict.grade != "healthy":
        return "No findings."
    return "No findings: no change of the I/O would save much time."


def _is_for_replays(analysis: Analysis) -> bool:
    """True if the MPI's own MPI-IO takes so much of the run that pario's MPI-IO is worth a
    measurement: no finding states its gain."""
    critical = analysis.verdict.critical
    upper = any("mpiio" in row.layers for row in analysis.files)
    return upper and not analysis.mpiio and critical.io >= WORTH_REPLAYS * critical.wall > 0


def slow_call(outlier: Outlier, width: int = 1000) -> str:
    """Return a sentence on a single slow call, its file shortened to fit ``width`` columns:
    ``one open of out.3 took 60.0 ms at 1.20 s on rank 3, 48 others 0.40 ms (median)``. Counters,
    which have no moment, give the mean."""
    moment = math.isfinite(outlier.start)
    when = f" at {wording.seconds(outlier.start)}" if moment else ""
    where = f" on rank {outlier.rank}" if outlier.rank >= 0 else ""
    head = f"one {outlier.function} of "
    tail = (
        f" took {wording.seconds(outlier.seconds)}{when}{where},"
        f" {wording.plural(outlier.calls - 1, 'other')} {wording.seconds(outlier.usual)}"
        f" ({'median' if moment else 'mean'})"
    )
    return head + wording.elide(outlier.file, max(width - len(head) - len(tail), 12)) + tail


def split_parts(split: Split) -> tuple[tuple[str, str], ...]:
    """Return the parts of a split in display order: field, word."""
    idle = "waiting for other processes" if split.waits_for_peers else "sleeping or waiting"
    rest = idle if split.idle else "compute"
    return (
        ("compute", rest if split.divided else "not in I/O"),
        ("communication", "communication"),
        ("waiting", "waiting"),
        ("io", "I/O"),
    )


def _accounted_share(totals: KernelTotals) -> float:
    """Return the part of the bytes of calls that is accounted for."""
    whole = totals.read + totals.written
    return (totals.read_accounted + totals.written_accounted) / whole if whole else 1.0


def kernel(totals: KernelTotals) -> str:
    """Return the kernel's totals beside the traced ones, in one line."""
    parts = [
        f"calls read {wording.size(totals.read)} and wrote {wording.size(totals.written)}"
        f" ({wording.share(_accounted_share(totals))} seen)",
        f"storage: {wording.size(totals.storage_read)} read,"
        f" {wording.size(totals.storage_written)} written",
        *_delays(totals),
    ]
    return " · ".join(parts)


def _delays(totals: KernelTotals) -> list[str]:
    texts = []
    if totals.major_faults:
        texts.append(wording.plural(totals.major_faults, "major fault"))
    if totals.block_io_seconds:
        texts.append(f"waited {wording.seconds(totals.block_io_seconds)} for devices")
    if totals.run_queue_seconds:
        texts.append(f"{wording.seconds(totals.run_queue_seconds)} for processors")
    return texts


def rows_of(analysis: Analysis, table: str) -> list[HintRow]:
    """Return the settings of one table of ``pario.toml``."""
    return [row for row in analysis.audit if row.table == table]


def hints_without_effect(rows: Sequence[HintRow]) -> list[HintRow]:
    """Return the hints without effect: rejected, or not in force."""
    return [row for row in rows if row.state in ("not taken", "not in force")]


#: The repair of overlapping writes.
ORDER = (
    "Give each writer its own bytes, or order the writes (MPI_File_sync, MPI_Barrier,"
    " MPI_File_sync; a lock; one process that writes)."
)


def describe_overlaps(row: OverlappingWrites) -> str:
    """Return the writers and bytes of a file with overlapping writes."""
    who = (
        f"ranks {wording.ranks(row.ranks)}"
        if row.ranks
        else wording.plural(len(row.processes), "process", "processes")
    )
    first = row.ranges[0]
    rest = f" (and {row.range_total - 1} more)" if row.range_total > 1 else ""
    return (
        f"{wording.name(row.path)}: {who} write the same {wording.size(row.bytes)};"
        f" {describe_range(first)}{rest}"
    )


def describe_range(one: WriteRange) -> str:
    """Return a range of bytes and its two writes."""
    each = zip(one.writers, one.functions, one.times, one.places, strict=True)
    both = " and ".join(
        f"{who} by {name} at {wording.seconds(at)}{place and f' ({place})'}"
        for who, name, at, place in each
    )
    return f"bytes {one.begin:,} to {one.end - 1:,} of {both}"


#: A storage target is overloaded with this many times the mean bytes.
OVERLOADED = 2.0
#: Ends of the names of the equal parts of a file without stripes: no targets.
_PARTS = (" region", " block")


def is_contended(row: Contention) -> bool:
    """Return True if ranks share blocks of the file, or one of its targets is overloaded."""
    return row.shared_units > 0 or _overload(row) >= OVERLOADED


def describe_contention(row: Contention) -> str:
    """Return the shared blocks of a file and its busiest target in one line."""
    totals = _totals(row)
    text = f"{wording.name(row.path)}: {row.note}"
    if _overload(row) < OVERLOADED:
        return text
    busiest = totals.index(max(totals))
    share = wording.percent(max(totals), sum(totals))
    return f"{text}; {row.targets[busiest]} has {share} of the bytes"


def _totals(row: Contention) -> list[int]:
    """Return the bytes on each target."""
    return [sum(column) for column in zip(*row.bytes, strict=True)]


def _overload(row: Contention) -> float:
    """Return the bytes of the busiest target as a multiple of the mean; 1 without targets."""
    totals = [] if row.unit.endswith(_PARTS) else _totals(row)
    return max(totals) * len(totals) / max(sum(totals), 1) if len(totals) > 1 else 1.0


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
