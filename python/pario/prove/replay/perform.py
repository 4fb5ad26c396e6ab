"""Performs a script in a scratch directory: files made beforehand, processes started under pario's
library, what they did counted."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pario import wording
from pario.prove.replay.errors import LateError, ReplayError
from pario.prove.replay.script import Script, below, save
from pario.scratch import scratch
from pario.see.launch import Limit, Settings, launch
from pario.see.tables import read
from pario.see.tables.model import Job
from pario.settings import SettingsFile

_CHUNK = 4 << 20


@dataclass(frozen=True)
class Manner:
    """How a replay is done."""

    pauses: bool = False
    settings: SettingsFile | None = None  # for the paths of the run
    mpiexec: Sequence[str] = ()
    log: Path | None = None  # where its log stays
    # what the run left open is closed at the end, so that the seconds hold what buffers hold
    settle: bool = False
    limit: float = inf  # seconds after which it is ended


@dataclass(frozen=True)
class Performance:
    """What a replay did: the seconds that each of its processes played, and its log."""

    seconds: tuple[float, ...]
    job: Job
    root: Path  # below which its files were

    @property
    def longest(self) -> float:
        """Seconds of the process that played longest."""
        return max(self.seconds)


def perform(script: Script, directory: Path, manner: Manner | None = None) -> Performance:
    """Plays a script once below ``directory``; nothing of it stays there. Raises ReplayError where
    it cannot be played, or not in time."""
    manner = manner or Manner()
    _check(script, directory)
    try:
        with (
            scratch(directory, "pario-replay-") as root,
            tempfile.TemporaryDirectory(prefix="pario-replay-") as about,
        ):
            _prepare(script, root)
            return _play(script, root, Path(about), manner)
    except OSError as error:
        raise ReplayError(f"{error.filename or directory}: {error.strerror or error}") from error


def expect_scratch(directory: Path) -> None:
    """Before much is done for it: raises ReplayError where no scratch directory can be made
    there."""
    if not directory.is_dir():
        raise ReplayError(
            f"{directory} is no directory; expected one on the file system that is to be tried"
        )
    try:
        with scratch(directory, "pario-replay-"):
            pass
    except OSError as error:
        raise ReplayError(
            f"no scratch directory can be made in {directory}: {error.strerror}"
        ) from error


def _check(script: Script, directory: Path) -> None:
    if not directory.is_dir():
        raise ReplayError(
            f"{directory} is no directory; expected one on the file system that is to be tried"
        )
    needed, usage = sum(made.size for made in script.files), shutil.disk_usage(directory)
    room = usage.free
    if usage.total and needed > room:  # a CephFS without statistics has no size
        raise ReplayError(
            f"{directory} has {wording.size(room)} left; the files that the run found need"
            f" {wording.size(needed)}"
        )


def _prepare(script: Script, root: Path) -> None:
    """Makes the directories and the files that the run found."""
    for path in script.paths:
        below(root, path).parent.mkdir(parents=True, exist_ok=True)
    for number in script.directories:
        below(root, script.paths[number]).mkdir(exist_ok=True)
    block = bytes(range(1, 251)) * (_CHUNK // 250)
    for made in script.files:
        with suppress(IsADirectoryError), below(root, script.paths[made.path]).open("wb") as file:
            for begin in range(0, made.size, len(block)):
                file.write(block[: made.size - begin])


def _play(script: Script, root: Path, about: Path, manner: Manner) -> Performance:
    log = manner.log or about / "log"
    save(script, about, root, log)
    words = [
        sys.executable,
        "-m",
        "pario.prove.replay.player",
        str(about),
        *(name for name in ("pauses", "settle") if getattr(manner, name)),
    ]
    command = [*manner.mpiexec, "-n", str(script.ranks), *words, "mpi"] if script.ranks else words
    settings = Settings(
        output=log,
        chosen={} if manner.log else {"PARIO_TRACE_EVENTS_LIMIT": "0"},
        file=manner.settings and _moved(manner.settings),
    )
    with redirect_stderr(
        io.StringIO()
    ):  # where the log is concerns nobody; the processes keep their own
        outcome = launch(command, settings, Limit(manner.limit, said := about / "said"))
    if not outcome.ending.late:
        print(said.read_text(errors="replace"), end="", file=sys.stderr)
    if failures := sorted(about.glob("*.failed")):
        raise ReplayError(
            f"{wording.plural(len(failures), 'process', 'processes')} of the replay failed:"
            f" {failures[0].read_text()}"
        )
    if outcome.ending.late:
        raise LateError(
            f"ended after {wording.seconds(manner.limit)}: the replay was not over (--limit gives"
            " it more)"
        )
    if outcome.ending.status:
        raise ReplayError(f"the replay ended with status {outcome.ending.status}")
    seconds = tuple(
        float((about / f"{seat}.done").read_text()) for seat in range(len(script.seats))
    )
    return Performance(seconds, read([log]), Path(os.path.realpath(root)))


def _moved(settings: SettingsFile) -> SettingsFile:
    """Settings for paths of the run as settings for those of a replay, which end with them."""
    sections = (
        replace(one, match=f"*{one.match}") if one.match.startswith("/") else one
        for one in settings.sections
    )
    return replace(settings, sections=tuple(sections))
