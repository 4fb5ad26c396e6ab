"""The commands in the documentation are accepted by the parser of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from pario.cli import build_parser
from tests.support.pages import list_blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if not path.is_relative_to(ROOT / "docs/reference")  # made from the parser
)
#: Words in front of a command: a prompt, variables.
_PREFIX = r"(?:\$ |[A-Z_]+=\S+ )*"
#: Ends of a command: a remark, a pipe, a redirection or the next command.
_END = re.compile(r"\s+#|\s[|>&<]|;|&&|\s2>")
#: Marks of lines that are no commands, or stand for several.
_OTHERS = re.compile(r"--->|\.\.\.|\[-|\w\|\w|^\w+:")


def find_commands(text: str) -> Iterator[str]:
    """Yields the arguments of the pario commands in the code blocks of a page."""
    code = re.sub(r"\\\n\s*", " ", "\n".join(list_blocks(text)))
    for line in map(str.strip, code.splitlines()):
        found = re.match(rf"{_PREFIX}pario (.*)", line)
        if found and not _OTHERS.search(found[1]):
            yield _END.split(found[1])[0]


def test_commands_are_found_in_code_alone() -> None:
    page = (
        "Call pario run.\n\n    $ A=b pario run \\\n        -- x  # why\n    pario: no\n\n"
        "```\npario fs DIR | head\npario pack ...\n```\npario report\n"
    )
    assert [*find_commands(page)] == ["run  -- x", "fs DIR"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_parser_accepts_the_commands_of_a_page(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = build_parser()
    for command in find_commands(page.read_text(encoding="utf-8")):
        try:
            parser.parse_args(shlex.split(command))
        except SystemExit as end:
            assert not end.code, f"pario {command}\n{capsys.readouterr().err}"


def test_many_commands_are_checked() -> None:
    assert sum(1 for page in PAGES for _ in find_commands(page.read_text("utf-8"))) > 100
