"""Writes a settings file that people read: each setting with the reason for it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pario.settings.keys import names
from pario.wording import printable

WIDTH = 100


@dataclass(frozen=True)
class Line:
    """One setting; one that is not applied becomes a comment, for the user to switch on."""

    table: str
    key: str
    value: str
    applied: bool = True


@dataclass(frozen=True)
class Proposal:
    """Settings of the files that a pattern means (of the whole run where there is none), and why."""

    match: str
    lines: tuple[Line, ...]
    reasons: tuple[str, ...]


def write(head: Sequence[str], proposals: Sequence[Proposal]) -> str:
    """The text of a settings file."""
    blocks = [list(_comment(head)), *(list(_block(proposal)) for proposal in proposals)]
    return "\n".join("\n".join(block) + "\n" for block in blocks if block)


def _comment(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from (f"# {part}" for part in textwrap.wrap(printable(line), WIDTH - 2, break_on_hyphens=False, break_long_words=False))


def _block(proposal: Proposal) -> Iterator[str]:
    """A section of which no line is applied is a comment as a whole."""
    mark = "" if any(line.applied for line in proposal.lines) else "# "
    yield from _comment(proposal.reasons)
    yield mark + ("[[file]]" if proposal.match else "[run]")
    if proposal.match:
        yield f"{mark}match = {_quoted(proposal.match)}"
    for line in proposal.lines:
        name = f"{line.table}.{line.key}" if proposal.match else line.key
        yield f"{'' if line.applied else '# '}{name} = {_value(line)}"


def _value(line: Line) -> str:
    kind = names(line.table)[line.key].kind
    if kind == "flag":
        return "true" if line.value == "yes" else "false"
    return line.value if line.value.isdigit() and kind in ("bytes", "count", "seconds") else _quoted(line.value)


def _quoted(text: str) -> str:
    """A basic string of TOML; what is no UTF-8 or cannot be printed becomes a pattern's *."""
    escapes = {"\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escapes.get(c, c) if c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF else "*" for c in text) + '"'
