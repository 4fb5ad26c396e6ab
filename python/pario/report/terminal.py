"""The report as one screen of text: the verdict, where the time went, what to do about it, then tables, last what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import Console
from rich.text import Text

from pario import wording
from pario.analyze.model import Analysis, FileRow, Finding, Fix, FunctionRow, JobInfo, Verdict
from pario.report import audit, loaders, mpiio, streams
from pario.report.clean import cleaned
from pario.report.columns import Column, aligned
from pario.report.page import LEAST_WIDTH, encodable, heading, split_bar, split_legend, wrapped
from pario.report.words import SURE, file_name, function_name, lanes, no_findings, of_slowest, rank

#: What one screen shows; everything with ``all``.
FULL_FINDINGS = 3
SHORT_FINDINGS = 3
TABLE_ROWS = 4
MESSAGES = 3

ARROWS = {"setting": "→ ", "code": "→ ", "command": "$ "}
INDENT = 19
LEAST_COMMAND = 8
MARGIN = " " * INDENT


def render(analysis: Analysis, console: Console, all: bool = False) -> None:
    """Prints the page. Without ``all`` it fits about 40 lines of 100 columns; colours are the console's business."""
    safe = cleaned(analysis)
    width = max(min(console.width, 120), LEAST_WIDTH)
    brief = safe.verdict.bound == "little" and not all
    sections = (
        _verdict(safe, width, brief),
        _findings(safe, width, all),
        audit.without_effect(safe, width),
        loaders.figures(safe, width, all),
        _functions(safe, width, all) if not brief else (),
        _files(safe, width, all) if not brief else (),
        audit.hints(audit.rows_of(safe, "striping"), "Stripes of new files", width) if all else (),
        streams.figures(safe, width) if all else (),
        mpiio.figures(safe, width) if all else (),
        _notes(safe, all),
    )
    for number, section in enumerate(filter(None, map(list, sections))):
        for line in ([Text()] if number and not brief else []) + section:
            console.print(encodable(line, console), soft_wrap=True, highlight=False)


def _verdict(analysis: Analysis, width: int, brief: bool) -> Iterator[Text]:
    verdict = analysis.verdict
    yield from wrapped(verdict.sentence, width, style="bold")
    yield Text(_job_line(analysis.job, width), style="dim")
    if verdict.critical.wall > 0 and not brief:
        yield Text()
        yield split_bar(verdict.critical, width)
        yield from split_legend(verdict.critical, width)
        yield from _ranks_line(verdict, analysis.job.ranks, width)


def _job_line(job: JobInfo, width: int) -> str:
    facts = [lanes(job)]
    if len(job.hosts) > 1:
        facts.append(wording.plural(len(job.hosts), "host"))
    facts += [f"{name} {wording.size(moved)}" for name, moved in (("read", job.bytes_read), ("wrote", job.bytes_written)) if moved]
    facts.append(wording.plural(job.files, "file"))
    if job.exit_status:
        facts.append(f"exit status {job.exit_status}")
    line = " · ".join(facts)
    room = width - len(line) - len(" · ")
    if room < LEAST_COMMAND:
        return wording.elided(line, width)
    return f"{line} · {wording.command(job.command, room) if job.command else wording.elided(job.source, room)}"


def _ranks_line(verdict: Verdict, ranks: int, width: int) -> Iterator[Text]:
    if ranks > 1:
        slowest = f"Rank {verdict.slowest_rank}" if verdict.slowest_rank >= 0 else "The slowest rank"
        most, mean = wording.seconds(verdict.slowest.io), wording.seconds(verdict.mean.io)
        text = f"{slowest} spends the most time in I/O: {most} (mean {mean})."
        yield Text(wording.elided(text, width), style="dim")


