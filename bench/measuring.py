"""Steps that several benchmarks share: timing, caches, processor time, ratios, options."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from recording import add_recording_arguments


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options of recording, which prints a module's docstring as help."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_recording_arguments(parser)
    return parser


def add_library_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option --library."""
    parser.add_argument("--library", type=resolve_path, required=True, help="libpario.so")


def resolve_path(text: str) -> Path:
    """Returns an absolute path."""
    return Path(text).resolve()


def time_call(work: Callable[[], object]) -> float:
    """Returns the wall-clock seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sum_processor_seconds(*, own: bool = True) -> float:
    """Returns the processor seconds of all child processes that ended, and of this process."""
    whose = [resource.RUSAGE_CHILDREN, *([resource.RUSAGE_SELF] if own else [])]
    used = [resource.getrusage(who) for who in whose]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def drop_caches() -> None:
    """Empties the page cache and the caches of inodes and directories (root)."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def find_median_ratio(numerators: Iterable[float], denominators: Iterable[float]) -> float:
    """Returns the median of the ratios round by round."""
    pairs = zip(numerators, denominators, strict=True)
    return statistics.median(one / other for one, other in pairs)
