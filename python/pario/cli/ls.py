"""List the members of an archive of pario pack, and verify its index.

Only the index and the tables of the shards are read. Exit status 1: a shard is missing, truncated
or belongs to another archive.
"""

from __future__ import annotations

import argparse
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_pack
from pario.cli.paths import require_archive
from pario.cli.standard import until_reader_ends
from pario.messages import print_note
from pario.progress import show_progress

if TYPE_CHECKING:
    from pario.move.archive import Archive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario ls``."""
    add_pack(parser)
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="GLOB",
        help="members that match one of these; * also stands for /",
    )
    parser.add_argument(
        "-l", "--long", action="store_true", help="with permissions, size, time and shard"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints a line per member, sorted by name, and the result of the verification on standard
    error."""
    from pario.move.archive import Archive, Member

    def line(member: Member) -> str:
        name = wording.printable(member.name)
        if not arguments.long:
            return name
        kind = (
            "h" + stat.filemode(member.mode)[1:]
            if member.is_hard_link
            else stat.filemode(member.mode)
        )
        when = wording.moment(member.modified_ns / 1e9)
        return f"{kind}  {member.size:>12}  {when}  {member.shard:05d}  {name}"

    require_archive(arguments.pack)
    with show_progress(arguments.pack):
        archive = Archive(arguments.pack)
        archive.verify_index()
        patterns = arguments.patterns
        with until_reader_ends():
            for member in archive:
                if not patterns or any(fnmatchcase(member.name, pattern) for pattern in patterns):
                    print(line(member))
    return _verify_places(archive, arguments.pack)


def _verify_places(archive: Archive, path: str) -> int:
    """Verifies that the members lie within their shards; returns the exit status."""
    whole = f"{wording.plural(len(archive), 'member')} in {wording.plural(archive.shards, 'shard')}"
    try:
        archive.verify_places()
    except OSError as error:
        print_note(f"{error.filename or path}: not verified: {error.strerror or error}")
        return 1
    print_note(f"{path}: {whole}, index verified")
    return 0
