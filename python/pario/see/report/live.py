"""The state of a run that is being recorded: a page that a terminal draws again and again, or one
line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from rich.console import Console
from rich.text import Text

from pario import wording
from pario.see.analyze.model import Analysis
from pario.see.report.clean import make_printable
from pario.see.report.page import encodable, notes, page_width, wrap_text
from pario.see.report.tables import progress
from pario.see.report.terminal import (
    MESSAGES,
    PROGRESS_ROWS,
    SHORT_FINDINGS,
    finding_lines,
    verdict_lines,
)
from pario.see.report.text_table import section


@dataclass(frozen=True)
class Sample:
    """The bytes that a run has moved up to a moment."""

    moment: float  # seconds since the start of the run
    read: int
    written: int


def sample(analysis: Analysis) -> Sample:
    """Return the bytes moved when the logs were read."""
    job = analysis.job
    return Sample(analysis.progress.moment or job.wall, job.bytes_read, job.bytes_written)


def describe_rates(before: Sample | None, now: Sample) -> str:
    """Return the bytes moved since the start, with their rates since ``before``."""
    passed = now.moment - before.moment if before else 0.0
    parts = []
    for verb, total, earlier in (
        ("read", now.read, before.read if before else 0),
        ("wrote", now.written, before.written if before else 0),
    ):
        # A file may lose its bytes for a moment, when its row moves to another process.
        rate = f" (now {wording.rate(max(total - earlier, 0) / passed)})" if passed > 0 else ""
        parts.append(f"{verb} {wording.size(total)}{rate}")
    return ", ".join(parts)


def line(analysis: Analysis, before: Sample | None) -> str:
    """Return the state as one line, for a log without a terminal."""
    safe = make_printable(analysis)
    now = sample(analysis)
    state = safe.progress.sentence or f"Recorded {wording.seconds(now.moment)}."
    in_io = wording.seconds(safe.verdict.critical.io)
    return f"{state} So far {describe_rates(before, now)}, {in_io} in I/O."


def page(analysis: Analysis, before: Sample | None, console: Console) -> Text:
    """Return the state as a page of at most the height of the terminal: the verdict so far, rates,
    calls in progress and findings."""
    safe, width = make_printable(analysis), page_width(console)
    every = chain(
        verdict_lines(safe, width),
        wrap_text(f"So far {describe_rates(before, sample(analysis))}.", width),
        section(progress.calls(safe.progress, PROGRESS_ROWS), width),
        _findings(safe, width),
        notes(safe.messages, MESSAGES),
    )
    shown = islice(every, max(console.height - 1, 1))
    return Text("\n").join(encodable(each, console) for each in shown)


def _findings(analysis: Analysis, width: int) -> Iterator[Text]:
    for number, finding in enumerate(analysis.findings[:SHORT_FINDINGS], 1):
        yield from finding_lines(number, finding, analysis.job.wall, width)
