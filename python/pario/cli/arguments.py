"""Arguments that several subcommands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pario.cli.numbers import positive
from pario.cli.paths import path, path_or_host_text, path_text


def add_action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    """The parser of an action of a command; ``text`` is its help, and as a sentence its
    description."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text.capitalize()}.", allow_abbrev=False
    )
    return parser


def add_flag(parser: argparse._ActionsContainer, name: str, meaning: str) -> None:
    """An option without a value, of a parser or of a group."""
    parser.add_argument(name, action="store_true", help=meaning)


def add_value(
    parser: argparse._ActionsContainer,
    name: str,
    kind: Callable[[str], Any],
    metavar: str,
    meaning: str,
    default: Any = None,
) -> None:
    """An option with a value of a type of numbers.py, paths.py or Python."""
    parser.add_argument(name, type=kind, default=default, metavar=metavar, help=meaning)


def add_count(
    parser: argparse._ActionsContainer, name: str, default: int | None, meaning: str
) -> None:
    """An option N, a number from 1 on; ``default`` may be 0 or None."""
    add_value(parser, name, positive, "N", meaning, default)


def add_logs(
    parser: argparse.ArgumentParser,
    nargs: str = "+",
    meaning: str = "run.pario, or .darshan files of one job",
) -> None:
    """LOG: the logs of a run."""
    parser.add_argument("logs", nargs=nargs, type=path, metavar="LOG", help=meaning)


def add_output(
    parser: argparse.ArgumentParser,
    metavar: str,
    meaning: str,
    kind: Callable[[str], Path | str] = path,
    *,
    required: bool = False,
) -> None:
    """-o, a path to write."""
    parser.add_argument(
        "-o", "--output", required=required, type=kind, metavar=metavar, help=meaning
    )


def add_plot(parser: argparse.ArgumentParser, meaning: str) -> None:
    """--plot, a picture to write (:func:`check_plot`)."""
    text = f"{meaning}; the suffix is .svg, .html or .png"
    parser.add_argument("--plot", type=path, metavar="FILE", help=text)


def check_plot(arguments: argparse.Namespace) -> None:
    """Raises ParioError, before the measurement, if the picture of --plot cannot be written."""
    if arguments.plot:
        from pario.see.report.picture import check

        check(arguments.plot)


def add_page(
    parser: argparse.ArgumentParser,
    name: str,
    document: str,
    rows: str,
    formats: Mapping[str, str] | None = None,
) -> None:
    """--html, --json and --all of a page; ``rows`` names the rows that --all shows. With
    ``formats``, names and meanings of other formats, also --format."""
    parser.add_argument(
        "--html",
        type=path,
        metavar="FILE",
        help=f"also write the {name} as one self-contained HTML file",
    )
    group = parser.add_mutually_exclusive_group()
    add_flag(group, "--json", f"print JSON ({document})")
    if formats:
        meanings = "; ".join(f"{key}: {meaning}" for key, meaning in formats.items())
        group.add_argument(
            "--format",
            choices=["terminal", "json", *formats],
            help=f"the format on standard output (default: terminal); json: as --json; {meanings}",
        )
    add_flag(parser, "--all", f"show all {rows}, not one screen")


def add_pack(parser: argparse.ArgumentParser, *, remote: bool = False) -> None:
    """PACK: an archive, with ``remote`` also one on another host."""
    written = "a directory written by pario pack"
    parser.add_argument(
        "pack",
        type=path_or_host_text if remote else path_text,
        metavar="PACK",
        help=f"{written}, here or on another host, HOST:PATH" if remote else written,
    )


def add_archive_work(parser: argparse.ArgumentParser) -> None:
    """--threads, and --transfers for archives on other hosts."""
    add_count(parser, "--threads", 0, "default: one for each processor")
    add_count(
        parser,
        "--transfers",
        4,
        "of HOST:PATH: the shards that are transferred at the same time (default 4)",
    )


def add_replays(parser: argparse.ArgumentParser) -> None:
    """--on, --think and --mpiexec: the directory, the pauses and the launcher of replays."""
    add_place(parser, Path(), "the working directory")
    add_flag(parser, "--think", "wait between calls as long as the program did")


def add_place(parser: argparse.ArgumentParser, default: Path | None, meaning: str) -> None:
    """--on and --mpiexec: the directory of replays, whose default is ``meaning`` in words, and
    their launcher."""
    parser.add_argument(
        "--on",
        type=path,
        default=default,
        metavar="DIR",
        help=f"a directory on the file system to use (default: {meaning})",
    )
    add_launcher(parser)


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """--mpiexec: the launcher of MPI programs."""
    parser.add_argument(
        "--mpiexec", metavar="COMMAND", help="the launcher with its options (default: mpiexec)"
    )


def add_settings_file(parser: argparse.ArgumentParser) -> None:
    """--with: a settings file."""
    parser.add_argument(
        "--with",
        type=path,
        dest="file",
        metavar="FILE",
        help="a settings file, pario.toml (docs/settings.md)",
    )
