"""Pack a directory of many files into few shards: zstd-compressed tar files, which any tar unpacks,
and an index.

--subdirs packs nothing: it spreads the files of a flat directory over subdirectories of it; pario
unpack reverses that.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_archive_work, add_count, add_output, add_value
from pario.cli.numbers import between, positive_size
from pario.cli.paths import path_or_host_text, path_text, require_directory
from pario.errors import ParioError
from pario.messages import print_note
from pario.paths import resolve
from pario.progress import show_progress

if TYPE_CHECKING:
    from pario.move.archive import Packing
    from pario.move.rsync import HostPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario pack``."""
    parser.add_argument("directory", type=path_text, metavar="DIR", help="the directory to pack")
    text = "new directory for shards and index, here or on another host, HOST:PATH"
    add_output(parser, "OUT", f"{text} (default: DIR.pack)", path_or_host_text)
    parser.add_argument(
        "--shard-size",
        type=positive_size,
        default=1 << 30,
        metavar="SIZE",
        help="approximate bytes of files in a shard (default 1G)",
    )
    add_count(parser, "--shards", 0, "number of shards, of equal size, instead")
    add_value(
        parser, "--level", between(1, 19), "N", "of zstd, 1 (fast) to 19 (small); default 3", 3
    )
    add_archive_work(parser)
    add_count(
        parser,
        "--subdirs",
        None,
        "spread the files of a flat directory over N subdirectories, in place",
    )
    parser.add_argument(
        "--by",
        choices=("hash", "even"),
        default="hash",
        help="with --subdirs: by the name's CRC-32, or sorted and even",
    )


def run(arguments: argparse.Namespace) -> int:
    """Packs the directory, or spreads it over subdirectories."""
    require_directory(arguments.directory, "a directory of files")
    if arguments.subdirs:
        return _spread_files(arguments)
    directory = arguments.directory.rstrip("/") or "/"
    output = arguments.output or f"{resolve(directory)}.pack"
    options = {
        "shard_size": arguments.shard_size,
        "shards": arguments.shards,
        "level": arguments.level,
        "workers": arguments.threads,
    }
    from pario.move.rsync import host_path

    if target := host_path(output):
        return _send(directory, target, arguments.transfers, options)
    from pario.move.archive import pack

    _require_apart(directory, output)
    with show_progress(output) as show:
        done = pack(directory, output, show=show, **options)
    print_note(f"{output}: {_describe(done)}")
    return 0


def _send(directory: str, target: HostPath, transfers: int, options: dict[str, int]) -> int:
    """Packs a directory to another host, or sends an archive."""
    from pario.move.archive.remote import send

    done = send(directory, target, transfers, **options)
    described = f"{_describe(done.packing)}; " if done.packing else ""
    sent = f"{wording.size(done.sent)} of {wording.size(done.size)} sent"
    print_note(f"{target}: {described}{sent}")
    return 0


def _describe(done: Packing) -> str:
    shards = wording.plural(done.shards, "shard")
    sizes = f"{wording.size(done.size)} in {shards} of {wording.size(done.packed)} together"
    return f"{wording.plural(done.members, 'member')}, {sizes}"


def _require_apart(directory: str, output: str) -> None:
    """Raises ParioError if the output lies within the directory to pack."""
    within, whole = os.path.realpath(output), os.path.realpath(directory)
    if os.path.commonpath([within, whole]) == whole:
        raise ParioError(f"{output} is within {directory}; expected another place (-o)")


def _spread_files(arguments: argparse.Namespace) -> int:
    from pario.move.archive.subdirs import distribute

    if arguments.output:
        raise ParioError("--subdirs spreads a directory in place; expected no --output")
    with show_progress(arguments.directory) as show:
        moved = distribute(Path(arguments.directory), arguments.subdirs, arguments.by, show)
    print_note(
        f"{arguments.directory}: {wording.plural(moved, 'file')}"
        f" in {arguments.subdirs} subdirectories"
    )
    return 0
