"""The page of all commands, from their parsers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pario.cli import GROUPS, build_parser

_WIDTH = "96"


def write_page() -> str:
    """Return the page in Markdown: a section for each command, with its own actions."""
    with _columns():
        parsers = _children(build_parser())
        lines = ["# Command line", "", "The help of all commands (`pario COMMAND --help`).", ""]
        for title, commands in GROUPS.items():
            lines += [f"## {title[0].upper()}{title[1:]}", ""]
            for name in commands:
                lines += _describe(f"pario {name}", parsers[name], "###")
        return "\n".join(lines)


def _describe(name: str, parser: argparse.ArgumentParser, level: str) -> Iterator[str]:
    yield from [f"{level} {name}", "", "```text", parser.format_help().rstrip(), "```", ""]
    for action, child in _children(parser).items():
        yield from _describe(f"{name} {action}", child, level + "#")


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


@contextmanager
def _columns() -> Iterator[None]:
    """Set the width of help, which is otherwise that of the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
