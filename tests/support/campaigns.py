"""Campaigns: long series of runs whose results are lines of a result file, which they resume."""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Collection, Iterator, Sequence
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

from tests.support.results_file import BROKEN, Result, ResultsWriter, list_good
from tools.run_files import open_results

ROOT = Path(__file__).parents[2]
Item = TypeVar("Item")
#: Yields the results of tests whose names are not among the given ones.
Series = Callable[[Collection[str]], Iterator[Result]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of all campaigns."""
    parser.add_argument("--results", type=Path, help="the result file, which is resumed")
    parser.add_argument(
        "--part",
        type=Path,
        action="append",
        default=[],
        help="a result file whose good tests are left out",
    )
    parser.add_argument("--jobs", type=int, default=1, help="series at a time")


def run_campaign(options: argparse.Namespace, all_series: Sequence[Series]) -> int:
    """Runs the series; prints their results and adds them to the result file. Returns the exit
    status: 0, or BROKEN if a result is not good."""
    files = [*options.part]
    if options.results:
        open_results(options.results.resolve(), ROOT, False, "remove the file")
        files.append(options.results)
    # Reading takes much memory, and some tests limit the memory of their processes, forks of this.
    (known,) = run_series([lambda _: iter([list_good(files)])], (), 1)
    good = True
    for result in run_series(all_series, known, options.jobs):
        good &= result.good
        words = " ".join(f"{kind} {count}" for kind, count in sorted(result.counts.items()))
        print(f"{result.test}: {words} {result.reason}".rstrip(), flush=True)
        if options.results:
            with ResultsWriter(options.results) as writer:
                writer.cut_torn_line()
                writer.add(result)
    return 0 if good else BROKEN


def run_series(
    all_series: Sequence[Callable[[Collection[str]], Iterator[Item]]],
    known: Collection[str],
    jobs: int,
) -> Iterator[Item]:
    """Yields the results of several series at a time, each in a process of its own. Raises
    RuntimeError, when all have ended, if one of these processes has failed."""
    forking = multiprocessing.get_context("fork")  # functions within functions cannot be pickled

    def work(series: Callable[[Collection[str]], Iterator[Item]], writer: Connection) -> None:
        for result in series(known):
            writer.send(result)

    waiting = list(reversed(all_series))
    running: dict[Connection, multiprocessing.process.BaseProcess] = {}
    failed = False
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                reader, writer = forking.Pipe(duplex=False)
                running[reader] = forking.Process(target=work, args=(waiting.pop(), writer))
                running[reader].start()
                writer.close()
            for ready in connection.wait([*running]):
                try:
                    yield ready.recv()
                except EOFError:  # it has ended, maybe by a signal
                    process = running.pop(ready)
                    process.join()
                    failed |= process.exitcode != 0
    finally:
        for process in running.values():
            process.terminate()
            process.join()
    if failed:
        raise RuntimeError("a series has failed: its error is above")
