"""Starts a command under pario's library and gathers its logs.

``launch`` is one of possibly many: under ``mpiexec -n 4 pario run -- ./app`` four launchers share
one log directory, and the one of rank 0 reports.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pario import outputs
from pario.errors import ParioError
from pario.launchers import seat_of
from pario.see.launch import directory, leftovers, program, standard_input
from pario.see.launch.environment import Settings, check, recorded_words, traced_environment
from pario.see.launch.keeper import keeping
from pario.see.launch.limited import Limit, run_limited
from pario.see.launch.process import Ending, Held, run_child
from pario.see.launch.stages import staging

__all__ = ["Limit", "Outcome", "Series", "Settings", "launch"]


@dataclass(frozen=True)
class Outcome:
    """How the command ended, where its logs are, and whether this launcher is the one that
    reports."""

    ending: Ending
    directory: Path
    reports: bool
    seconds: float

    def finish(self) -> int:
        """The command's exit status; does not return when the command died of a signal (then
        neither shall we live)."""
        return self.ending.repeat()


def launch(command: Sequence[str], settings: Settings, limit: Limit | None = None) -> Outcome:
    """Runs ``command`` to its end with tracing on. Its standard streams are ours; signals that
    reach us reach it. With a ``limit`` it has so many seconds, no standard input, a file for its
    output, and what ends us ends it.

    Raises ParioError when the command cannot be found, an option is bad or the log directory cannot
    be made; nothing has run then. Also when staged files could not be brought back; then they are
    kept.
    """
    executable = program.resolve(command[0])
    check(os.environ, settings)
    seat = seat_of(os.environ)
    words = recorded_words(command, os.environ, settings)
    place = directory.join(settings.output, seat, words)
    place.announce(f"pario: recording into {place.path}")
    for warning in program.warnings(command, executable):
        place.announce(f"pario: {warning}")
    before = outputs.state_before(settings.verify)
    held = Held() if settings.stages else None
    start = time.time()
    with (
        staging(settings.stages) as staged,
        keeping(
            traced_environment({**os.environ, **staged}, place.path, settings, executable)
        ) as environment,
    ):
        if limit is None:
            ending = run_child(executable, command, environment, held)
        else:
            ending = run_limited(executable, command, environment, limit)
    if held:
        held.let_go()
    leftovers.sweep()
    seconds = time.time() - start
    place.record_end(start, ending.status, ending.pid)
    if seat.is_first:
        place.wait_for_others(start)
        _sum_up(place.path, settings, before)
    return Outcome(ending, place.path, reports=seat.is_first, seconds=seconds)


class Series:
    """Runs of one command that belong together: their logs lie in directories of one directory."""

    def __init__(self, command: Sequence[str], settings: Settings) -> None:
        """Makes the directory. Raises ParioError as :func:`launch` does, and where this launcher is
        one of several: a rank cannot start its job again.
        """
        if seat_of(os.environ).size > 1:
            raise ParioError(
                "a rank cannot start its job again; put pario before the launcher: pario run ... --"
                " mpiexec -n N COMMAND"
            )
        program.resolve(command[0])
        check(os.environ, settings)
        self._command, self._settings = command, settings
        self._input = standard_input.Beginning()
        self.directory = directory.make(settings.output).absolute()

    def run(self, name: str, settings: Settings | None = None) -> Outcome:
        """Runs the command into the directory ``name``; a seekable standard input starts anew.
        ``settings`` instead of the series'."""
        self._input.restore()
        return launch(
            self._command, replace(settings or self._settings, output=self.directory / name)
        )


def _sum_up(place: Path, settings: Settings, before: Mapping[str, outputs.State]) -> None:
    """Keeps checksums of the outputs where they are wanted; what goes wrong must not hide the
    program's exit status."""
    if not settings.verify:
        return
    try:
        if not outputs.record(place, settings.verify, before):
            print(
                f"pario: no file matches {' '.join(settings.verify)}: no checksums are kept",
                file=sys.stderr,
            )
    except ParioError as error:
        print(f"pario: {error}", file=sys.stderr)
