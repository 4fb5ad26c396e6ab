"""Extracts the code of documentation pages for tests."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
#: Lines between fences, or indented lines with the empty lines between them.
_BLOCK = re.compile(
    r"^ *```.*\n(?P<fenced>(?:.*\n)*?) *```|(?P<indented>(?:^ {4}.*\n(?:^\n(?=^ {4}))*)+)",
    re.MULTILINE,
)


def list_blocks(text: str) -> list[str]:
    """Returns the blocks of code of a page, in order."""
    return [
        textwrap.dedent(block["fenced"] or block["indented"] or "").rstrip()
        for block in _BLOCK.finditer(text)
    ]


def read_code(page: str) -> dict[str, list[str]]:
    """Returns the blocks of a page of docs/, in order, by the heading above them."""
    code: dict[str, list[str]] = {}
    for section in re.split(r"^#+ ", (DOCS / page).read_text(), flags=re.MULTILINE):
        heading, _, body = section.partition("\n")
        if blocks := list_blocks(body):
            code[heading] = blocks
    return code
