"""Many runs: a row for each, their selection, their order, and totals by user, program and
cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pario.see.analyze.model import Analysis
from pario.wording import percent, plural, seconds

#: The values by which runs are sorted, largest first.
SORT_KEYS: dict[str, Callable[[RunRow], float]] = {
    "lost": lambda row: row.lost,
    "io": lambda row: row.io,
    "wall": lambda row: row.wall,
}


@dataclass(frozen=True)
class Cause:
    """A finding of a run: its rule, its title, and the seconds that a repair would save."""

    rule: str
    title: str
    seconds: float


@dataclass(frozen=True)
class RunRow:
    """One run. A run whose logs cannot be read has a path and an error only."""

    path: str  # of its directory or first log
    logs: int = 1  # files, or directories
    error: str = ""
    format: str = ""  # pario, darshan
    user: str = ""
    program: str = ""
    command: str = ""
    start: float = 0.0  # seconds since the epoch; 0: not known
    wall: float = 0.0
    ranks: int = 0  # MPI ranks, or 1
    processes: int = 0
    io: float = 0.0  # seconds of I/O on the critical path
    lost: float = 0.0  # seconds that the repairs of all findings would save
    bytes_read: int = 0
    bytes_written: int = 0
    bound: str = ""  # as in Verdict
    grade: str = ""  # as in Verdict
    sentence: str = ""  # the verdict
    unseen: tuple[str, ...] = ()
    covered: bool = True  # as in Verdict
    is_judged: bool = False  # the verdict covers the whole run
    causes: tuple[Cause, ...] = ()  # most seconds first

    @property
    def lost_share(self) -> float:
        """The part of the wall time that is lost."""
        return self.lost / self.wall if self.wall > 0 else 0.0

    @property
    def rank_seconds(self) -> float:
        """Seconds lost, times the ranks that spend them."""
        return self.lost * max(self.ranks, 1)

    @property
    def verdict(self) -> str:
        """``damaged``, ``incomplete`` or the grade."""
        return "damaged" if self.error else "incomplete" if not self.covered else self.grade


@dataclass(frozen=True)
class Total:
    """The runs of one user or program, or with one cause: then ``lost`` is lost by that cause."""

    name: str
    runs: int
    wall: float
    io: float
    lost: float
    rank_seconds: float  # seconds lost, times ranks


@dataclass(frozen=True)
class Survey:
    """Many runs. ``total`` sums up those that could be read."""

    sentence: str
    rows: tuple[RunRow, ...]  # sorted; after them the damaged ones
    total: Total
    causes: tuple[Total, ...]  # most seconds lost first
    programs: tuple[Total, ...]
    users: tuple[Total, ...]
    damaged: int = 0
    not_judged: int = 0  # incomplete or unknown, without the damaged ones
    left_out: int = 0  # runs that the selection leaves out
    repeated: int = 0  # logs that were given more than once


@dataclass(frozen=True)
class Selection:
    """The runs to show. Names are patterns, of which one must match; none: all names. A damaged run
    is always shown, because nothing is known of it."""

    users: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    since: float = 0.0  # seconds since the epoch
    least_lost: float = 0.0  # seconds

    def accepts_job(self, user: str, program: str, start: float) -> bool:
        """Decide by the facts that are known before the analysis."""
        return (
            _matches(user, self.users) and _matches(program, self.programs) and start >= self.since
        )

    def accepts(self, row: RunRow) -> bool:
        """Decide by all facts."""
        return bool(row.error) or (
            self.accepts_job(row.user, row.program, row.start)
            and row.lost >= self.least_lost
            and (not self.rules or any(_matches(cause.rule, self.rules) for cause in row.causes))
        )

    def unknown_rules(self, names: Sequence[str]) -> list[str]:
        """Return the patterns that match none of the rules."""
        return [rule for rule in self.rules if not any(fnmatchcase(name, rule) for name in names)]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def run_row(analysis: Analysis, path: str, logs: int) -> RunRow:
    """Return the row of an analysed run."""
    job, verdict = analysis.job, analysis.verdict
    return RunRow(
        path=path,
        logs=logs,
        format=job.format,
        user=job.user,
        program=job.program,
        command=job.command,
        start=job.start,
        wall=job.wall,
        ranks=job.ranks,
        processes=job.processes,
        io=verdict.critical.io,
        lost=analysis.seconds_lost,
        bytes_read=job.bytes_read,
        bytes_written=job.bytes_written,
        bound=verdict.bound,
        grade=verdict.grade,
        sentence=verdict.sentence,
        unseen=verdict.unseen,
        covered=verdict.covered,
        is_judged=verdict.is_complete,
        causes=tuple(
            Cause(finding.rule, finding.title, finding.seconds) for finding in analysis.findings
        ),
    )


def summarize(
    rows: Iterable[RunRow], order: str = "lost", left_out: int = 0, repeated: int = 0
) -> Survey:
    """Return the survey of the selected rows, sorted by one of SORT_KEYS."""
    every = list(rows)
    damaged = sorted((row for row in every if row.error), key=lambda row: row.path)
    key = SORT_KEYS[order]
    good = sorted((row for row in every if not row.error), key=lambda row: (-key(row), row.path))
    total = _total("all", [(row, row.lost) for row in good])
    causes = _group((cause.rule, row, cause.seconds) for row in good for cause in row.causes)
    return Survey(
        sentence=_sentence(total, causes, len(damaged)),
        rows=(*good, *damaged),
        total=total,
        causes=causes,
        programs=_group((row.program, row, row.lost) for row in good),
        users=_group((row.user, row, row.lost) for row in good),
        damaged=len(damaged),
        not_judged=sum(not row.is_judged for row in good),
        left_out=left_out,
        repeated=repeated,
    )


def _group(parts: Iterable[tuple[str, RunRow, float]]) -> tuple[Total, ...]:
    """Return a total for each name, most seconds lost first."""
    members: dict[str, dict[int, tuple[RunRow, float]]] = {}
    for name, row, lost in parts:
        runs = members.setdefault(name, {})
        before = runs[id(row)][1] if id(row) in runs else 0.0  # a rule may find several causes
        runs[id(row)] = row, before + lost
    totals = (_total(name, list(runs.values())) for name, runs in members.items())
    return tuple(sorted(totals, key=lambda total: (-total.lost, -total.wall, total.name)))


def _total(name: str, members: Sequence[tuple[RunRow, float]]) -> Total:
    return Total(
        name=name,
        runs=len(members),
        wall=sum(row.wall for row, _ in members),
        io=sum(row.io for row, _ in members),
        lost=sum(lost for _, lost in members),
        rank_seconds=sum(lost * max(row.ranks, 1) for row, lost in members),
    )


def _sentence(total: Total, causes: Sequence[Total], damaged: int) -> str:
    if not total.runs:
        return (
            f"No run to show; {plural(damaged, 'log')} cannot be read."
            if damaged
            else ("No run to show.")
        )
    head = f"{plural(total.runs, 'run')} with {seconds(total.wall)} of wall time"
    if not causes:
        return f"{head}: no finding; {percent(total.io, total.wall)} is I/O."
    first = causes[0]
    return (
        f"{head}: {seconds(total.lost)} ({percent(total.lost, total.wall)}) could be saved; the"
        f" costliest cause is {first.name}: {seconds(first.lost)} in {plural(first.runs, 'run')}."
    )
