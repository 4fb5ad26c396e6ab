"""Tell what is known of the file system of a path: kind, mount, stripes, room, quotas, and what pario can set there."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.paths import path_text
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.stripe.filesystem import FileSystem, Quota

HELP = "tell what is known of a file system"
MARGIN = 14
#: Where the quota of a user is asked for on file systems that do not tell the kernel.
_QUOTA_TOOLS = {
    "lustre": "lfs quota -h -u $USER {mount}",
    "gpfs": "mmlsquota -u $USER {source}",
    "beegfs": "beegfs-ctl --getquota --uid $USER",
    "nfs": "quota -s -f {mount}",
    "panfs": "pan_quota {mount}",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario fs``."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=path_text,
        default=["."],
        metavar="PATH",
        help="a file or directory there (default: the working directory)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints a page per path."""
    from pario.stripe.filesystem import facts_of

    try:
        facts = [facts_of(path) for path in arguments.paths]
    except OSError as error:
        raise ParioError(f"{error.filename}: {error.strerror}") from error
    if arguments.json:
        print(json.dumps([_document(one) for one in facts], indent=2))
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
        ("targets", wording.count(facts.targets) if facts.targets else "not told" if stripes.settable else ""),
        (_subject(facts), "; ".join(_stripes(facts))),
        ("blocks", wording.block(facts.block)),
        ("locks", _locks(facts)),
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
    return facts.mount.type if same or not facts.mount.type else f"{facts.stripes.kind} ({facts.mount.type})"


def _subject(facts: FileSystem) -> str:
    return "new files" if facts.stripes.directory else "the file"


def _stripes(facts: FileSystem) -> Iterator[str]:
    from pario.stripe.layout import describe, end_text

    stripes = facts.stripes
    for part in stripes.parts:
        text = describe(part, stripes.kind)
        yield text if len(stripes.parts) == 1 else f"up to {end_text(part.end)} {text}"
    if stripes.object_size:
        yield f"objects of {wording.block(stripes.object_size)}"
    if stripes.inherited:
        yield f"as {stripes.inherited} says"
    if stripes.settable and not stripes.parts:
        yield "striped as the file system does by default, which it does not tell"


def _locks(facts: FileSystem) -> str:
    lines = []
    if facts.lock_unit:
        lines.append(f"two writers should not share {wording.block(facts.lock_unit)}")
    if not facts.locks_across_nodes:
        lines.append("locks of programs may hold on one node only")
    if not facts.coherent:
        lines.append("nodes see each other's writes late, and must not write into one block at the same time")
    return "; ".join(lines)


def _room(facts: FileSystem) -> str:
    files = "" if facts.files_free is None else f", and for {wording.short_count(facts.files_free)} files"
    return f"{wording.size(facts.free)} of {wording.size(facts.total)} free{files}" if facts.total else "not told"


def _quotas(facts: FileSystem) -> Iterator[str]:
    for quota in facts.quotas:
        yield f"{quota.whose}: {', '.join(_limits(quota))}"
    tool = _QUOTA_TOOLS.get(facts.stripes.kind)
    if tool:
        yield "ask " + tool.format(mount=facts.mount.point, source=Path(facts.mount.source).name)


def _limits(quota: Quota) -> Iterator[str]:
    yield f"{wording.size(quota.used)} of {wording.size(quota.limit)}" if quota.limit else f"{wording.size(quota.used)}, no limit"
    if quota.files_limit:
        yield f"{wording.count(quota.files_used)} of {wording.plural(quota.files_limit, 'file')}"


def _can(facts: FileSystem) -> str:
    if not facts.stripes.settable:
        return "set nothing here: " + (
            "stripes are decided by its servers" if facts.stripes.kind == "gpfs" else "it has no stripes that can be set"
        )
    what = "files" if facts.stripes.kind == "beegfs" else "files and directories"
    return f"stripe new {what} (pario stripe set), move files to other stripes (pario stripe restripe), advise (pario stripe advise)"
