"""``pario records shuffle``, by one process or by the ranks of an MPI program."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from tempfile import gettempdir

from pario import objects, wording
from pario.cli.ranks import find_first_text, require_local, require_shared, show_together
from pario.cli.records_look import say_skipped
from pario.cli.records_make import (
    index_missing,
    known_format,
    local_outputs,
    raise_file_limit,
    shard_names,
)
from pario.errors import ParioError
from pario.messages import print_note
from pario.progress import show_progress
from pario.ranks import Ranks


def shuffle(arguments: argparse.Namespace, ranks: Ranks) -> int:
    """Shuffles; the first rank prints the result."""
    from pario._native import explain_shuffle, shuffle_records

    require_shared(ranks, arguments.paths, arguments.output)
    if arguments.tmp:
        require_shared(ranks, [], str(Path(arguments.tmp, Path(arguments.output).name)))
    asked = ranks.agree("pario records shuffle", lambda: _request(arguments, ranks))
    if arguments.explain:
        if ranks.is_first:
            print(explain_shuffle(asked, ranks.size), end="")
        return 0
    with (
        show_together(arguments.output, ranks) as show,
        local_outputs(asked[2], arguments.tmp or "") as outputs,
    ):
        local = (asked[0], asked[1], outputs, *asked[3:])
        records, size, _, skipped, first = shuffle_records(local, arguments.errors, show, ranks)
    first = find_first_text(ranks, first)
    if ranks.is_first:
        print_note(f"{arguments.output}: {wording.plural(records, 'record')}, {wording.size(size)}")
        say_skipped(arguments.output, skipped, first)
    return 0


def _temporary_beside(output: str) -> str:
    """The directory of temporary files: that of the output, or for a URL that of ``TMPDIR``."""
    return gettempdir() if objects.is_url(output) else str(Path(output).parent)


def _request(
    arguments: argparse.Namespace, ranks: Ranks
) -> tuple[list[bytes], str, list[bytes], int, int, bytes, int, str, bool]:
    """The arguments of the native shuffle. The first rank makes missing indexes."""
    from pario.machine import free_memory

    with show_progress(arguments.output):
        require_local(arguments.output, ranks)
        kinds = {known_format(path, arguments.format) for path in arguments.paths}
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
            arguments.memory or free_memory() // 2 // ranks.on_node,
            os.fsencode(arguments.tmp or _temporary_beside(arguments.output)),
            arguments.threads,
            arguments.way,
            bool(arguments.compress),
        )
