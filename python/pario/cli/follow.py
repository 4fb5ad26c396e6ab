"""The live view of ``pario report --follow``: shows a run again and again while it is recorded.

It costs at most a fifth of a processor: a look that takes long is followed by a longer pause, and a
look reads no events if there are many of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pario.cli import numbers
from pario.cli.arguments import add_flag
from pario.messages import print_note

if TYPE_CHECKING:
    from pario.see.analyze.model import Analysis
    from pario.see.report.live import Sample
    from pario.see.tables import Job

#: Seconds from one look to the next, unless --interval says otherwise.
INTERVAL = 2.0
#: The pause after a look is at least so many times as long as the look.
_REST = 4.0
#: A look at logs with more events reads none of them; these cost about a second.
MOST_EVENTS = 500_000


def add_follow(parser: argparse.ArgumentParser) -> None:
    """--follow and --interval."""
    add_flag(
        parser,
        "--follow",
        "show a run while it is recorded, on standard error, until it ends or Ctrl-C; then"
        " print its report",
    )
    parser.add_argument(
        "--interval",
        type=numbers.seconds,
        default=INTERVAL,
        metavar="SECONDS",
        help=f"of --follow: seconds between two looks (default: {INTERVAL:g})",
    )


def follow(logs: Sequence[Path], interval: float = INTERVAL) -> None:
    """Shows a run until it has ended, or until Ctrl-C: a page on a terminal, otherwise a line for
    each look."""
    try:
        with _view() as view:
            for seconds in _looks(logs, view):
                time.sleep(pause(interval, seconds))
    except KeyboardInterrupt:
        pass


def pause(interval: float, cost: float) -> float:
    """The seconds to wait after a look that took ``cost`` seconds."""
    return max(interval - cost, _REST * cost)


def _looks(logs: Sequence[Path], view: View) -> Iterator[float]:
    """Looks at the run at each step, and yields the seconds that this took, until the run has
    ended."""
    while True:
        begin = time.monotonic()
        job = _read(logs)
        if job is not None and not _goes_on(job, logs):
            return
        view.show(job)
        yield time.monotonic() - begin


def _read(logs: Sequence[Path]) -> Job | None:
    """The state of the run; None if no process has begun its log yet."""
    from pario.see.tables import ReadError, is_recording, read

    try:
        return read(logs, most_events=MOST_EVENTS)
    except ReadError:
        if not is_recording(logs):
            raise
        return None


def _goes_on(job: Job, logs: Sequence[Path]) -> bool:
    from pario.see.tables import is_recording

    return bool(job.running) or is_recording(logs)


class View:
    """Shows the states of a run as lines on standard error."""

    def __init__(self) -> None:
        self._before: Sample | None = None

    def show(self, job: Job | None) -> None:
        """Shows a state; None: the run has no log yet."""
        if job is None:
            self._wait()
            return
        from pario.see.analyze import analyze
        from pario.see.report.live import sample

        analysis = analyze(job)
        self._draw(analysis, self._before)
        self._before = sample(analysis)

    def _wait(self) -> None:
        print_note("pario: the run has no log yet")

    def _draw(self, analysis: Analysis, before: Sample | None) -> None:
        from pario.see.report.live import line

        print_note(f"pario: {line(analysis, before)}")


class _Page(View):
    """Shows the states as a page that each one replaces."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self.live = Live(console=self._console, auto_refresh=False, transient=True)

    def _wait(self) -> None:
        self.live.update("The run has no log yet.", refresh=True)

    def _draw(self, analysis: Analysis, before: Sample | None) -> None:
        from pario.see.report.live import page

        self.live.update(page(analysis, before, self._console), refresh=True)


@contextmanager
def _view() -> Iterator[View]:
    if not sys.stderr.isatty():
        yield View()
        return
    view = _Page()
    with view.live:
        yield view
