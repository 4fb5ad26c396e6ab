"""Unpack what pario pack has packed: all of it, or some members. A directory that was spread over subdirectories becomes flat again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.numbers import positive, size
from pario.cli.paths import path_text
from pario.cli.progress import shown
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.archive import Archive

HELP = "unpack what pario pack has made, or single members of it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario unpack``."""
    parser.add_argument(
        "pack",
        type=path_text,
        metavar="PACK",
        help="a directory that pario pack has made",
    )
    parser.add_argument("members", nargs="*", metavar="MEMBER", help="names as pario ls shows them; of directories, all that is beneath")
    parser.add_argument(
        "-o",
        "--output",
        type=path_text,
        metavar="DIR",
        help="new directory for the members (default: the name of the pack without .pack)",
    )
    parser.add_argument("--stdout", action="store_true", help="write the bytes of the members, which are files, to standard output")
    parser.add_argument(
        "--strict", action="store_true", help="fail where owners, attributes or devices cannot be had, instead of saying so"
    )
    parser.add_argument(
        "--no-same-permissions",
        action="store_false",
        dest="same_permissions",
        help="apply the umask; no set-user-ID bits, access control lists and capabilities",
    )
    parser.add_argument(
        "--no-special",
        action="store_false",
        dest="special",
        help="leave devices and pipes out",
    )
    parser.add_argument(
        "--max-size",
        type=size,
        metavar="SIZE",
        help="refuse an archive whose files have more bytes in all, holes among them",
    )
    parser.add_argument("--threads", type=positive, default=0, metavar="N", help="default: one for each processor")


def run(arguments: argparse.Namespace) -> int:
    """Unpacks, or gathers. Exit status 1: members had to go without something, which is said."""
    from pario.archive import Archive
    from pario.archive.subdirs import read_note

    if read_note(Path(arguments.pack)):
        return _gather(arguments)
    with shown(arguments.pack) as show:
        archive = Archive(arguments.pack)
        if arguments.stdout:
            return _print(archive, arguments.members)
        output = arguments.output or _output_of(arguments.pack)
        done = archive.unpack(
            output,
            arguments.members,
            workers=arguments.threads,
            strict=arguments.strict,
            same_permissions=arguments.same_permissions,
            special=arguments.special,
            max_size=arguments.max_size,
            show=show,
        )
    members = wording.plural(done.members, "member")
    left = wording.plural(done.left_out, "device or pipe", "devices and pipes")
    more = f"; {left} left out" if done.left_out else ""
    print(f"{wording.printable(output)}: {members}{more}", file=sys.stderr)
    for loss in done.losses:
        print(f"lost: {loss.what} of {wording.plural(loss.members, 'member')}; the first: {wording.printable(loss.first)}", file=sys.stderr)
    return 1 if done.losses else 0


def _output_of(pack: str) -> str:
    path = Path(pack).absolute()
    if path.suffix != ".pack":
        raise ParioError(f"{pack}: say with -o where its members are to go")
    return str(path.with_suffix(""))


def _print(archive: Archive, members: list[str]) -> int:
    if not members:
        raise ParioError("--stdout is for members; say which")
    archive.verify_index()
    for name in members:
        for piece in archive.chunks(name):
            sys.stdout.buffer.write(piece)
    sys.stdout.flush()
    return 0


def _gather(arguments: argparse.Namespace) -> int:
    from pario.archive.subdirs import gather

    if arguments.members or arguments.output or arguments.stdout:
        raise ParioError(f"{arguments.pack} is spread over subdirectories: it is taken back as a whole and in place")
    with shown(arguments.pack) as show:
        moved = gather(Path(arguments.pack), show)
    print(f"{wording.printable(arguments.pack)}: {wording.plural(moved, 'file')}", file=sys.stderr)
    return 0
