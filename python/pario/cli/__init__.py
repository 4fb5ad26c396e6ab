"""The ``pario`` command: one module per subcommand, each with ``add_arguments(parser)`` and
``run(arguments) -> int``; its docstring is the description of the command.

Only the module of the given command is imported, and nothing heavy before it runs, because ``pario
run`` must start a program within a few dozen milliseconds.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NoReturn, Protocol, cast

from pario import wording
from pario.cli import standard
from pario.cli.one_process import require_one_process
from pario.errors import ParioError
from pario.version import version

#: Errors of a standard output that accepts no more bytes.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


_START = (
    ("pario run -- ./app", "run a program and report its I/O"),
    ("pario report run.pario", "show the report of a recorded run"),
    ("pario run --fix -- ./app", "repair the I/O by settings, run again, compare"),
)
#: The commands and their summaries, by component.
GROUPS: dict[str, dict[str, str]] = {
    "see (observe a run)": {
        "run": "run a program and report its I/O; --fix repairs it",
        "report": "report on a recorded run or on Darshan logs",
        "survey": "list many runs by the seconds that they lose",
        "export": "export a recorded run to Perfetto, Parquet or JSON",
    },
    "fix (change settings and files)": {
        "advise": "write settings that repair the findings of a run",
        "stripe": "show, set, advise and change the stripes of files",
        "fs": "describe the file system of a path",
    },
    "prove (measure and predict)": {
        "compare": "compare two runs, and judge the noise",
        "replay": "perform the recorded I/O of a run without the program",
        "tune": "find faster settings for the recorded I/O of a run",
        "whatif": "predict a run on another machine, other stripes, more ranks",
        "bench": "compare ways of doing I/O on a file system",
        "lab": "mount a striped file system for experiments",
    },
    "move (pack, stage and join files)": {
        "pack": "pack many files into few shards, or into subdirectories",
        "unpack": "unpack an archive of pario pack, or some of its members",
        "ls": "list and verify an archive of pario pack",
        "stage": "copy files to a disk of this node, and changes back",
        "merge": "merge one file of each process into one file",
        "join": "join the subfiles of a file into a single file",
    },
    "checkpoints and records": {
        "checkpoint": "list, show, verify, compare, merge and remove checkpoints",
        "records": "index, pack, shuffle and read files of many records",
    },
    "settings and installation": {
        "settings": "explain the settings of a file, or list all settings",
        "hints": "list the hints of pario's MPI-IO",
        "mcp": "serve pario's tools to agents (Model Context Protocol)",
        "doctor": "explain this installation and the machine's limits",
    },
}
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}


class Command(Protocol):
    """The module of a subcommand."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Executes the command; returns the exit status."""


def module_of(command: str) -> Command:
    """Imports the module of a command."""
    return cast(Command, import_module(f"pario.cli.{command}"))


class _Parser(argparse.ArgumentParser):
    """The parser of the whole command line, whose help shows the commands by component."""

    def format_help(self) -> str:
        sections = [("start here", dict(_START)), *GROUPS.items()]
        lines = [self.format_usage(), f"{self.description}\n"]
        for title, entries in sections:
            width = max(map(len, entries)) if title == "start here" else 10
            lines += [
                f"{title}:",
                *(f"  {name:<{width}}  {text}" for name, text in entries.items()),
            ]
            lines.append("")
        return "\n".join([*lines, "pario COMMAND --help describes a command.", ""])


class _CommandParser(argparse.ArgumentParser):
    """The parser of a command or of its action, which reports unknown arguments itself, after its
    own usage."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        words = sys.argv[1:] if args is None else list(args)
        literal = words[words.index("--") + 1 :] if "--" in words else []
        unknown = self._take_words_behind_options(found, unknown, literal)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(map(wording.printable, unknown))}")
        return found, unknown

    def _take_words_behind_options(
        self, found: argparse.Namespace, unknown: list[str], literal: list[str]
    ) -> list[str]:
        """Adds words to an argument of any number of them, which argparse ends at an option, and
        returns the others. ``literal``: the words behind ``--``, which are no options."""
        several = [one for one in self._get_positional_actions() if one.nargs == "*"]
        unknown = [word for word in unknown if word != "--"]
        if len(several) != 1 or any(
            word.startswith("-") and word not in literal for word in unknown
        ):
            return unknown
        (action,) = several
        try:
            words = [self._get_value(action, word) for word in unknown]
        except argparse.ArgumentError as error:
            self.error(str(error))
        setattr(found, action.dest, [*(getattr(found, action.dest) or []), *words])
        return []


def build_parser(commands: Iterable[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser of the command line with these commands, whose modules are imported."""
    parser = _Parser(
        prog="pario",
        description=(
            "See why a program's I/O is slow, fix it without changing the program, prove it."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pario {version()}")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_CommandParser
    )
    for name in commands:
        module = module_of(name)
        module.add_arguments(
            subparsers.add_parser(
                name, help=COMMANDS[name], description=module.__doc__, allow_abbrev=False
            )
        )
    return parser


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line with the parser of its command alone."""
    name = arguments[0] if arguments else ""
    parser = build_parser([name] if name in COMMANDS else ())
    if not name:
        print(parser.format_help(), end="", file=sys.stderr)
        raise SystemExit(2)
    if name not in COMMANDS and not name.startswith("-"):
        _reject(parser, name)
    return parser.parse_args(arguments)


def _reject(parser: argparse.ArgumentParser, name: str) -> NoReturn:
    similar = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {similar[0]}?" if similar else "pario --help lists the commands"
    parser.error(f"unknown command {wording.printable(name)}: {hint}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit status (2: an error that the user can correct)."""
    standard.prepare()
    words = sys.argv[1:] if arguments is None else arguments
    command = words[0] if words and words[0] in COMMANDS else ""
    try:
        parsed = _parse(words)
        require_one_process(
            " ".join(filter(None, (parsed.command, getattr(parsed, "action", "")))), os.environ
        )
        status = module_of(parsed.command).run(parsed)
        with standard.until_reader_ends():
            return status
    except ParioError as error:
        print(f"pario {command}: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        if not _is_incomplete(error):
            raise
        print(f"pario {command}: {error} (pario doctor explains it)", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{' '.join(filter(None, ('pario', command)))}: interrupted", file=sys.stderr)
        return wording.INTERRUPTED
    except BrokenPipeError:  # the command had more to print, and has no status yet
        standard.silence_output()
        return 0
    except OSError as error:
        if error.filename is not None:
            reason = f"{_name_of(error)}: {error.strerror}"
            print(f"pario {command}: {reason}", file=sys.stderr)
            return 2
        if error.errno not in FULL:
            raise
        standard.silence_output()
        print(f"pario {command}: standard output: {error.strerror}", file=sys.stderr)
        return 2


def _is_incomplete(error: ImportError) -> bool:
    """Whether a part of pario or a package that it requires cannot be imported."""
    from pario.see.launch.installation import REQUIRED

    return error.name in ("pario", "pario._native", *REQUIRED)


def _name_of(error: OSError) -> str:
    """The file of an error, or the number of its descriptor."""
    name = error.filename
    return str(name) if isinstance(name, int) else wording.printable(os.fsdecode(name))
