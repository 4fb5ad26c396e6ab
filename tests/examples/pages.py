"""Extracts the code of documentation pages for tests."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"(?:^ {4}.*\n(?:^\n(?=^ {4}))*)+", re.MULTILINE)


def read_code(page: str) -> dict[str, list[str]]:
    """Returns the indented blocks of a page of docs/, in order, by the heading above them."""
    code: dict[str, list[str]] = {}
    for section in re.split(r"^#+ ", (DOCS / page).read_text(), flags=re.MULTILINE):
        heading, _, body = section.partition("\n")
        if blocks := _BLOCK.findall(body):
            code[heading] = [textwrap.dedent(block).rstrip() for block in blocks]
    return code
