"""Copy files to a disk of this node, and new and changed files back. `pario run --stage` does both
around a command.

`pario stage in SRC... --to DIR` copies files missing in DIR; `pario stage out DIR` copies new and
changed files back to their origin. Both verify their writes, never overwrite newer files, and
continue after an interruption.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_flag
from pario.cli.paths import path_text, require_directory, require_path
from pario.errors import ParioError
from pario.messages import print_note
from pario.paths import kind_of, resolve
from pario.progress import show_progress

if TYPE_CHECKING:
    from pario.move.staging import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario stage``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="in|out")
    copy_in = actions.add_parser(
        "in", help="copy files and directories to here", allow_abbrev=False
    )
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
    copy_out = actions.add_parser(
        "out", help="bring new and changed files back", allow_abbrev=False
    )
    copy_out.add_argument(
        "directory",
        type=path_text,
        metavar="DIR",
        help="the directory given to `pario stage in`, or left by `pario run --stage`",
    )
    add_flag(copy_out, "--remove", "remove the staged files after all were copied back")


def run(arguments: argparse.Namespace) -> int:
    """Copies in or out. Exit status 1: some files were not copied, each with its reason."""
    return _in(arguments) if arguments.action == "in" else _out(arguments)


def _in(arguments: argparse.Namespace) -> int:
    from pario.move.staging import Staged, in_use

    local = resolve(arguments.to)
    sources = [resolve(source) for source in arguments.sources]
    for source in sources:
        require_path(source, "a file or directory to copy")
        if not (source.is_file() or source.is_dir()):
            kind = kind_of(source.stat().st_mode)
            raise ParioError(f"{source} is {kind}; expected a file or directory to copy")
        if local.is_relative_to(source):
            raise ParioError(f"{local} is within {source}")
    with (
        in_use(local, lambda: Staged.make(local)) as (staged, is_alone),
        show_progress(arguments.to) as show,
    ):
        _require_alone(local, is_alone())
        for given, source in zip(arguments.sources, sources, strict=True):
            staged.add(_name_of(given) or source.name, source, read_only=True)
        return _say(staged.take_in(show), str(local))


def _name_of(given: str) -> str:
    """The last part of a path, even if it is a link; empty if it has none."""
    name = Path(given).name
    return "" if name == ".." else name


def _out(arguments: argparse.Namespace) -> int:
    from pario.move.staging import Staged, in_use

    local = Path(arguments.directory).absolute()
    require_directory(local, "a directory filled by pario stage in")
    with (
        in_use(local, lambda: Staged.open(local)) as (staged, is_alone),
        show_progress(arguments.directory) as show,
    ):
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
    print_note(f"{where}: {copied}, {wording.count(outcome.same)} were there")
    for text in outcome.special:
        print_note(f"not copied: {text}")
    for text in outcome.left:
        print_note(f"left alone: {text}")
    return 1 if outcome.left else 0
