"""The ``pario`` command: one module per subcommand, each with ``HELP``, ``add_arguments(parser)`` and ``run(arguments) -> int``.

Nothing heavy is imported before a subcommand runs: ``pario run`` must be off the user's way in a few dozen milliseconds.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from pario import wording
from pario.cli import (
    advise,
    bench,
    checkpoint,
    compare,
    export,
    fs,
    hints,
    join,
    lab,
    ls,
    merge,
    pack,
    records,
    replay,
    report,
    run,
    settings,
    stage,
    standard,
    stripe,
    tune,
    unpack,
    whatif,
)
from pario.cli.one_process import require_one_process
from pario.errors import ParioError
from pario.version import version

#: What keeps standard output from taking more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Command(Protocol):
    """What a subcommand's module offers."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Does the work; returns the exit status."""


COMMANDS: dict[str, Command] = {
    "run": run,
    "report": report,
    "advise": advise,
    "compare": compare,
    "export": export,
    "settings": settings,
    "hints": hints,
    "join": join,
    "fs": fs,
    "stripe": stripe,
    "pack": pack,
    "unpack": unpack,
    "ls": ls,
    "stage": stage,
    "merge": merge,
    "records": records,
    "checkpoint": checkpoint,
    "bench": bench,
    "whatif": whatif,
    "replay": replay,
    "tune": tune,
    "lab": lab,
}


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="pario", description="See why a program's I/O is slow.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"pario {version()}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        sub = subparsers.add_parser(name, help=module.HELP, description=module.__doc__, allow_abbrev=False)
        module.add_arguments(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand; returns the exit status (2: the user can put it right)."""
    standard.prepare()
    parsed = build_parser().parse_args(arguments)
    try:
        require_one_process(" ".join(filter(None, (parsed.command, getattr(parsed, "action", "")))), os.environ)
        status = COMMANDS[parsed.command].run(parsed)
        sys.stdout.flush()
        return status
    except ParioError as error:
        print(f"pario {parsed.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `pario report ... | head`
        standard.silence_output()
        return 0
    except OSError as error:
        if error.filename is not None:
            reason = f"{_name_of(error)}: {error.strerror}"
            print(f"pario {parsed.command}: {reason}", file=sys.stderr)
            return 2
        if error.errno not in FULL:
            raise
        standard.silence_output()
        print(f"pario {parsed.command}: standard output: {error.strerror}", file=sys.stderr)
        return 2


def _name_of(error: OSError) -> str:
    """The file that an error is about; a call on a descriptor has its number."""
    name = error.filename
    return str(name) if isinstance(name, int) else wording.printable(os.fsdecode(name))
