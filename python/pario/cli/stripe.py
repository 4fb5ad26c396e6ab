"""Show, set, measure, advise and change how files are striped over the targets of a file system
(Lustre, CephFS, BeeGFS)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pario.cli import stripe_advise, stripe_change, stripe_sweep
from pario.cli.arguments import add_action, add_count, add_flag, add_value
from pario.cli.numbers import positive, several, size
from pario.cli.paths import path_text

if TYPE_CHECKING:
    from pario.fix.stripe.layout import Part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Subcommands and options of ``pario stripe``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = _action(
        actions,
        "show",
        "show the stripes of files, and those that new files in directories get",
        "a file or directory",
    )
    add_flag(show, "--json", "print JSON")
    setting = _action(
        actions,
        "set",
        "create striped files, or set the stripes of new files in directories",
        "a new file, or a directory",
    )
    _stripe_options(setting)
    add_flag(setting, "--inherit", "a directory has the stripes of the one above again")
    moving = _action(
        actions,
        "restripe",
        "copy files to other stripes; the complete copy replaces the file",
        "a file",
    )
    _stripe_options(moving)
    add_count(moving, "--threads", 4, "threads that copy (default 4)")
    add_flag(moving, "--force", "also files that are striped so already")
    add_flag(moving, "--discard", "remove the remains of interrupted copies, and copy nothing")
    stripe_sweep.add_arguments(actions)
    stripe_advise.add_arguments(actions)


def _action(actions: Any, name: str, text: str, paths: str) -> argparse.ArgumentParser:
    parser = add_action(actions, name, text)
    parser.add_argument(
        "paths",
        nargs="+",
        type=path_text,
        metavar="PATH",
        help=paths,
    )
    return parser


def _stripe_options(parser: argparse.ArgumentParser) -> None:
    add_value(
        parser, "--count", _count, "N", "stripes of a file: targets it is spread over; or: all", 0
    )
    add_value(parser, "--size", size, "SIZE", "bytes per stripe, a multiple of 64K", 0)
    add_value(parser, "--start", _number, "T", "first target (Lustre)", -1)
    parser.add_argument(
        "--targets",
        type=several(_number),
        default=(),
        metavar="T,T,...",
        help="exactly these targets, in this order (Lustre)",
    )
    add_flag(parser, "--overstripe", "several stripes on one target are allowed (Lustre)")
    parser.add_argument(
        "--pool",
        default="",
        metavar="NAME",
        help="targets of this pool (Lustre), or this data pool (CephFS)",
    )
    add_value(parser, "--object-size", size, "SIZE", "bytes per object (CephFS)", 0)
    parser.add_argument(
        "--part",
        action="append",
        type=_part,
        default=[],
        metavar="END:COUNT[:SIZE]",
        help=(
            "the bytes up to END, so striped; may be repeated, the last one up to `end` (Lustre:"
            " composite files)"
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; returns 1 if the result differs from the request."""
    return {
        "show": stripe_change.show,
        "set": stripe_change.set_layout,
        "restripe": stripe_change.copy_to_layout,
        "sweep": stripe_sweep.run,
        "advise": stripe_advise.run,
    }[arguments.action](arguments)


def _count(text: str) -> int:
    from pario.fix.stripe.layout import ALL

    return ALL if text in ("all", "-1") else positive(text)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}; expected a number")
    return int(text)


def _part(text: str) -> Part:
    from pario.fix.stripe.layout import TO_THE_END, Part

    end, _, rest = text.partition(":")
    count, _, unit = rest.partition(":")
    if not count:
        raise argparse.ArgumentTypeError(f"{text}; expected END:COUNT or END:COUNT:SIZE")
    return Part(
        end=TO_THE_END if end == "end" else size(end),
        count=_count(count),
        unit=size(unit) if unit else 0,
    )
