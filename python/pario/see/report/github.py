"""The report for GitHub Actions: annotations of source lines as workflow commands, and a summary in
Markdown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pario import wording
from pario.see.analyze.call_sites import join_places
from pario.see.analyze.model import Analysis, CallSite, Finding
from pario.see.report.clean import make_printable
from pario.see.report.words import ORDER, SURE, describe_overlaps, no_findings

#: Characters with a meaning in Markdown or HTML.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~&])")


def commands(analysis: Analysis, root: str) -> Iterator[str]:
    """Yield workflow commands: a notice with the verdict, a warning at the source line of each
    finding that has one, and an error for each file with overlapping writes. Source paths below
    ``root``, the repository, are relative to it."""
    safe = make_printable(analysis)
    yield _command("notice", safe.verdict.sentence, title="pario")
    for row in safe.overlaps:
        text = f"{describe_overlaps(row)}\n{ORDER}"
        yield _command("error", text, title="Possible corruption: writes overlap without an order")
    for finding in safe.findings:
        site = _site(finding, root)
        if site:
            place = {"file": str(_relative(site.file, root)), "line": str(site.line)}
            yield _command(
                "warning", _message(finding, safe.job.wall), **place, title=finding.title
            )


def summary(analysis: Analysis) -> str:
    """Return the verdict and the findings in Markdown, with a line break at the end."""
    safe = make_printable(analysis)
    job = safe.job
    lines = [f"## pario: {_escape_markdown(job.command or job.source)}", ""]
    lines += [f"**{_escape_markdown(safe.verdict.sentence)}**", ""]
    for row in safe.overlaps:
        lines += [f"Possible corruption: {_escape_markdown(describe_overlaps(row))} {ORDER}", ""]
    if not safe.findings:
        lines += [_escape_markdown(no_findings(safe)), ""]
        return "\n".join(lines)
    lines += ["| costs | of the run | finding | at | repair |", "|--:|--:|:--|:--|:--|"]
    lines += [_row(finding, job.wall) for finding in safe.findings]
    return "\n".join([*lines, ""])


def _row(finding: Finding, wall: float) -> str:
    repairs = " ".join(fix.text for fix in finding.fixes[:1])
    cells = (
        wording.seconds(finding.seconds),
        wording.share(finding.seconds / wall) if wall > 0 else "",
        f"{finding.title} ({SURE[finding.confidence]})",
        join_places(finding.sites)[0],
        repairs,
    )
    return f"| {' | '.join(map(_escape_markdown, cells))} |"


def _message(finding: Finding, wall: float) -> str:
    """Return the cost, the cause and the repairs, a line each."""
    share = f", {wording.share(finding.seconds / wall)} of the run" if wall > 0 else ""
    cost = f"Costs {wording.seconds(finding.seconds)}{share} ({SURE[finding.confidence]})."
    return "\n".join([f"{cost} {finding.cause}", *(fix.text for fix in finding.fixes)])


def _site(finding: Finding, root: str) -> CallSite | None:
    """Return the finding's first source line inside the repository, or else its first one."""
    known = [site for site in finding.sites if site.file and site.line]
    inside = (site for site in known if not _relative(site.file, root).is_absolute())
    return next(inside, known[0] if known else None)


def _relative(path: str, root: str) -> Path:
    absolute, base = Path(os.path.normpath(path)), os.path.normpath(root)
    return absolute.relative_to(base) if absolute.is_relative_to(base) else absolute


def _command(name: str, message: str, **properties: str) -> str:
    """Return a workflow command in one line."""
    listed = ",".join(f"{key}={_escape_property(value)}" for key, value in properties.items())
    return f"::{name} {listed}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
