"""List the members of an archive that pario pack has made, and verify its index.

Only the index and the tables of the shards are read. Exit status 1: members may not be where the
index says, because a shard is missing, was cut off or is another one.
"""

from __future__ import annotations

import argparse
import stat
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.paths import path_text
from pario.cli.progress import shown

if TYPE_CHECKING:
    from pario.archive import Archive

HELP = "list what pario pack has packed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario ls``."""
    parser.add_argument(
        "pack",
        type=path_text,
        metavar="PACK",
        help="a directory that pario pack has made",
    )
    parser.add_argument("patterns", nargs="*", metavar="GLOB", help="members that match one of these; * also stands for /")
    parser.add_argument("-l", "--long", action="store_true", help="with permissions, size, time and shard")


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each member, by names, and on standard error what was verified."""
    from pario.archive import Archive, Member

    def line(member: Member) -> str:
        name = wording.printable(member.name)
        if not arguments.long:
            return name
        kind = "h" + stat.filemode(member.mode)[1:] if member.is_hard_link else stat.filemode(member.mode)
        when = wording.moment(member.modified_ns / 1e9)
        return f"{kind}  {member.size:>12}  {when}  {member.shard:05d}  {name}"

    with shown(arguments.pack):
        archive = Archive(arguments.pack)
        archive.verify_index()
        for member in archive:
            patterns = arguments.patterns
            if not patterns or any(fnmatchcase(member.name, pattern) for pattern in patterns):
                print(line(member))
        sys.stdout.flush()
    return _verify_places(archive, arguments.pack)


def _verify_places(archive: Archive, path: str) -> int:
    """Says whether the members lie within their shards."""
    whole = f"{wording.plural(len(archive), 'member')} in {wording.plural(archive.shards, 'shard')}"
    try:
        archive.verify_places()
    except OSError as error:
        reason = wording.printable(str(error.strerror or error))
        name = wording.printable(str(error.filename or path))
        print(f"{name}: not verified: {reason}", file=sys.stderr)
        return 1
    print(f"{wording.printable(path)}: {whole}, index verified", file=sys.stderr)
    return 0
