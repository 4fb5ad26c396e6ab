"""Compares two runs, each of one or several repetitions: time, calls, bytes, findings, files and
outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pario import wording
from pario.outputs import Output
from pario.see.analyze.comparison import (
    SAME_WALL,
    Change,
    Comparison,
    FileChange,
    FindingChange,
    Measure,
    OutputChange,
    OutputState,
    Sample,
    Side,
    Unit,
)
from pario.see.analyze.model import MOST_ROWS, Analysis, FileRow, Finding
from pario.see.analyze.noise import LEAST_RUNS, noise

#: Relative changes below which a finding counts as unchanged.
SAME_FINDING = 0.1
#: Relative increase of system calls and their bytes from which on a message names it.
MORE_MOVED = 0.1
#: Smaller parts of the wall time are not shown.
LEAST_SHARE = 0.001


@dataclass(frozen=True)
class Runs:
    """One side: its repetitions, and the recorded outputs of each."""

    name: str
    source: str
    analyses: Sequence[Analysis]
    outputs: Sequence[Sequence[Output] | None] = ()


def compare(a: Runs, b: Runs, subject: str = "") -> Comparison:
    """Compare B, named ``subject`` in sentences, with A. Each side needs at least one run."""
    measures = tuple(_measures(a.analyses, b.analyses))
    files = _files(a.analyses, b.analyses)
    wall = measures[0]
    return Comparison(
        sentence=_sentence(a, b, measures, subject or b.name),
        certainty=_certainty(wall),
        a=_side(a),
        b=_side(b),
        measures=measures,
        findings=_findings(a.analyses, b.analyses),
        files=files[:MOST_ROWS],
        file_total=len(files),
        outputs=_outputs(a, b),
        messages=(*_messages(a, b), *_name_increases(b.name, measures)),
    )


# --- figures of the whole run
# -------------------------------------------------------------------------------------------------

_FIGURES: tuple[tuple[str, str, Unit, Callable[[Analysis], float]], ...] = (
    ("wall", "wall time", "seconds", lambda run: run.job.wall),
    ("io", "I/O", "seconds", lambda run: run.verdict.critical.io),
    ("waiting", "waiting", "seconds", lambda run: run.verdict.critical.waiting),
    ("communication", "communication", "seconds", lambda run: run.verdict.critical.communication),
    ("compute", "compute", "seconds", lambda run: run.verdict.critical.compute),
    ("calls", "I/O calls", "count", lambda run: run.job.calls),
    ("bytes_read", "bytes read", "bytes", lambda run: run.job.bytes_read),
    ("bytes_written", "bytes written", "bytes", lambda run: run.job.bytes_written),
    ("system_reads", "system reads", "count", lambda run: run.job.system_reads),
    ("system_writes", "system writes", "count", lambda run: run.job.system_writes),
    ("system_bytes_read", "system read bytes", "bytes", lambda run: _kernel(run, "read")),
    (
        "system_bytes_written",
        "system written bytes",
        "bytes",
        lambda run: _kernel(run, "written"),
    ),
)


def _kernel(run: Analysis, name: str) -> float:
    """A counter of the kernel; -1: the log has none."""
    return -1.0 if run.kernel is None else float(getattr(run.kernel, name))


def _measures(a: Sequence[Analysis], b: Sequence[Analysis]) -> Iterable[Measure]:
    """Yield the figures that all runs have and that are not negligible in all of them."""
    for key, name, unit, figure in _FIGURES:
        values_a, values_b = (tuple(float(figure(run)) for run in side) for side in (a, b))
        values = (*values_a, *values_b)
        least = LEAST_SHARE * max(run.job.wall for run in (*a, *b)) if unit == "seconds" else 0
        if key == "wall" or (min(values) >= 0 and max(values) > least):
            yield Measure(
                key, name, unit, Sample(values_a), Sample(values_b), noise(values_a, values_b)
            )


def _side(runs: Runs) -> Side:
    first = runs.analyses[0]
    middle = sorted(runs.analyses, key=lambda run: run.job.wall)[(len(runs.analyses) - 1) // 2]
    statuses = [run.job.exit_status for run in runs.analyses]
    status = next((status for status in statuses if status), statuses[0])
    return Side(
        runs.name,
        runs.source,
        first.job.command,
        len(runs.analyses),
        first.job.ranks,
        status,
        first.job.settings,
        middle.verdict.critical,
    )


# --- in words
# -------------------------------------------------------------------------------------------------


def _sentence(a: Runs, b: Runs, measures: Sequence[Measure], subject: str) -> str:
    wall = measures[0]
    times = f"{wording.seconds(wall.b.median)} instead of {wording.seconds(wall.a.median)}"
    if failed := [
        name
        for name, side in ((a.name, a), (subject, b))
        if any(run.job.exit_status for run in side.analyses)
    ]:
        return f"{' and '.join(failed)} failed and may not have done all the work: {times}."
    head = f"{subject} takes {times}"
    if wall.noise == "within" or abs(wall.change) < SAME_WALL:
        return f"{head}: no difference that counts{_of_io(measures)}."
    return f"{head}: {_more_or_less(wall)}{_of_io(measures)}."


def _more_or_less(wall: Measure) -> str:
    difference = abs(wall.b.median - wall.a.median)
    return (
        f"{wording.seconds(difference)} ({wording.share(abs(wall.change))})"
        f" {'less' if wall.change < 0 else 'more'}"
    )


def _of_io(measures: Sequence[Measure]) -> str:
    io = next((measure for measure in measures if measure.key == "io"), None)
    return (
        f"; I/O {wording.seconds(io.b.median)} instead of {wording.seconds(io.a.median)}"
        if io
        else ""
    )


def _certainty(wall: Measure) -> str:
    runs = f"{len(wall.a.values)} and {len(wall.b.values)} runs"
    if min(len(wall.a.values), len(wall.b.values)) < LEAST_RUNS:
        few = "single runs" if len(wall.a.values) == len(wall.b.values) == 1 else runs
        return (
            f"{_each(wall)}The noise is not known from {few}: use pario run --repeat {LEAST_RUNS}"
            " or more."
        )
    judgements = {
        "beyond": "The difference in wall time is beyond the noise",
        "within": "The difference in wall time is within the noise",
    }
    spread = max(wall.a.spread, wall.b.spread)
    return (
        f"{judgements.get(wall.noise, 'The wall times are equal')} of {runs}, which lie up to"
        f" {wording.seconds(spread)} apart."
    )


def _each(wall: Measure) -> str:
    """A sentence on the least and the largest difference of two runs, if a side has several."""
    saved = [a - b for a in wall.a.values for b in wall.b.values]
    if len(saved) == 1:
        return ""
    low, high = (_less_or_more(value) for value in (min(saved), max(saved)))
    return f"Between single runs it takes {low} to {high}. "


def _less_or_more(saved: float) -> str:
    return f"{wording.seconds(abs(saved))} {'less' if saved >= 0 else 'more'}"


def _messages(a: Runs, b: Runs) -> Iterable[str]:
    first_a, first_b = a.analyses[0].job, b.analyses[0].job
    if first_a.command and first_b.command and first_a.command != first_b.command:
        yield f"the commands differ: {first_a.command} / {first_b.command}"
    if first_a.ranks != first_b.ranks:
        yield f"the numbers of ranks differ: {first_a.ranks} / {first_b.ranks}"
    for side in (a, b):
        statuses = sorted({run.job.exit_status for run in side.analyses if run.job.exit_status})
        if statuses:
            yield (
                f"{side.name} failed: exit status {', '.join(map(str, statuses))}; work that it did"
                " not do cost nothing"
            )
        for message in dict.fromkeys(message for run in side.analyses for message in run.messages):
            yield f"{side.name}: {message}"


def _name_increases(name: str, measures: Sequence[Measure]) -> Iterable[str]:
    """Yield a message for each count of the kernel that is larger in B."""
    for measure in measures:
        if measure.key.startswith("system_") and measure.change > MORE_MOVED:
            format_value = wording.size if measure.unit == "bytes" else wording.count
            yield (
                f"{name} costs more {measure.name}: {format_value(measure.b.median)} instead of"
                f" {format_value(measure.a.median)}"
            )


# --- findings
# -------------------------------------------------------------------------------------------------


def _findings(a: Sequence[Analysis], b: Sequence[Analysis]) -> tuple[FindingChange, ...]:
    """Return one row per rule, so that other file names in another run do not look like another
    cause."""
    rules = dict.fromkeys(finding.rule for run in (*a, *b) for finding in run.findings)
    rows = [_finding(rule, a, b) for rule in rules]
    return tuple(sorted(rows, key=lambda row: -max(row.seconds_a, row.seconds_b)))


def _finding(rule: str, a: Sequence[Analysis], b: Sequence[Analysis]) -> FindingChange:
    of_a, of_b = (
        [[finding for finding in run.findings if finding.rule == rule] for run in side]
        for side in (a, b)
    )
    lost_a, lost_b = (
        median(sum(finding.seconds for finding in found) for found in side) for side in (of_a, of_b)
    )
    if not any(of_b):
        change: Change = "gone"
    elif not any(of_a):
        change = "new"
    elif abs(lost_b - lost_a) <= SAME_FINDING * max(lost_a, lost_b):
        change = "same"
    else:
        change = "smaller" if lost_b < lost_a else "larger"
    return FindingChange(rule, _title(of_a) or _title(of_b), lost_a, lost_b, change)


def _title(found: Sequence[Sequence[Finding]]) -> str:
    """Return the title of the finding in the run with the median loss, and the number of further
    findings of the rule there. Runs without the finding do not count."""
    runs = sorted(
        (run for run in found if run), key=lambda run: sum(finding.seconds for finding in run)
    )
    if not runs:
        return ""
    run = runs[(len(runs) - 1) // 2]
    return run[0].title + (f" (and {len(run) - 1} more)" if len(run) > 1 else "")


# --- files
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Used:
    """The use of a file by one run."""

    seconds: float = 0.0
    calls: int = 0
    bytes: int = 0
    system_writes: int = 0


def _files(a: Sequence[Analysis], b: Sequence[Analysis]) -> tuple[FileChange, ...]:
    used_a, used_b = ([_used(run) for run in side] for side in (a, b))
    paths = dict.fromkeys(path for run in (*used_a, *used_b) for path in run)
    rows = [_file(path, used_a, used_b) for path in paths]
    return tuple(sorted(rows, key=lambda row: (-abs(row.saved), row.path)))


def _used(run: Analysis) -> dict[str, _Used]:
    written = {row.path: row.system_writes for row in run.streams} | {
        row.path: row.system_writes for row in run.mpiio
    }
    rows = (row for row in run.files if not row.stream and not row.group)
    return {
        _relative(row.path, run.job.directory): _of_row(row, written.get(row.path, 0))
        for row in rows
    }


def _of_row(row: FileRow, system_writes: int) -> _Used:
    return _Used(
        row.seconds / max(row.ranks, 1),
        row.calls,
        row.bytes_read + row.bytes_written,
        system_writes,
    )


def _relative(path: str, directory: str) -> str:
    return path.removeprefix(directory.rstrip("/") + "/") if directory else path


def _file(
    path: str, a: Sequence[Mapping[str, _Used]], b: Sequence[Mapping[str, _Used]]
) -> FileChange:
    none = _Used()
    rows_a, rows_b = ([run.get(path, none) for run in side] for side in (a, b))

    def of(figure: Callable[[_Used], float]) -> tuple[float, float]:
        return median(map(figure, rows_a)), median(map(figure, rows_b))

    counts = (round(value) for figure in _COUNTS for value in of(figure))
    return FileChange(path, *of(lambda used: used.seconds), *counts)


_COUNTS: tuple[Callable[[_Used], float], ...] = (
    lambda used: used.calls,
    lambda used: used.bytes,
    lambda used: used.system_writes,
)


# --- outputs
# -------------------------------------------------------------------------------------------------


def _outputs(a: Runs, b: Runs) -> tuple[OutputChange, ...] | None:
    """Compare the written files; None unless every run of both sides recorded its outputs."""
    recorded = [*a.outputs, *b.outputs]
    if not a.outputs or not b.outputs or any(run is None for run in recorded):
        return None
    of_a, of_b = (
        [{output.path: output for output in run or ()} for run in side.outputs] for side in (a, b)
    )
    paths = sorted(
        {output.path for run in (*of_a, *of_b) for output in run.values() if output.written}
    )
    rows = [
        _output(path, [run.get(path) for run in of_a], [run.get(path) for run in of_b])
        for path in paths
    ]
    return tuple(sorted(rows, key=lambda row: row.state == "identical"))


def _output(path: str, a: Sequence[Output | None], b: Sequence[Output | None]) -> OutputChange:
    return OutputChange(
        path,
        _state(a, b),
        *(next((output.size for output in side if output), -1) for side in (a, b)),
    )


def _state(a: Sequence[Output | None], b: Sequence[Output | None]) -> OutputState:
    """Return the state of an output. ``not written``: the checksums agree, but a run did not write
    the file, so that they prove nothing about its output."""
    sums_a, sums_b = ({output.digest if output else "" for output in side} for side in (a, b))
    if sums_a == {""} or sums_b == {""}:
        return "only in A" if sums_b == {""} else "only in B"
    if len(sums_a) > 1:
        return "varies"
    if sums_a != sums_b:
        return "differs"
    return "identical" if all(output and output.written for output in (*a, *b)) else "not written"


def select_outputs(runs: Runs, keep: Callable[[str], bool]) -> Runs:
    """Return the side with the outputs whose path ``keep`` accepts."""
    return replace(
        runs,
        outputs=[
            None if run is None else [output for output in run if keep(output.path)]
            for run in runs.outputs
        ],
    )
