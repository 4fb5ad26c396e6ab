"""Starts a command under pario's library and collects its logs.

Several launchers may run for one job: under ``mpiexec -n 4 pario run -- ./app`` four launchers
share one log directory, and the one of rank 0 reports.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pario import outputs
from pario.errors import ParioError
from pario.launchers import seat_of
from pario.messages import print_note
from pario.see.launch import directory, leftovers, node_cache, program, standard_input
from pario.see.launch.environment import Settings, check, recorded_words, traced_environment
from pario.see.launch.keeper import keeping
from pario.see.launch.limited import Limit, run_limited
from pario.see.launch.process import Ending, HeldSignals, StartError, run_child
from pario.see.launch.stages import staging

__all__ = ["Limit", "Outcome", "Series", "Settings", "launch"]


@dataclass(frozen=True)
class Outcome:
    """The end of the command and the directory of its logs; ``reports`` is True in the launcher
    that reports."""

    ending: Ending
    directory: Path
    reports: bool
    seconds: float

    def finish(self) -> int:
        """Return the command's exit status. If a signal killed the command, ends this process by
        the same signal and does not return."""
        return self.ending.repeat()


def launch(command: Sequence[str], settings: Settings, limit: Limit | None = None) -> Outcome:
    """Run ``command`` to its end with tracing on. It inherits the standard streams, and receives
    the signals of this process. With a ``limit`` it has a time limit, no standard input and a file
    for its output, and it ends if this process is interrupted.

    Raises ParioError before the command starts if it cannot be found, an option is invalid or the
    log directory cannot be made. Also raises it if staged files could not be copied back; then they
    are kept.
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
    held = HeldSignals() if settings.stages else None
    start, ended = time.time(), list[Ending]()
    try:
        with _environment(place, settings, executable) as environment:
            if limit is None:
                ended.append(run_child(executable, command, environment, held))
            else:
                ended.append(run_limited(executable, command, environment, limit))
    except ParioError as error:
        if isinstance(error, StartError):
            place.discard()
        for ending in ended:  # staged files stay on the node
            place.record_end(start, ending)
        raise
    (ending,) = ended
    if held:
        held.release()
    leftovers.remove_unused_memory()
    seconds = time.time() - start
    place.record_end(start, ending)
    if seat.is_first:
        place.wait_for_others(start)
        _sum_up(place.path, settings, before)
    return Outcome(ending, place.path, reports=seat.is_first, seconds=seconds)


@contextmanager
def _environment(
    place: directory.Place, settings: Settings, executable: Path
) -> Iterator[dict[str, str]]:
    """The environment of a command that runs in the block. Removes the log directory if a stage or
    another part of it cannot be made."""
    with ExitStack() as stack:
        try:
            staged = stack.enter_context(staging(settings.stages))
            shared = stack.enter_context(node_cache.sharing(place.path, settings, os.environ))
            more = {**os.environ, **staged, **shared}
            traced = traced_environment(more, place.path, settings, executable)
            environment = stack.enter_context(keeping(traced))
        except BaseException:
            place.discard()
            raise
        yield environment


class Series:
    """A series of runs of one command, with their log directories in one directory."""

    def __init__(self, command: Sequence[str], settings: Settings) -> None:
        """Make the directory. Raises ParioError like :func:`launch`, and if this launcher is one of
        several, because a rank cannot start its job again.
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
        """Run the command and record into the directory ``name``. A seekable standard input starts
        anew. ``settings`` replaces those of the series."""
        self._input.restore()
        return launch(
            self._command, replace(settings or self._settings, output=self.directory / name)
        )


def _sum_up(place: Path, settings: Settings, before: Mapping[str, outputs.State]) -> None:
    """Record checksums of the outputs if requested. Errors are only printed, because they must not
    hide the program's exit status."""
    if not settings.verify:
        return
    try:
        if not outputs.record(place, settings.verify, before):
            print_note(f"pario: no file matches {' '.join(settings.verify)}: no checksums are kept")
    except ParioError as error:
        print_note(f"pario: {error}")
