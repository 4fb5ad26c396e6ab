"""Copy files to a disk of this node, and back what is new or changed there. `pario run --stage` does both around a command.

`pario stage in SRC... --to DIR` copies what DIR has not; `pario stage out DIR` brings new and changed files back to where they came from.
Both verify what they write, never overwrite newer files, and go on where they were interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.paths import path_text
from pario.cli.progress import shown
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.staging import Outcome

HELP = "copy files to a disk of this node, and changes back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario stage``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="in|out")
    copy_in = actions.add_parser("in", help="copy files and directories to here", allow_abbrev=False)
    copy_in.add_argument(
        "sources",
        nargs="+",
        type=path_text,
        metavar="SRC",
        help="files and directories",
    )
    copy_in.add_argument(
        "--to",
        required=True,
        type=path_text,
        metavar="DIR",
        help="directory on this node; SRC becomes DIR/SRC's last part",
    )
    copy_out = actions.add_parser("out", help="bring new and changed files back", allow_abbrev=False)
    copy_out.add_argument(
        "directory",
        type=path_text,
        metavar="DIR",
        help="what `pario stage in` was given, or `pario run --stage` has left",
    )
    copy_out.add_argument("--remove", action="store_true", help="remove DIR when all of it is where it belongs")


def run(arguments: argparse.Namespace) -> int:
    """Exit status 1: some files were left alone, each with its reason."""
    return _in(arguments) if arguments.action == "in" else _out(arguments)


def _in(arguments: argparse.Namespace) -> int:
    from pario.staging import Staged, in_use

    local = Path(arguments.to).absolute()
    sources = [Path(source).resolve() for source in arguments.sources]
    for source in sources:
        if not source.exists():
            raise ParioError(f"{source} does not exist")
        if local.is_relative_to(source):
            raise ParioError(f"{local} is within {source}")
    with in_use(local, lambda: Staged.make(local)) as (staged, is_alone), shown(arguments.to) as show:
        _require_alone(local, is_alone())
        for given, source in zip(arguments.sources, sources, strict=True):
            staged.add(_name_of(given) or source.name, source, read_only=True)
        return _say(staged.take_in(show), str(local))


def _name_of(given: str) -> str:
    """Its last part, also where that is a link; empty: it has none."""
    name = Path(given).name
    return "" if name == ".." else name


def _out(arguments: argparse.Namespace) -> int:
    from pario.staging import Staged, in_use

    local = Path(arguments.directory).absolute()
    if not local.is_dir():
        raise ParioError(f"{local} is no directory")
    with in_use(local, lambda: Staged.open(local)) as (staged, is_alone), shown(arguments.directory) as show:
        _require_alone(local, is_alone())
        outcome = staged.bring_back(show)
        if arguments.remove and not outcome.left:
            staged.remove()
        return _say(outcome, ", ".join(staged.roots.values()))


def _require_alone(local: Path, alone: bool) -> None:
    if not alone:
        raise ParioError(f"{local} is in use by another process")


def _say(outcome: Outcome, where: str) -> int:
    copied = f"{wording.plural(outcome.copied, 'file')} ({wording.size(outcome.size)}) copied"
    print(f"{wording.printable(where)}: {copied}, {wording.count(outcome.same)} were there", file=sys.stderr)
    for text in outcome.left:
        print(f"left alone: {wording.printable(text)}", file=sys.stderr)
    return 1 if outcome.left else 0
