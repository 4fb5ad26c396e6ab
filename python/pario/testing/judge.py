"""Compares the logs of a test with its limits."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from pario.see.analyze import analyze
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Analysis
from pario.see.analyze.split import Times
from pario.see.analyze.usage import NAMES, usage
from pario.see.report.clean import make_printable
from pario.see.report.terminal import finding_lines
from pario.see.symbols import resolve
from pario.see.tables import read
from pario.settings.globs import selects
from pario.testing.limits import WIDTH, Limits, describe, excess


def judge(logs: Path, limits: Limits, is_outside: Callable[[str], bool]) -> str:
    """Return the text of a failure if the logs in a directory exceed the limits, or an empty one.
    Calls on files that ``is_outside`` accepts do not count."""
    job = resolve(read([logs]))
    analysis = analyze(job)
    facts = Facts(Times(job))
    used = {
        name: usage(facts, name, lambda path: selects(limits.of, path) and not is_outside(path))
        for name in NAMES
    }
    costs = {"io": analysis.verdict.critical.io, "lost": analysis.seconds_lost}
    found = excess(limits, used, costs, analysis.job.wall)
    return describe(found, used.values(), _advice(analysis), logs) if found else ""


def _advice(analysis: Analysis) -> str:
    """Return the verdict and the top finding with its line and repair."""
    safe = make_printable(analysis)
    lines = textwrap.wrap(safe.verdict.sentence, WIDTH)
    for finding in safe.findings[:1]:
        rows = finding_lines(1, finding, safe.job.wall, WIDTH, in_full=True)
        lines += [row.plain.rstrip() for row in rows]
    return "\n".join(lines)
