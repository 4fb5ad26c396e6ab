"""Describe the file system of a path: kind, mount, stripes, free space, quotas, and the
settings that pario can change there."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pario import filesystems, wording
from pario.cli.arguments import add_flag
from pario.cli.paths import path_text, require_path
from pario.errors import name_errors
from pario.messages import print_json

if TYPE_CHECKING:
    from pario.fix.stripe.filesystem import FileSystem, Quota

MARGIN = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario fs``."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=path_text,
        default=["."],
        metavar="PATH",
        help="a file or directory on the file system (default: the working directory)",
    )
    add_flag(parser, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints a page per path."""
    from pario.fix.stripe.filesystem import facts_of

    facts = []
    for path in arguments.paths:
        require_path(path, "an existing file or directory")
        with name_errors(path):
            facts.append(facts_of(path))
    if arguments.json:
        print_json([_document(one) for one in facts])
    else:
        print("\n\n".join("\n".join(_page(one)) for one in facts))
    return 0


def _document(facts: FileSystem) -> dict[str, object]:
    document = dataclasses.asdict(facts)
    document["stripes"]["settable"] = facts.stripes.settable
    return document


def _page(facts: FileSystem) -> Iterator[str]:
    stripes, mount = facts.stripes, facts.mount
    rows = [
        ("mount", f"{mount.source} on {mount.point}"),
        ("options", mount.options.replace(",", ", ")),
        (
            "targets",
            (
                wording.count(facts.targets)
                if facts.targets
                else "unknown"
                if stripes.settable
                else ""
            ),
        ),
        (_subject(facts), "; ".join(_stripes(facts))),
        ("blocks", wording.block(facts.block)),
        ("locks", _locks(facts)),
        ("direct", _direct(facts)),
        ("room", _room(facts)),
        *((("quota" if index == 0 else ""), text) for index, text in enumerate(_quotas(facts))),
        ("pario can", _can(facts)),
    ]
    yield wording.printable(f"{facts.path}: {_kind(facts)}")
    for name, text in rows:
        if text:
            yield wording.printable(f"  {name:<{MARGIN - 2}}{text}")


def _kind(facts: FileSystem) -> str:
    same = facts.stripes.kind in (facts.mount.type, "local", "unknown")
    return (
        facts.mount.type
        if same or not facts.mount.type
        else f"{facts.stripes.kind} ({facts.mount.type})"
    )


def _subject(facts: FileSystem) -> str:
    return "new files" if facts.stripes.directory else "the file"


def _stripes(facts: FileSystem) -> Iterator[str]:
    from pario.fix.stripe.layout import describe, end_text

    stripes = facts.stripes
    for part in stripes.parts:
        text = describe(part, stripes.kind)
        yield text if len(stripes.parts) == 1 else f"up to {end_text(part.end)} {text}"
    if stripes.object_size:
        yield f"objects of {wording.block(stripes.object_size)}"
    if stripes.inherited:
        yield f"as {stripes.inherited} says"
    if stripes.settable and not stripes.parts:
        yield "striped by the default of the file system, which is unknown"


def _locks(facts: FileSystem) -> str:
    lines = []
    if facts.lock_unit:
        lines.append(f"two writers should not share {wording.block(facts.lock_unit)}")
    if not facts.locks_across_nodes:
        lines.append("locks of programs may hold on one node only")
    if not facts.coherent:
        lines.append(
            "nodes see each other's writes late, and must not write into one block at the same time"
        )
    return "; ".join(lines)


def _direct(facts: FileSystem) -> str:
    sizes = [("writes", facts.direct_write), ("reads", facts.direct_read)]
    calls = " and ".join(f"{calls} from {wording.block(size)}" for calls, size in sizes if size)
    return f"{calls} pass the page cache by (hybrid I/O)" if calls else ""


def _room(facts: FileSystem) -> str:
    files = (
        ""
        if facts.files_free is None
        else f", and for {wording.short_count(facts.files_free)} files"
    )
    return (
        f"{wording.size(facts.free)} of {wording.size(facts.total)} free{files}"
        if facts.total
        else "unknown"
    )


def _quotas(facts: FileSystem) -> Iterator[str]:
    for quota in facts.quotas:
        yield f"{quota.whose}: {', '.join(_limits(quota))}"
    if tool := filesystems.of_kind(facts.stripes.kind).quota:
        yield "ask " + tool.format(mount=facts.mount.point, source=Path(facts.mount.source).name)


def _limits(quota: Quota) -> Iterator[str]:
    yield (
        f"{wording.size(quota.used)} of {wording.size(quota.limit)}"
        if quota.limit
        else f"{wording.size(quota.used)}, no limit"
    )
    if quota.files_limit:
        yield f"{wording.count(quota.files_used)} of {wording.plural(quota.files_limit, 'file')}"


def _can(facts: FileSystem) -> str:
    system = filesystems.of_kind(facts.stripes.kind)
    if not system.settable:
        return f"set nothing here: {system.reason}"
    what = "files and directories" if system.settable_directories else "files"
    return (
        f"stripe new {what} (pario stripe set), move files to other stripes (pario stripe"
        " restripe), advise (pario stripe advise)"
    )
