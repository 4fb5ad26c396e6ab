"""The subjects of commits: ``module: imperative verb and object``, at most 65 characters."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.prose.rules import Finding

SINCE = "2026-11-24T03:10Z"
LENGTH = 65
_SUBJECT = re.compile(r"[\w./*-]+(?:, [\w./*-]+)*: (?P<verb>[a-z]+)\b(?! :)")
_NO_VERBS = frozenset(
    "a all an and each every for if in no of one on that the what who with".split()
)
_VERBS = frozenset(
    "embed exceed feed need proceed seed shed speed succeed bring ring string".split()
)


def find_bad_subjects(root: Path) -> Iterator[Finding]:
    """Yield the commits since ``SINCE`` with other subjects; none where there is no history."""
    listed = subprocess.run(
        ["git", "log", "--no-merges", f"--since={SINCE}", "--format=%h %s"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in listed.stdout.splitlines() if listed.returncode == 0 else []:
        commit, _, subject = line.partition(" ")
        if problem := check_subject(subject):
            yield Finding(commit, 1, f"{problem}: {subject}")


def check_subject(subject: str) -> str | None:
    """Return the error of a subject, or None."""
    if len(subject) > LENGTH:
        return f"{len(subject)} characters; at most {LENGTH}"
    found = _SUBJECT.match(subject)
    if not found:
        return "not of the form 'module: verb and object'"
    verb = found["verb"]
    inflected = verb.endswith(("ed", "ing")) or re.search(r"[^s]s$", verb)
    if verb in _NO_VERBS or (inflected and verb not in _VERBS):
        return f"'{verb}' is not an imperative"
    return None
