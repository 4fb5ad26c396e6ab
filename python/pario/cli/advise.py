"""Write a settings file that repairs what a recorded run lost, the program as it is.

Each setting stands with the finding, its evidence and its seconds. Use it with: pario run --with pario.toml -- COMMAND
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.paths import path
from pario.cli.progress import progress
from pario.errors import ParioError
from pario.publishing import replacing
from pario.settings.keys import RISKY

if TYPE_CHECKING:
    from pario.analyze.advise import Advice
    from pario.analyze.model import Finding

MOST_FINDINGS, WIDTH = 5, 110  # of a kind, that are told; columns
HELP = "write the settings that repair what a run lost"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario advise``."""
    parser.add_argument(
        "logs",
        nargs="*",
        type=path,
        metavar="LOG",
        help="run.pario, or .darshan files of one job",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path,
        metavar="FILE",
        help="write the settings file here (default: standard output)",
    )
    add_allow(parser, "apply risky settings, too; otherwise they are written as comments")


def add_allow(parser: argparse.ArgumentParser, meaning: str) -> None:
    """``--allow``, with the keys of risky settings or without."""
    parser.add_argument("--allow", nargs="?", const="all", default="", metavar="KEY,...", help=f"{meaning} (keys: all, {', '.join(RISKY)})")


def allowed(said: str) -> tuple[tuple[str, ...], list[str]]:
    """The keys that were given after ``--allow``; and, where these are none, the word that stands there: it is the command's next."""
    keys = tuple(said.split(","))
    if not said or all(key in (*RISKY, "all") for key in keys):
        return keys if said else (), []
    return ("all",), [said]


def run(arguments: argparse.Namespace) -> int:
    """Writes the file, and says on standard error what it repairs."""
    from pario.analyze import analyze
    from pario.analyze.advise import advise, render
    from pario.tables import read

    keys, words = allowed(arguments.allow)
    logs = [*map(Path, words), *arguments.logs]
    if not logs:
        raise ParioError("no log given; expected: pario advise LOG")
    with progress("pario: reading the logs"):
        analysis = analyze(read(logs))
    advice = advise(analysis, keys)
    text = render(analysis, advice)
    hand_out(text, arguments.output, told(advice))
    return 0


def hand_out(text: str, path: Path | None, remarks: Iterable[str]) -> None:
    """Settings to a file, else to standard output; remarks to standard error. Raises ParioError naming the file."""
    if path is None:
        sys.stdout.write(text)
    else:
        write_settings(path, text)
    for line in remarks:
        print(line, file=sys.stderr)


def expect_room_for(path: Path | None) -> None:
    """Before much is done for it: raises ParioError where a file cannot be made there."""
    if path is not None and (path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK)):
        raise ParioError(f"cannot write {path}: expected the name of a file in a directory that is there and may be written")


def write_settings(path: Path, text: str) -> None:
    """Writes a settings file. Raises ParioError naming it."""
    try:
        if path.exists() and not path.is_file():  # a terminal or a pipe
            path.write_text(text, encoding="utf-8")
            return
        with replacing(path.resolve(), "settings") as file:
            file.write(text.encode())
    except OSError as error:
        raise ParioError(f"cannot write {path}: {error.strerror}") from error


def told(advice: Advice) -> Iterator[str]:
    """What the settings are for, and what they are not for, in lines."""
    from pario.analyze.advise import unrepaired

    yield summary(advice)
    for finding in (*advice.repaired[:MOST_FINDINGS], *advice.held_back[:MOST_FINDINGS]):
        yield from _lines(finding, dict.fromkeys(_effects(finding, advice)))
    for finding in advice.left[:MOST_FINDINGS]:
        yield from _lines(finding, unrepaired(finding))


def _lines(finding: Finding, texts: Iterable[str]) -> Iterator[str]:
    yield f"  {wording.seconds(finding.seconds)}  {wording.printable(finding.title)}"
    for text in texts:
        yield from textwrap.wrap(wording.printable(text), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8)


def _effects(finding: Finding, advice: Advice) -> Iterator[str]:
    """Of the settings that are applied, and of those that would be if they were allowed."""
    from pario.analyze.advise import applies

    for setting in finding.settings:
        effect = f"{setting.effect[:1].upper()}{setting.effect[1:]}."
        yield effect if applies(setting, advice.allowed) else f"Only with --allow {setting.key}: {setting.effect}."


def summary(advice: Advice) -> str:
    """What the settings are for, in a line."""
    total = len(advice.repaired) + len(advice.held_back) + len(advice.left)
    if not total:
        return "pario: no findings: there is nothing to set"
    worth = sum(finding.seconds for finding in advice.repaired)
    text = f"pario: settings for {len(advice.repaired)} of {wording.plural(total, 'finding')}"
    return f"{text}, worth up to {wording.seconds(worth)}" if advice.repaired else text
