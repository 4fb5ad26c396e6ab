"""Write a settings file that repairs the findings of a recorded run without changing the program.

Each setting follows its finding, the evidence and the seconds. Replays of the recorded calls
measure the settings first; those that do not pay are left out. Use it with: pario run --with
pario.toml -- COMMAND
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_logs, add_output
from pario.cli.measured import ALLOW, add_measure, advise_by_replays
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import progress
from pario.publishing import write_text

if TYPE_CHECKING:
    from pario.see.analyze.advise import Advice
    from pario.see.analyze.model import Finding

MOST_FINDINGS, WIDTH = 5, 110  # findings of a kind that are printed; columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario advise``."""
    add_logs(parser, nargs="*")
    add_output(parser, "FILE", "write the settings file here (default: standard output)")
    add_measure(parser)
    parser.add_argument(
        "--allow",
        help=(
            "apply risky settings, too; otherwise they are written as comments (all, or keys that"
            " `pario settings reference` marks as risky)"
        ),
        **ALLOW,
    )


def parse_allowed(
    keys_text: str, following: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[str]]:
    """Return the keys after ``--allow``. Another word there is the first one of the command: return
    ``all`` and that word. Raises ParioError if the command begins ``following`` it, after ``--``.
    """
    if not keys_text:
        return (), []
    from pario.settings.keys import risky_keys

    keys, known = tuple(keys_text.split(",")), risky_keys()
    if {*keys} <= {*known, "all"}:
        return keys, []
    if [*following[:1]] == ["--"]:
        raise ParioError(f"--allow: {keys_text!r}; expected all, or some of {', '.join(known)}")
    return ("all",), [keys_text]


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and print its repairs on standard error."""
    from pario.prove.replay.perform import expect_scratch
    from pario.see.analyze import analyze
    from pario.see.analyze.advise import render
    from pario.see.tables import read

    keys, words = parse_allowed(arguments.allow)
    logs = [*map(Path, words), *arguments.logs]
    if not logs:
        raise ParioError("no log given; expected: pario advise LOG")
    if arguments.on and arguments.measure:
        expect_scratch(arguments.on)
    expect_writable(arguments.output)
    with progress("pario: reading the logs"):
        job = read(logs)
        analysis = analyze(job)
    advice, lines = advise_by_replays(
        job, analysis, keys, arguments.measure, arguments.on, arguments.mpiexec
    )
    text = render(analysis, advice, lines)
    hand_out(text, arguments.output, [*lines, *describe(advice)])
    return 0


def hand_out(text: str, path: Path | None, remarks: Iterable[str]) -> None:
    """Write settings to a file, or to standard output, and remarks to standard error. Raises
    ParioError naming the file."""
    if path is None:
        sys.stdout.write(text)
    else:
        write_text(path, text)
    for line in remarks:
        print_note(line)


def expect_writable(path: Path | None) -> None:
    """Check before long work that a file can be created. Raises ParioError naming it."""
    if path is not None and (
        path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK)
    ):
        raise ParioError(
            f"cannot write {path}: expected the name of a file in an existing directory that may be"
            " written"
        )


def describe(advice: Advice) -> Iterator[str]:
    """Yield the findings that the settings repair, and the others, in lines."""
    from pario.see.analyze.advise import explain_unrepaired

    yield summary(advice)
    for finding in advice.repaired[:MOST_FINDINGS]:
        yield from _lines(finding, dict.fromkeys(_effects(finding, advice)))
    for finding in advice.held_back[:MOST_FINDINGS]:
        yield from _lines(finding, dict.fromkeys(_effects(finding, advice)), held_back=True)
    for finding in advice.left[:MOST_FINDINGS]:
        yield from _lines(finding, explain_unrepaired(finding))


def _lines(finding: Finding, texts: Iterable[str], *, held_back: bool = False) -> Iterator[str]:
    """Yield the lines of a finding. Its seconds are those that a change of the program saves; a
    setting that was held back, and thus not measured, saves at most as many."""
    kind = "" if finding.measured else " (estimate)"
    worth = wording.seconds(finding.seconds)
    if held_back:
        worth = f"at most {wording.seconds(max(finding.most, finding.seconds))}"
    elif finding.most and not finding.measured:
        worth = wording.seconds_range(finding.least, finding.most)
    yield f"  {worth}{kind}  {wording.printable(finding.title)}"
    for text in texts:
        yield from textwrap.wrap(
            wording.printable(text), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8
        )


def _effects(finding: Finding, advice: Advice) -> Iterator[str]:
    """Yield the effects of the applied settings, and of those that need ``--allow``."""
    from pario.see.analyze.advise import applies

    for setting in finding.settings:
        effect = f"{setting.effect[:1].upper()}{setting.effect[1:]}."
        yield (
            effect
            if applies(setting, advice.allowed)
            else f"Only with --allow {setting.key}, which measures it: {setting.effect}."
        )


def summary(advice: Advice) -> str:
    """Return a line about the settings and their findings."""
    total = len(advice.repaired) + len(advice.held_back) + len(advice.left)
    if not total and not advice.acts:
        return "pario: no findings: there is nothing to set"
    if not advice.repaired and advice.acts:
        from pario.see.analyze.advise import is_served

        if served := sum(map(is_served, advice.left)):
            return (
                "pario: the settings were chosen by replays; they serve"
                f" {served} of {wording.plural(total, 'finding')}"
            )
        return "pario: the settings were chosen by replays; no finding proposes them"
    worth = sum(finding.seconds for finding in advice.repaired)
    text = f"pario: settings for {len(advice.repaired)} of {wording.plural(total, 'finding')}"
    if not advice.repaired:
        return text
    measured = all(finding.measured for finding in advice.repaired)
    return f"{text}, worth {wording.seconds(worth)} {'as measured' if measured else '(estimate)'}"
