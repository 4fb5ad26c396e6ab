"""The report as one screen of text: the verdict, the split of the time, the findings and their
repairs, tables, and notes on missing facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from rich.console import Console
from rich.text import Text

from pario import wording
from pario.see.analyze.call_sites import NO_LINES, join_places
from pario.see.analyze.model import Analysis, CallSite, Finding, Fix, JobInfo, Verdict
from pario.see.report.clean import make_printable
from pario.see.report.page import (
    heading,
    more,
    notes,
    page_width,
    show,
    split_bar,
    split_legend,
    wrap_text,
)
from pario.see.report.table import Table
from pario.see.report.tables import mpiio, progress, run, streams
from pario.see.report.tables.settings import settings
from pario.see.report.text_table import lines, section
from pario.see.report.words import (
    ORDER,
    SURE,
    describe_contention,
    describe_overlaps,
    describe_range,
    hints_without_effect,
    is_contended,
    kernel,
    lanes,
    no_findings,
    rows_of,
    slow_call,
)

#: Rows on one screen; ``all`` shows every row.
FULL_FINDINGS = 3
SHORT_FINDINGS = 3
TABLE_ROWS = 4
LOADER_ROWS = 3
PROGRESS_ROWS = 8
MESSAGES = 3
SLOW_CALLS = 2
SITES = 5
CALLERS = 3
CONTENTION = "Contention  "
#: Files with overlapping writes on one screen.
OVERLAPS = 3
#: The part of the run for which the mean rank waits off the critical path before it has a bar.
LEAST_WAITING = 0.02

ARROWS = {"setting": "→ ", "code": "→ ", "command": "$ "}
INDENT = 19
LEAST_COMMAND = 8
MARGIN = " " * INDENT


def render(analysis: Analysis, console: Console, all: bool = False) -> None:
    """Print the page. Without ``all`` it fits about 40 lines of 100 columns; the console decides on
    colours."""
    safe = make_printable(analysis)
    width = page_width(console)
    brief = safe.verdict.bound == "little" and not all
    loaders = run.loaders(safe.loaders if all else safe.loaders[:LOADER_ROWS], len(safe.loaders))
    sections = (
        verdict_lines(safe, width, brief=brief),
        section(progress.calls(safe.progress, None if all else PROGRESS_ROWS), width),
        _corruption(safe, width, all),
        _findings(safe, width, all),
        _slow_calls(safe, width, all),
        chain(_hints_without_effect(safe, width), _contention(safe, width, all)),
        section(loaders, width),
        *(() if brief else (_functions(safe, width, all), _files(safe, width, all))),
        *(_details(safe, width) if all else ()),
        _notes(safe, all),
    )
    show(sections, console, apart=not brief)


def verdict_lines(analysis: Analysis, width: int, *, brief: bool = False) -> Iterator[Text]:
    """Yield the verdict and, unless ``brief``, the split of the time."""
    verdict = analysis.verdict
    yield from wrap_text(verdict.sentence, width, style="bold")
    yield Text(_job_line(analysis.job, width), style="dim")
    if verdict.critical.wall > 0 and not brief:
        yield Text()
        yield split_bar(verdict.critical, width)
        yield from split_legend(verdict.critical, width)
        yield from _ranks_line(verdict, analysis.job.ranks, width)
    if analysis.kernel and not brief:
        yield from wrap_text(f"Kernel: {kernel(analysis.kernel)}", width, style="dim")


def _job_line(job: JobInfo, width: int) -> str:
    facts = [lanes(job)]
    if len(job.hosts) > 1:
        facts.append(wording.plural(len(job.hosts), "host"))
    facts += [
        f"{name} {wording.size(moved)}"
        for name, moved in (("read", job.bytes_read), ("wrote", job.bytes_written))
        if moved
    ]
    facts.append(wording.plural(job.files, "file"))
    if job.exit_status:
        facts.append(wording.exit_status(job.exit_status))
    line = " · ".join(facts)
    space = width - len(line) - len(" · ")
    if space < LEAST_COMMAND:
        return wording.elide(line, width)
    started = (
        wording.command(job.command, space) if job.command else wording.elide(job.source, space)
    )
    return f"{line} · {started}"


def _ranks_line(verdict: Verdict, ranks: int, width: int) -> Iterator[Text]:
    if ranks > 1:
        slowest = (
            f"Rank {verdict.slowest_rank}" if verdict.slowest_rank >= 0 else "The slowest rank"
        )
        most, mean = wording.seconds(verdict.slowest.io), wording.seconds(verdict.mean.io)
        text = f"{slowest} spends the most time in I/O: {most} (mean {mean}){_waiting(verdict)}."
        yield from wrap_text(text, width, style="dim")


def _waiting(verdict: Verdict) -> str:
    """Return words on the waiting of the mean rank if it exceeds that on the critical path, which
    the bar shows; else an empty text. The tables of calls and files count it, the I/O of a rank
    does not."""
    mean = verdict.mean
    if not mean.waiting - verdict.critical.waiting >= LEAST_WAITING * mean.wall > 0:
        return ""
    share, wait = wording.share(mean.waiting / mean.wall), wording.seconds(mean.waiting)
    return f", without waiting (mean {wait}, {share})"


def _corruption(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    """Yield the files in which unordered writes overlap."""
    rows = analysis.overlaps
    if not rows:
        return
    yield Text("Possible corruption: writes overlap without an order", style="bold red")
    for row in rows if all else rows[:OVERLAPS]:
        yield from wrap_text(describe_overlaps(row), width, "  ", "", hanging=2)
        for each in row.ranges if all else ():
            yield from wrap_text(describe_range(each), width, "    - ", "dim", hanging=2)
    yield from more(len(rows) - OVERLAPS if not all else 0, "file", ": --all")
    yield from wrap_text(f"→ {ORDER}", width, "  ", "green", hanging=2)


def _findings(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    findings, wall = analysis.findings, analysis.job.wall
    if not findings:
        yield Text(no_findings(analysis))
        return
    total = sum(finding.seconds for finding in findings)
    yield heading("Costs and remedies", f"together {wording.seconds(total)}{_of_wall(total, wall)}")
    full = len(findings) if all else FULL_FINDINGS
    shown = len(findings) if all else FULL_FINDINGS + SHORT_FINDINGS
    for number, finding in enumerate(findings[:shown], 1):
        yield from finding_lines(number, finding, wall, width, in_full=number <= full, all=all)
    rest = findings[shown:]
    if rest:
        together = wording.seconds(sum(finding.seconds for finding in rest))
        yield Text(
            f"{MARGIN}{wording.plural(len(rest), 'smaller finding')}, {together} together: --all",
            style="dim",
        )


def _of_wall(value: float, wall: float) -> str:
    return f", {wording.share(value / wall)} of the run" if wall > 0 else ""


def finding_lines(
    number: int,
    finding: Finding,
    wall: float,
    width: int,
    *,
    in_full: bool = False,
    all: bool = False,
) -> Iterator[Text]:
    """Yield the title of a finding and, ``in_full``, its cause and its repairs."""
    part = wording.share(finding.seconds / wall) if wall > 0 else ""
    lead = Text(f"{number:>2} {wording.seconds(finding.seconds):>9} {part:>5} ".ljust(INDENT))
    lead.stylize("bold red" if wall > 0 and finding.seconds >= 0.1 * wall else "bold", 3, INDENT)
    sure = f"({SURE[finding.confidence]})"
    title = list(wrap_text(f"{finding.title} {sure}", width, MARGIN, "bold" if in_full else ""))
    title[-1].stylize("not bold dim", len(title[-1]) - len(sure))
    yield Text.assemble(lead, title[0][INDENT:])
    yield from title[1:]
    yield from _sites(finding, width, all)
    if not in_full:
        return
    yield from wrap_text(" ".join(filter(None, (finding.cause, finding.pace))), width, MARGIN, "")
    for fix in finding.fixes if all else _first(finding.fixes):
        yield from _fix(fix, width)
    if all:
        yield from _basis(finding, width)


def _sites(finding: Finding, width: int, all: bool) -> Iterator[Text]:
    """Yield the lines of the program that make the calls: the one with most seconds (or those that
    together make nearly all calls), or several with their callers."""
    for site in finding.sites[: SITES if all else 1]:
        compiled = not (site.file or site.place.endswith(NO_LINES))  # scripts have no lines
        lines = "; compile with -g for its line" if compiled and not site.line else ""
        place, part = (site.place, _part(finding, site)) if all else join_places(finding.sites)
        text = f"at {place} ({part}{lines})"
        yield from wrap_text(text, width, MARGIN, "cyan", hanging=3)
        if all and site.callers:
            callers = ", ".join(site.callers[:CALLERS])
            yield from wrap_text(f"called from {callers}", width, MARGIN + "   ", "dim", hanging=2)


def _part(finding: Finding, site: CallSite) -> str:
    """Return the part of a line in the calls of a finding and in their time."""
    calls = f"{wording.share(site.share)} of these calls"
    total = sum(one.seconds for one in finding.sites)
    return f"{calls}, {wording.share(site.seconds / total)} of their time" if total > 0 else calls


def _first(fixes: Sequence[Fix]) -> Sequence[Fix]:
    """Return the first fix; after a setting also the first change of the program; each with the
    command that follows it."""
    code = next((n for n, fix in enumerate(fixes) if fix.kind == "code"), 0)
    chosen = [0, code] if fixes and fixes[0].kind == "setting" and code else [0]
    return [fix for first in chosen for fix in _with_command(fixes[first:])]


def _with_command(fixes: Sequence[Fix]) -> Sequence[Fix]:
    return fixes[: 2 if len(fixes) > 1 and fixes[1].kind == "command" else 1]


def _fix(fix: Fix, width: int) -> Iterator[Text]:
    """Yield the lines of a fix. Commands are not wrapped, so that they can be copied."""
    text = ARROWS[fix.kind] + fix.text
    return (
        iter([Text(MARGIN + text, style="green")])
        if fix.kind == "command"
        else wrap_text(text, width, MARGIN, "green", hanging=2)
    )


def _basis(finding: Finding, width: int) -> Iterator[Text]:
    for evidence in finding.evidence:
        yield from wrap_text(f"- {evidence.text}", width, MARGIN, "dim", hanging=2)
    if finding.ranks:
        yield from wrap_text(
            f"- ranks {wording.ranks(finding.ranks)}", width, MARGIN, "dim", hanging=2
        )
    ends = f" ({wording.seconds_range(finding.least, finding.most)})" if finding.most else ""
    yield from wrap_text(f"Estimate{ends}: {finding.method}", width, MARGIN, "dim", hanging=2)


def _functions(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    rows = analysis.functions if all else analysis.functions[:TABLE_ROWS]
    table = run.functions(rows, analysis.job.ranks > 1, len(analysis.functions))
    yield from lines(table, width)


def _files(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    storage = [row for row in analysis.files if not row.stream and not row.group]
    rows = list(analysis.files) if all else storage[:TABLE_ROWS]
    total = analysis.file_total if all else analysis.job.files
    yield from lines(run.files(rows, analysis.job.ranks > 1, total), width)


def _details(analysis: Analysis, width: int) -> Iterator[Iterator[Text]]:
    """Yield the sections that only ``all`` shows."""
    mpiio_tables = mpiio.tables(analysis.mpiio, analysis.mpiio_total)
    tables: tuple[Table[Any], ...] = (
        settings(rows_of(analysis, "striping"), "Stripes of new files"),
        settings(rows_of(analysis, "streams"), "Buffered files"),
        streams.streams(analysis.streams, analysis.streams_total),
        settings(rows_of(analysis, "mpiio"), "pario's MPI-IO"),
        *(replace(table, title="pario's MPI-IO") for table in mpiio_tables),
    )
    return (section(table, width) for table in tables)


def _slow_calls(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    """Yield a line for each single call that took far longer than its kind."""
    shown = analysis.outliers if all else analysis.outliers[:SLOW_CALLS]
    for number, outlier in enumerate(shown):
        lead = "       " if number else "Slow   "
        rest = len(analysis.outliers) - len(shown) if number == len(shown) - 1 else 0
        more = f" (and {wording.count(rest)} more: --all)" if rest else ""
        text = slow_call(outlier, width - len(lead) - len(more))
        yield Text.assemble((lead, "bold yellow"), text + more)


def _hints_without_effect(analysis: Analysis, width: int) -> Iterator[Text]:
    """Yield one line if settings were rejected or are not in force."""
    rows = hints_without_effect(analysis.audit)
    if not rows:
        return
    first = rows[0]
    rest = f" (and {len(rows) - 1} more: --all)" if len(rows) > 1 else ""
    reason = wording.hint_reason(first.key, first.requested, first.reason)
    yield Text.assemble(
        ("Hints  ", "bold yellow"), wording.elide(reason, max(width - 7 - len(rest), 20)) + rest
    )


def _contention(analysis: Analysis, width: int, all: bool) -> Iterator[Text]:
    """Yield lines on the busiest shared file whose blocks or targets are contended; ``all``: on
    each shared file."""
    rows = [row for row in analysis.contention if all or is_contended(row)]
    for number, row in enumerate(rows if all else rows[:1]):
        head = " " * len(CONTENTION) if number else CONTENTION
        rest = f" (and {len(rows) - 1} more: --all)" if len(rows) > 1 and not all else ""
        for line in wrap_text(describe_contention(row) + rest, width - len(head)):
            yield Text.assemble((head, "bold yellow"), line)
            head = " " * len(CONTENTION)


def _notes(analysis: Analysis, all: bool) -> Iterator[Text]:
    unknown = (f"not known: {text}" for text in analysis.verdict.not_known)
    return notes((*analysis.messages, *unknown), None if all else MESSAGES)
