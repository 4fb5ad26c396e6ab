"""Unpack an archive of pario pack, or some of its members. A directory that pario pack --subdirs
spread over subdirectories becomes flat again."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_archive_work, add_flag, add_output, add_pack
from pario.cli.numbers import size
from pario.cli.paths import path_text, require_archive, require_directory
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import show_progress

if TYPE_CHECKING:
    from pario.move.rsync import HostPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario unpack``."""
    add_pack(parser, remote=True)
    parser.add_argument(
        "members",
        nargs="*",
        metavar="MEMBER",
        help="names as in pario ls; a directory stands for all members below it",
    )
    text = "new directory for the members (default: the name of the pack without .pack)"
    add_output(parser, "DIR", text, path_text)
    add_flag(
        parser, "--stdout", "write the bytes of the members, regular files, to standard output"
    )
    add_flag(
        parser,
        "--strict",
        "fail, instead of warning, if owners, attributes or devices cannot be restored",
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
        help="reject an archive whose files have more bytes in total, holes included",
    )
    add_archive_work(parser)


def run(arguments: argparse.Namespace) -> int:
    """Unpacks the archive or gathers a spread directory. Exit status 1: members lost attributes."""
    from pario.move.archive.subdirs import read_note
    from pario.move.rsync import host_path

    pack = arguments.pack
    source = host_path(pack)
    if source and not os.path.lexists(pack):
        return _fetch(source, arguments)
    require_directory(pack, "a directory written by pario pack")
    if read_note(Path(pack)):
        return _gather(arguments)
    require_archive(pack)
    if arguments.stdout:
        return _print(pack, arguments.members)
    return _unpack(pack, arguments.output or _output_of(pack), arguments)


def _fetch(source: HostPath, arguments: argparse.Namespace) -> int:
    """Unpacks an archive of another host."""
    from pario.move.archive.remote import fetch

    if arguments.stdout:
        raise ParioError(f"{source} is on another host; expected no --stdout")
    output = arguments.output or _output_of(source.name, str(source))
    with fetch(source, output, arguments.transfers) as copy:
        return _unpack(str(copy), output, arguments)


def _unpack(pack: str, output: str, arguments: argparse.Namespace) -> int:
    """Exit status 1: members lost attributes, or have no shard."""
    from pario.move.archive import Archive

    with show_progress(output) as show:
        done = Archive(pack).unpack(
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
    print_note(f"{output}: {members}{more}")
    for loss in done.losses:
        print_note(
            f"lost: {loss.what} of {wording.plural(loss.members, 'member')}; the first:"
            f" {loss.first}"
        )
    return 1 if done.losses else 0


def _output_of(pack: str, title: str = "") -> str:
    """The default output: the archive's name without .pack. ``title``: its name in errors."""
    path = Path(pack).absolute()
    if path.suffix != ".pack":
        raise ParioError(
            f"{title or pack}: does not end with .pack, so that the output has no default name;"
            " expected -o DIR"
        )
    return str(path.with_suffix(""))


def _print(pack: str, members: list[str]) -> int:
    from pario.move.archive import Archive

    if not members:
        raise ParioError("--stdout writes members; expected their names")
    with show_progress(pack):
        archive = Archive(pack)
        archive.verify_index()
        for name in members:
            for piece in archive.chunks(name):
                sys.stdout.buffer.write(piece)
    sys.stdout.flush()
    return 0


def _gather(arguments: argparse.Namespace) -> int:
    from pario.move.archive.subdirs import gather

    if arguments.members or arguments.output or arguments.stdout:
        raise ParioError(
            f"{arguments.pack} is spread over subdirectories; expected no members and no output,"
            " because it is gathered as a whole and in place"
        )
    with show_progress(arguments.pack) as show:
        moved = gather(Path(arguments.pack), show)
    print_note(f"{arguments.pack}: {wording.plural(moved, 'file')}")
    return 0
