"""Performs a script in a scratch directory: creates the files, starts the processes under pario's
library, and reads their log."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pario import wording
from pario.copying import drop_from_cache, write_all
from pario.errors import name_errors
from pario.fix.stripe.layout import Wanted, differences, set_stripes
from pario.paths import resolve
from pario.prove.replay.errors import LateError, ReplayError
from pario.prove.replay.script import Script, below, save
from pario.publishing import temporary_directory
from pario.scratch import scratch
from pario.see.launch import Limit, Settings, launch
from pario.see.tables import read
from pario.see.tables.model import Job
from pario.settings import SettingsFile

#: Bytes of the aligned writes that make a file, as those of most programs. The page cache keeps a
#: write in large folios, in which later small writes cost more: 3.3 us each in those of 4 MiB, 1.8
#: in 1 MiB, 0.9 in 64 KiB (ext4, Linux 6.18).
_CHUNK = 1 << 20
#: Bytes of PARIO_TRACE_EXCLUDE, as in hints.def.
_LONGEST_GLOBS = 1023


@dataclass(frozen=True)
class Manner:
    """The options of a replay."""

    pauses: bool = False
    settings: SettingsFile | None = None  # for the paths of the run
    mpiexec: Sequence[str] = ()
    log: Path | None = None  # the path of its log, which is kept; None: a temporary one
    # Close the files that the run left open, so that the seconds include the flush of buffers.
    close_files: bool = False
    limit: float = inf  # seconds after which the replay is ended


@dataclass(frozen=True)
class Performance:
    """The result of a replay: the seconds of each process, and its log."""

    seconds: tuple[float, ...]
    job: Job
    root: Path  # the directory of its files

    @property
    def longest(self) -> float:
        """The seconds of the longest process."""
        return max(self.seconds)


def perform(script: Script, directory: Path, manner: Manner | None = None) -> Performance:
    """Play a script once below ``directory``; leaves no files there. Raises ReplayError if it
    fails or exceeds the limit."""
    manner = manner or Manner()
    with prepare_scratch(script, directory) as root:
        return play(script, root, manner)


@contextmanager
def prepare_scratch(
    script: Script,
    directory: Path,
    stripes: Wanted | None = None,
    *,
    cold: bool = False,
    deadline: float = inf,
) -> Iterator[Path]:
    """A new scratch directory with the files that existed before the run, which are not in the page
    cache if ``cold``. All of its files have ``stripes``, or the stripes of ``directory``. Raises
    ReplayError if it cannot be made, LateError if it is not complete at ``deadline`` (of the
    monotonic clock), and ParioError if the file system sets other stripes."""
    _check(script, directory)
    with name_errors(directory, ReplayError), scratch(directory, "pario-replay") as root:
        if stripes and (other := differences(stripes, set_stripes(root, stripes))):
            raise ReplayError(f"{root}: {'; '.join(other)}")
        _prepare_files(script, root, cold=cold, deadline=deadline)
        yield root


def play(script: Script, root: Path, manner: Manner) -> Performance:
    """Play a script once in a prepared directory. Raises ReplayError as :func:`perform`."""
    about = f"{tempfile.gettempdir()} (TMPDIR, the directory of temporary files)"
    with (
        name_errors(about, ReplayError),
        temporary_directory(Path(tempfile.gettempdir()) / "pario-replay") as folder,
    ):
        return _play(script, root, folder, manner)


def expect_scratch(directory: Path) -> None:
    """Check early that a scratch directory can be made in ``directory``. Raises ReplayError."""
    if not directory.is_dir():
        raise ReplayError(f"{directory} is no directory; expected one on the file system to test")
    try:
        with scratch(directory, "pario-replay"):
            pass
    except OSError as error:
        raise ReplayError(
            f"no scratch directory can be made in {directory}: {error.strerror}"
        ) from error


def _check(script: Script, directory: Path) -> None:
    if not directory.is_dir():
        raise ReplayError(f"{directory} is no directory; expected one on the file system to test")
    needed, usage = script.size, shutil.disk_usage(directory)
    if usage.total and needed > usage.free:  # a CephFS without statistics has no size
        raise ReplayError(
            f"{directory} has {wording.size(usage.free)} left; the files that the run found need"
            f" {wording.size(needed)}"
        )


def _prepare_files(script: Script, root: Path, *, cold: bool, deadline: float) -> None:
    """Make the directories and files that existed before the run. Raises LateError."""
    for path in script.paths:
        below(root, path).parent.mkdir(parents=True, exist_ok=True)
    for number in script.directories:
        below(root, script.paths[number]).mkdir(exist_ok=True)
    block = (bytes(range(1, 251)) * (_CHUNK // 250 + 1))[:_CHUNK]
    for made in script.files:
        _check_deadline(deadline)
        with suppress(IsADirectoryError), below(root, script.paths[made.path]).open("wb") as file:
            for first, end in made.ranges:
                for begin in range(first - first % _CHUNK, end, _CHUNK):
                    _check_deadline(deadline)
                    piece = block[max(first - begin, 0) : end - begin]
                    write_all(file.fileno(), max(first, begin), piece)
            os.truncate(file.fileno(), made.size)
            if cold:
                drop_from_cache(file.fileno())


def _check_deadline(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise LateError("there was no time to create the files that the run found")


def _play(script: Script, root: Path, about: Path, manner: Manner) -> Performance:
    log = manner.log or about / "log"
    save(script, about, root, log)
    words = [
        sys.executable,
        "-m",
        "pario.prove.replay.player",
        str(about),
        *(name for name in ("pauses", "close_files") if getattr(manner, name)),
    ]
    command = [*manner.mpiexec, "-n", str(script.ranks), *words, "mpi"] if script.ranks else words
    settings = Settings(
        output=log,
        chosen=_trace_only(root) if manner.log else {"PARIO_TRACE_EVENTS_LIMIT": "0"},
        file=manner.settings and _relocate_settings(manner.settings),
    )
    # The message about the log is dropped; the processes write to a file of their own.
    with redirect_stderr(io.StringIO()):
        outcome = launch(command, settings, Limit(manner.limit, errors := about / "errors"))
    if not outcome.ending.late:
        print(errors.read_text(errors="replace"), end="", file=sys.stderr)
    if failures := sorted(about.glob("*.failed")):
        raise ReplayError(
            f"{wording.plural(len(failures), 'process', 'processes')} of the replay failed:"
            f" {failures[0].read_text()}"
        )
    if outcome.ending.late:
        raise LateError(
            f"ended after {wording.seconds(manner.limit)}: the replay was not over (--limit raises"
            " the limit)"
        )
    if outcome.ending.status:
        raise ReplayError(f"the replay ended with status {outcome.ending.status}")
    seconds = tuple(
        float((about / f"{seat}.done").read_text()) for seat in range(len(script.seats))
    )
    return Performance(seconds, read([log]), resolve(root))


def _trace_only(root: Path) -> dict[str, str]:
    """The variable that keeps the files of the player itself, such as the modules of Python, out of
    a log; none if a glob cannot name the root."""
    globs = [f"!{place}/*" for place in dict.fromkeys((root.absolute(), resolve(root)))]
    text = ":".join([*globs, "*"])
    is_valid = text.count(":") == len(globs) and len(os.fsencode(text)) <= _LONGEST_GLOBS
    return {"PARIO_TRACE_EXCLUDE": text} if is_valid else {}


def _relocate_settings(settings: SettingsFile) -> SettingsFile:
    """Convert settings for paths of the run to those of a replay, which end with the same
    paths."""
    sections = (
        replace(one, match=f"*{one.match}") if one.match.startswith("/") else one
        for one in settings.sections
    )
    return replace(settings, sections=tuple(sections))
