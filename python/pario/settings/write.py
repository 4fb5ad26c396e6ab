"""Writes a settings file with the reason for each setting."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pario.settings.keys import names
from pario.wording import printable

WIDTH = 100


@dataclass(frozen=True)
class Line:
    """A setting; one that is not applied becomes a comment."""

    table: str
    key: str
    value: str
    applied: bool = True


@dataclass(frozen=True)
class Proposal:
    """Settings of the files that a pattern selects (of the run without one), and the reasons."""

    match: str
    lines: tuple[Line, ...]
    reasons: tuple[str, ...]


def write(head: Sequence[str], proposals: Sequence[Proposal]) -> str:
    """Return the text of a settings file."""
    blocks = [list(_comment(head)), *(list(_block(proposal)) for proposal in proposals)]
    return "\n".join("\n".join(block) + "\n" for block in blocks if block)


def _comment(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from (
            f"# {part}"
            for part in textwrap.wrap(
                printable(line), WIDTH - 2, break_on_hyphens=False, break_long_words=False
            )
        )


def _block(proposal: Proposal) -> Iterator[str]:
    """Yield the lines of a section; a section without applied lines is a comment."""
    mark = "" if any(line.applied for line in proposal.lines) else "# "
    yield from _comment(proposal.reasons)
    yield mark + ("[[file]]" if proposal.match else "[run]")
    if proposal.match:
        yield f"{mark}match = {_quote(proposal.match)}"
    for line in proposal.lines:
        name = f"{line.table}.{line.key}" if proposal.match else line.key
        yield f"{'' if line.applied else '# '}{name} = {_value(line)}"


def _value(line: Line) -> str:
    kind = names(line.table)[line.key].kind
    if kind == "flag":
        return "true" if line.value == "yes" else "false"
    return (
        line.value
        if line.value.isdigit() and kind in ("bytes", "count", "seconds")
        else _quote(line.value)
    )


def _quote(text: str) -> str:
    """Return a basic string of TOML; characters that are not UTF-8 or not printable become `*`."""
    escapes = {"\\": "\\\\", '"': '\\"'}
    return (
        '"'
        + "".join(
            escapes.get(c, c) if c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF else "*"
            for c in text
        )
        + '"'
    )
