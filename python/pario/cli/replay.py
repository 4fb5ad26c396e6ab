"""Perform the recorded I/O of a run again, without the program: the same calls, sizes and offsets,
by as many processes, in temporary files.

Prints calls, bytes and seconds of the run and of the replay side by side.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from pario import wording
from pario.cli.arguments import add_flag, add_logs, add_output, add_replays, add_settings_file
from pario.cli.numbers import seconds
from pario.messages import print_json, print_lines
from pario.progress import progress

if TYPE_CHECKING:
    from pario.prove.replay import Fidelity, Performance, Script

MOST_LEFT_OUT = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario replay``."""
    add = parser.add_argument
    add_logs(parser, meaning="run.pario, or .darshan files of one job with DXT")
    add_replays(parser)
    add_settings_file(parser)
    add_flag(parser, "--partial", "replay an incomplete log as far as it goes")
    add(
        "--limit",
        type=seconds,
        metavar="SECONDS",
        help="end it after this time (default: 20 times the run, at least 10 minutes)",
    )
    add_output(parser, "DIR", "keep the log of the replay, for pario report and pario compare")
    add_flag(parser, "--json", "print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Replays; the exit status is 1 if calls or bytes differ."""
    from pario.prove.replay import fidelity, perform, script_of
    from pario.prove.replay.limits import first_limit
    from pario.prove.replay.perform import Manner
    from pario.see.tables import read
    from pario.settings import load

    settings = load(arguments.file) if arguments.file else None
    with progress("pario: reading the logs"):
        job = read(arguments.logs)
        script = script_of(job, partial=arguments.partial)
    limit = first_limit(job.wall, arguments.limit)
    manner = Manner(
        arguments.think,
        settings,
        launcher_for(script, arguments.mpiexec),
        arguments.output,
        limit=limit,
    )
    performance = perform(script, arguments.on, manner)
    found = fidelity(job, script, performance)
    if arguments.json:
        about = {"left_out": script.left_out, "mpiio": script.mpiio, "played": performance.seconds}
        print_json({"exact": found.exact, **asdict(found), **about})
    else:
        print_lines(describe(script, performance, found))
    return 0 if found.exact else 1


def launcher_for(script: Script, words: str | None) -> Sequence[str]:
    """The MPI launcher; empty for a run without ranks."""
    from pario.prove.bench.launch import launcher

    return launcher(words) if script.ranks else ()


def describe(script: Script, performance: Performance, found: Fidelity) -> Iterator[str]:
    """Yields the table of the run and the replay, with the differences."""
    who = (
        wording.plural(script.ranks, "rank")
        if script.ranks
        else wording.plural(len(script.seats), "process", "processes")
    )
    yield (
        f"{wording.plural(script.calls, 'call')} of {who} on"
        f" {wording.plural(len(script.paths), 'file')}"
    )
    if found.run_hosts not in (0, len(performance.job.hosts)):
        theirs = wording.plural(len(performance.job.hosts), "host")
        yield (
            f"on {theirs}, where the run had {wording.count(found.run_hosts)} (--mpiexec says where"
            " ranks go)"
        )
    if script.mpiio:
        yield f"MPI-IO calls were played {script.mpiio}"
    yield f"{'':22} {'run':>14} {'replay':>14}"
    for row in found.rows:
        differs = "" if row.run == row.replay else "  differs"
        yield (
            f"{row.layer + ' ' + row.name.replace('_', ' '):22} {row.run:>14,}"
            f" {row.replay:>14,}{differs}"
        )
    yield (
        f"{'seconds in I/O':22} {wording.seconds(found.run_seconds):>14}"
        f" {wording.seconds(found.replay_seconds):>14}"
    )
    yield f"{'played in':22} {'':14} {wording.seconds(performance.longest):>14}"
    if script.left_out:
        first = [
            f"{name} {count:,}" for name, count in list(script.left_out.items())[:MOST_LEFT_OUT]
        ]
        more = ", ..." if len(script.left_out) > MOST_LEFT_OUT else ""
        yield f"left out, because a replay does not do it: {', '.join(first)}{more}"
