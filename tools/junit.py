"""Reads ctest's JUnit output as results."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from tests.support.results_file import Result

#: ctest's message for a test whose output says that it was skipped.
_SKIPPED = "SKIP_REGULAR_EXPRESSION_MATCHED"
#: Lines of GoogleTest and of the sanitizers that name an error; GoogleTest's reason follows.
_ERROR = re.compile(r": Failure$|ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|: runtime error: ")


def read_junit(path: Path, step: str, root: Path) -> Iterator[Result]:
    """The results of one ctest run. `root`: the checkout, whose path is left out of reasons."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        outcome, reason = _judge(case)
        seconds = float(case.get("time", 0))
        yield Result(
            f"{step}::{case.get('name')}", outcome, seconds, reason.replace(f"{root}/", "")
        )


def _judge(case: ElementTree.Element) -> tuple[str, str]:
    """The outcome of a test and the reason for it."""
    output = case.findtext("system-out", "")
    status = case.get("status")
    skipped = case.find("skipped")
    failure = case.find("failure")
    if status == "run":
        return "passed", ""
    if status == "disabled":
        return "skipped", "disabled"
    if skipped is not None and skipped.get("message") == _SKIPPED:
        return "skipped", _find_skip_reason(output)
    if skipped is not None:  # such as a program that is not there
        return "error", skipped.get("message", "not run")
    message = failure.get("message", "failed") if failure is not None else str(status)
    return "failed", _find_failure_reason(output) or message


def _find_skip_reason(output: str) -> str:
    """The line after `FILE:LINE: Skipped`."""
    lines = [line.strip() for line in output.splitlines()]
    after = (lines[place + 1] for place, line in enumerate(lines[:-1]) if line.endswith("Skipped"))
    return next(after, "") or "no reason given"


def _find_failure_reason(output: str) -> str:
    """The first line that names an error, with GoogleTest's explanation."""
    lines = [line.strip() for line in output.splitlines()]
    for place, line in enumerate(lines):
        if _ERROR.search(line):
            explained = lines[place + 1 : place + 2] if line.endswith("Failure") else []
            return ": ".join([line, *explained])
    return ""
