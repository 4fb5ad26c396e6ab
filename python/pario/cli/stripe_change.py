"""``pario stripe``: shows the stripes of files and directories, sets them, and copies files to
others."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.paths import require_path
from pario.errors import ParioError
from pario.messages import print_json, print_line, print_lines, print_note

if TYPE_CHECKING:
    from pario.fix.stripe.layout import Stripes, Wanted


def _make_request(arguments: argparse.Namespace) -> Wanted:
    from dataclasses import replace

    from pario.fix.stripe.layout import GRANULE, Part, Wanted, parts_in_order

    every = {"pool": arguments.pool, "overstriped": arguments.overstripe}
    if arguments.part and (
        arguments.count or arguments.size or arguments.targets or arguments.start >= 0
    ):
        raise ParioError(
            "--part says count and size itself; leave out --count, --size, --start and --targets"
        )
    if arguments.targets and (
        arguments.count not in (0, len(arguments.targets)) or arguments.start >= 0
    ):
        raise ParioError(
            "--targets says how many and which is first; leave out --count and --start"
        )
    one = Part(
        unit=arguments.size, count=arguments.count, start=arguments.start, targets=arguments.targets
    )
    parts = tuple(replace(part, **every) for part in parts_in_order(arguments.part) or (one,))
    wanted = Wanted(parts, arguments.object_size)
    if wanted == Wanted():
        raise ParioError(
            "nothing is asked for; give --count, --size, --start, --targets, --pool, --object-size"
            " or --part"
        )
    for part in parts:
        if part.unit % GRANULE:
            raise ParioError(
                f"stripes of {part.unit} bytes; expected a multiple of {wording.block(GRANULE)}"
            )
    return wanted


def show(arguments: argparse.Namespace) -> int:
    """Prints the stripes of files, and those that new files in directories get."""
    from pario.fix.stripe.layout import stripes_of

    for path in arguments.paths:
        require_path(path, "an existing file or directory")
    found = [stripes_of(path) for path in arguments.paths]
    if arguments.json:
        print_json([dataclasses.asdict(stripes) for stripes in found])
    else:
        for stripes in found:
            print_lines(_describe(stripes))
    return 0


def _describe(stripes: Stripes) -> Iterator[str]:
    from pario.fix.stripe.layout import describe, end_text

    lead = f"{stripes.path}: " + ("new files have " if stripes.directory and stripes.parts else "")
    rest = f", objects of {wording.block(stripes.object_size)}" if stripes.object_size else ""
    rest += f", as {stripes.inherited} says" if stripes.inherited else ""
    if not stripes.parts:
        what = "does not tell its stripes" if stripes.settable else "no stripes"
        yield f"{lead}{what} (file system of kind {stripes.kind})"
    elif len(stripes.parts) == 1:
        yield lead + describe(stripes.parts[0], stripes.kind) + rest
    else:
        yield lead + f"{len(stripes.parts)} parts" + rest
        yield from (
            f"  up to {end_text(part.end)}: {describe(part, stripes.kind)}"
            for part in stripes.parts
        )


def set_layout(arguments: argparse.Namespace) -> int:
    """Creates striped files, or sets the stripes of new files in directories."""
    from pario.fix.stripe.layout import inherit_stripes

    if arguments.inherit:
        for path in arguments.paths:
            print_lines(_describe(inherit_stripes(path)))
        return 0
    wanted = _make_request(arguments)
    return max([set_one(path, wanted) for path in arguments.paths])


def set_one(path: str, wanted: Wanted) -> int:
    """Sets the stripes of a path; returns 1 if they differ from the request."""
    from pario.fix.stripe.layout import set_stripes

    old = Path(path).is_file()
    return _report(wanted, set_stripes(path, wanted), old)


def _report(wanted: Wanted, got: Stripes, old: bool) -> int:
    """Prints the stripes of a path; returns 1 if they differ from the request."""
    from pario.fix.stripe.layout import differences

    print_lines(_describe(got))
    other = differences(wanted, got)
    if other:
        more = (
            "; a file keeps the stripes it has: pario stripe restripe copies it to others"
            if old
            else ""
        )
        print_note(f"pario stripe: {got.path}: {'; '.join(other)}{more}")
    return 1 if other else 0


def copy_to_layout(arguments: argparse.Namespace) -> int:
    """Copies files to other stripes, or removes the rest of interrupted copies."""
    from pario.fix.stripe.restripe import discard, restripe
    from pario.progress import Line

    if arguments.discard:
        for path in arguments.paths:
            print_line(
                f"{path}: {'removed what was left' if discard(path) else 'nothing was left'}"
            )
        return 0
    wanted, status = _make_request(arguments), 0
    for path in arguments.paths:
        require_path(path, "an existing file or directory")
    for path in arguments.paths:
        line = Line(path)
        try:
            outcome = restripe(path, wanted, line.show, arguments.threads, force=arguments.force)
        except KeyboardInterrupt:
            line.clear()
            print_note("")
            print_note(
                f"pario stripe: {path} is unchanged; the same command continues the copy,"
                " --discard removes it"
            )
            return wording.INTERRUPTED
        finally:
            line.clear()
        *lines, last = _describe(outcome.stripes)
        print_lines([*lines, last if outcome.moved else f"{last}, as it was"])
        for note in outcome.notes:
            print_note(f"pario stripe: {note}")
            status = 1
    return status
