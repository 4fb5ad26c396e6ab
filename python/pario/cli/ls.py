"""List the members of what pario pack has made; only the index is read."""

from __future__ import annotations

import argparse
import stat
from fnmatch import fnmatchcase

from pario import wording
from pario.cli.paths import path_text
from pario.cli.progress import shown

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
    """Prints a line for each member, by names."""
    from pario.archive import Archive, Member

    def line(member: Member) -> str:
        name = wording.printable(member.name)
        if not arguments.long:
            return name
        kind = "h" + stat.filemode(member.mode)[1:] if member.is_hard_link else stat.filemode(member.mode)
        when = wording.moment(member.modified_ns / 1e9)
        return f"{kind}  {member.size:>12}  {when}  {member.shard:05d}  {name}"

    with shown(arguments.pack):
        for member in Archive(arguments.pack):
            if not arguments.patterns or any(fnmatchcase(member.name, pattern) for pattern in arguments.patterns):
                print(line(member))
    return 0
