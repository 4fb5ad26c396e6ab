"""``pario records shuffle``, by one process or by the ranks of an MPI program."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from tempfile import gettempdir

from pario import objects, wording
from pario.cli.records_look import say_skipped
from pario.cli.records_make import (
    default_memory,
    format_of,
    index_missing,
    local_outputs,
    raise_file_limit,
    shard_names,
)
from pario.cli.records_ranks import gather, on_node, ranks_here
from pario.errors import ParioError
from pario.progress import show_progress
from pario.ranks import Ranks


def shuffle(arguments: argparse.Namespace) -> int:
    """Shuffles; the first rank prints the result."""
    ranks = ranks_here(os.environ, "records shuffle")
    try:
        return _shuffle(arguments, ranks)
    except ParioError:
        if ranks.is_first:
            raise
        return 2


def _shuffle(arguments: argparse.Namespace, ranks: Ranks) -> int:
    from pario._native import explain_shuffle, shuffle_records

    share = on_node(ranks)
    asked = ranks.agree("pario records shuffle", lambda: _request(arguments, ranks, share))
    if arguments.explain:
        if ranks.is_first:
            print(explain_shuffle(*asked, ranks.size), end="")
        return 0
    with show_progress(arguments.output) as line:

        def show(done: int, whole: int) -> None:
            if ranks.is_first:
                line(done * ranks.size, whole * ranks.size)

        with local_outputs(asked[2], arguments.tmp or "") as outputs:
            local = (asked[0], asked[1], outputs, *asked[3:])
            records, size, _, skipped, first = shuffle_records(
                *local, arguments.errors, show, ranks.rank, ranks.size, gather(ranks)
            )
    if ranks.is_first:
        print(
            f"{wording.printable(arguments.output)}: {wording.count(records)} records,"
            f" {wording.size(size)}",
            file=sys.stderr,
        )
        say_skipped(arguments.output, skipped, first)
    return 0


def _temporary_beside(output: str) -> str:
    """The directory of temporary files: that of the output, or for a URL that of ``TMPDIR``."""
    return gettempdir() if objects.is_url(output) else str(Path(output).parent)


def _request(
    arguments: argparse.Namespace, ranks: Ranks, share: int
) -> tuple[list[bytes], str, list[bytes], int, int, bytes, int, str, bool]:
    """The arguments of the native shuffle. The first rank makes missing indexes. ``share``: ranks
    that share this memory."""
    with show_progress(arguments.output):
        if ranks.size > 1 and objects.is_url(arguments.output):
            raise ParioError(
                f"{arguments.output}: several ranks write to a shared file system only"
            )
        kinds = {format_of(path, arguments.format) for path in arguments.paths}
        if len(kinds) > 1:
            raise ParioError(f"the inputs are of several formats: {', '.join(sorted(kinds))}")
        kind = kinds.pop()
        whole = sum(objects.size_of(path) for path in arguments.paths)
        if kind not in ("lines", "prec", "directory") and ranks.is_first:
            index_missing(arguments)
        shards = (
            max(1, -(-whole // arguments.shard_size)) if arguments.shard_size else arguments.shards
        )
        raise_file_limit(2 * shards + ranks.size)
        return (
            [os.fsencode(path) for path in arguments.paths],
            kind,
            shard_names(arguments.output, shards),
            arguments.seed,
            arguments.memory or default_memory() // share,
            os.fsencode(arguments.tmp or _temporary_beside(arguments.output)),
            arguments.threads,
            arguments.way,
            bool(arguments.compress),
        )
