"""Compare ways of doing I/O on a file system, and measure this machine for the cost model."""

from __future__ import annotations

import argparse
from pathlib import Path

from pario.cli import bench_api, bench_patterns, bench_s3d
from pario.cli.arguments import add_output
from pario.cli.paths import path
from pario.errors import ParioError

_ACTIONS = {"patterns": bench_patterns, "api": bench_api, "s3d": bench_s3d}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Subcommands and options of ``pario bench``."""
    parser.add_argument(
        "--calibrate",
        nargs="?",
        type=path,
        const=Path(),
        metavar="DIR",
        help=(
            "measure this machine and the file system of DIR (default: here), and describe them for"
            " pario whatif --machine this"
        ),
    )
    add_output(parser, "FILE.toml", "with --calibrate: where to write the description, too")
    actions = parser.add_subparsers(dest="action", metavar="WHAT")
    for name, module in _ACTIONS.items():
        module.add_arguments(
            actions.add_parser(
                name, help=module.HELP, description=module.__doc__, allow_abbrev=False
            )
        )


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand, or the calibration."""
    if arguments.calibrate is not None:
        from pario.cli.bench_calibrate import calibrate

        return calibrate(arguments.calibrate, arguments.output)
    if arguments.action is None:
        raise ParioError(f"expected one of {', '.join(_ACTIONS)}, or --calibrate")
    status: int = _ACTIONS[arguments.action].run(arguments)
    return status