def _findings(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    findings, wall = analysis.findings, analysis.job.wall
    if not findings:
        yield Text(no_findings(analysis.verdict))
        return
    total = sum(finding.seconds for finding in findings)
    yield heading("What it costs, and what to do", f"together {wording.seconds(total)}{_of_wall(total, wall)}")
    full = len(findings) if all else FULL_FINDINGS
    shown = len(findings) if all else FULL_FINDINGS + SHORT_FINDINGS
    for number, finding in enumerate(findings[:shown], 1):
        yield from _finding(number, finding, wall, width, in_full=number <= full, all=all)
    rest = findings[shown:]
    if rest:
        together = wording.seconds(sum(finding.seconds for finding in rest))
        yield Text(f"{MARGIN}{wording.plural(len(rest), 'smaller finding')}, {together} together: --all", style="dim")


def _of_wall(value: float, wall: float) -> str:
    return f", {wording.share(value / wall)} of the run" if wall > 0 else ""


def _finding(number: int, finding: Finding, wall: float, width: int, in_full: bool, all: bool) -> Iterator[Text]:
    part = wording.share(finding.seconds / wall) if wall > 0 else ""
    lead = Text(f"{number:>2} {wording.seconds(finding.seconds):>9} {part:>5} ".ljust(INDENT))
    lead.stylize("bold red" if wall > 0 and finding.seconds >= 0.1 * wall else "bold", 3, INDENT)
    sure = f"({SURE[finding.confidence]})"
    title = list(wrapped(f"{finding.title} {sure}", width, MARGIN, "bold" if in_full else ""))
    title[-1].stylize("not bold dim", len(title[-1]) - len(sure))
    yield Text.assemble(lead, title[0][INDENT:])
    yield from title[1:]
    if not in_full:
        return
    yield from wrapped(finding.cause, width, MARGIN, "")
    for fix in finding.fixes if all else _first(finding.fixes):
        yield from _fix(fix, width)
    if all:
        yield from _basis(finding, width)


def _first(fixes: Sequence[Fix]) -> Sequence[Fix]:
    """The first, and the command that goes with it."""
    return fixes[: 2 if len(fixes) > 1 and fixes[1].kind == "command" else 1]


def _fix(fix: Fix, width: int) -> Iterator[Text]:
    """A command is never broken: it is there to be copied."""
    text = ARROWS[fix.kind] + fix.text
    return iter([Text(MARGIN + text, style="green")]) if fix.kind == "command" else wrapped(text, width, MARGIN, "green", hanging=2)


def _basis(finding: Finding, width: int) -> Iterator[Text]:
    for evidence in finding.evidence:
        yield from wrapped(f"- {evidence.text}", width, MARGIN, "dim", hanging=2)
    if finding.ranks:
        yield from wrapped(f"- ranks {wording.ranks(finding.ranks)}", width, MARGIN, "dim", hanging=2)
    yield from wrapped(f"Estimate: {finding.method}", width, MARGIN, "dim", hanging=2)


def _functions(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    rows = list(islice(analysis.functions, None if all else TABLE_ROWS))
    if not rows:
        return
    yield from aligned(_function_columns(analysis.job.ranks, width), rows, width)
    yield from _more(len(analysis.functions) - len(rows), "function")


def _function_columns(ranks: int, width: int) -> list[Column[FunctionRow]]:
    columns: list[Column[FunctionRow]] = [
        Column("Function", function_name, left=True, flexible=True),
        Column("calls", lambda row: wording.count(row.calls) if row.calls else ""),
        Column("bytes", lambda row: wording.size(row.bytes) if row.bytes else ""),
        Column("of the run", lambda row: wording.share(row.share)),
    ]
    if ranks <= 1:
        return [*columns, Column("time", lambda row: wording.seconds(row.seconds))]
    columns += [
        Column("mean", lambda row: wording.seconds(row.mean)),
        Column("slowest", of_slowest),
        Column("rank", lambda row: rank(row.slowest_rank), left=True),
    ]
    if width >= 96:
        columns.append(Column("waiting", lambda row: wording.share(row.waiting / row.seconds) if row.waiting and row.seconds else ""))
    return columns


def _files(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    storage = [row for row in analysis.files if not row.stream and not row.group]
    rows = list(analysis.files) if all else storage[:TABLE_ROWS]
    if not rows:
        return
    yield from aligned(_file_columns(analysis.job.ranks, width), rows, width)
    yield from _more((analysis.file_total if all else analysis.job.files) - len(rows), "file")


def _file_columns(ranks: int, width: int) -> list[Column[FileRow]]:
    columns: list[Column[FileRow]] = [
        Column("File", file_name, left=True, flexible=True),
        Column("read", lambda row: wording.size(row.bytes_read) if row.bytes_read or (row.reads and not row.group) else ""),
        Column("written", lambda row: wording.size(row.bytes_written) if row.bytes_written or (row.writes and not row.group) else ""),
        Column("calls", lambda row: wording.count(row.calls)),
    ]
    if ranks <= 1:
        return [*columns, Column("time", lambda row: wording.seconds(row.seconds))]
    if width >= 96:
        columns.append(Column("mean", lambda row: wording.seconds(row.seconds / max(row.ranks, 1))))
    columns.append(Column("slowest", of_slowest))
    columns.append(Column("rank", lambda row: rank(row.slowest_rank), left=True))
    return columns


def _more(number: int, what: str) -> Iterator[Text]:
    if number > 0:
        yield Text(f"and {wording.plural(number, f'more {what}')}", style="dim")


def _notes(analysis: Analysis, all: bool) -> Iterator[Text]:
    messages: Sequence[str] = (*analysis.messages, *(f"not known: {text}" for text in analysis.verdict.not_known))
    if not messages:
        return
    shown = messages if all else messages[:MESSAGES]
    for number, message in enumerate(shown):
        yield Text.assemble(("Note  " if number == 0 else "      ", "bold yellow"), message)
    if len(messages) > len(shown):
        yield Text(f"      and {wording.plural(len(messages) - len(shown), 'more note')}: --all", style="dim")
