"""Keys of settings and hints as text, and in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pario.settings import Key


def key_text(key: Key, values: str, note: str, margin: str) -> str:
    """The meaning of a key, its values, its default and its other names, in lines of 100 columns.
    ``note``: more about it."""
    also = f"; also {', '.join(key.aliases)}" if key.aliases else ""
    facts = f"{values}; default {key.default or 'none'}{also}{note}"
    return textwrap.fill(
        f"{key.meaning} ({facts})", 100, initial_indent=margin, subsequent_indent=margin
    )


def keys_in_markdown(title: str, rows: Iterable[tuple[Key, str, str]]) -> str:
    """A table of keys, with their values and notes. ``title``: that of the first column."""
    lines = [f"| {title} | value | default | other names | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{key.name}` | {values} | {key.default} | {', '.join(key.aliases)} |"
        f" {key.meaning}{note} |"
        for key, values, note in rows
    ]
    return "\n".join(lines)
