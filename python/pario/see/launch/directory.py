"""The log directory of a run, which the launchers of one job share; ``job.json`` describes it.

Under ``mpiexec -n 4 pario run -- ./app`` the launchers do not know each other. The one of rank 0
makes a new directory. The others look for a recent directory for the same command and number of
ranks in which their seat is free; they take it by exclusive creation of ``launcher.RANK.json``. A
host that does not share rank 0's working directory gets its own directory.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from pario.errors import ParioError
from pario.launchers import Seat
from pario.messages import print_note
from pario.publishing import replacing
from pario.see.launch.process import Ending
from pario.version import version

_DEFAULT = "run.pario"
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600
_RECENT_SECONDS = 30.0  # the greatest age of a directory that a launcher joins
_LOOK_SECONDS = 15.0  # a launcher searches for so long before it makes one for its host
_LINGER_SECONDS = 60.0  # rank 0 waits so long for the ends of the other launchers


@dataclass(frozen=True)
class Place:
    """A joined log directory."""

    path: Path
    seat: Seat
    command: tuple[str, ...]

    def announce(self, text: str) -> None:
        """Print a line to standard error on rank 0; "recording" lines only to a terminal."""
        if self.seat.is_first and (sys.stderr.isatty() or not text.startswith("pario: recording")):
            print_note(text)

    def record_end(self, start: float, ended: Ending) -> None:
        """Write the end of the command: for this seat, and on rank 0 for the job."""
        times = {"start": start, "end": time.time()}
        description = _description(self.command, self.seat)
        ending = {**description, **times, "exit_status": ended.status, "pid": ended.pid}
        if ended.io:
            ending["io"] = dict(ended.io)
        if self.seat.size > 1:
            _write(self._seat_file(self.seat.rank), ending)
        if self.seat.is_first:
            _write(self.path / "job.json", ending)

    def discard(self) -> None:
        """Remove the directory of a program that did not start, unless another launcher or the
        user has files in it."""
        if self.seat.size > 1:
            return
        (self.path / "job.json").unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def wait_for_others(self, start: float) -> None:
        """Wait until the other launchers have written their ends, at most a minute (one may have
        been killed)."""
        deadline = time.monotonic() + _LINGER_SECONDS
        while time.monotonic() < deadline and any(
            self._is_expected(rank, start) for rank in range(1, self.seat.size)
        ):
            time.sleep(0.02)

    def _is_expected(self, rank: int, start: float) -> bool:
        """Return True if the rank's launcher may still write its end. A launcher that has not
        joined ``_LOOK_SECONDS`` after the start never will."""
        seat_file = self._seat_file(rank)
        return "end" not in _read(seat_file) and (
            seat_file.exists() or time.time() < start + _LOOK_SECONDS
        )

    def _seat_file(self, rank: int) -> Path:
        return self.path / f"launcher.{rank}.json"


def join(wanted: Path | None, seat: Seat, command: Sequence[str]) -> Place:
    """Return the log directory of this launcher: rank 0 makes it, the others find it.

    Raises ParioError if it cannot be made, has logs already, or (other ranks) did not appear and
    cannot be made.
    """
    words = tuple(command)
    if not seat.is_first:
        return Place(_find(wanted, seat, words), seat, words)
    path = make(wanted)
    _write(path / "job.json", {**_description(words, seat), "start": time.time()})
    return Place(path.absolute(), seat, words)


def _description(command: tuple[str, ...], seat: Seat) -> dict[str, Any]:
    return {
        "pario": version(),
        "command": list(command),
        "launchers": seat.size,
        "host": socket.gethostname(),
        "launcher_pid": os.getpid(),
    }


def _candidates(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        yield wanted
        return
    yield Path(_DEFAULT)
    stem, suffix = _DEFAULT.split(".")
    yield from (Path(f"{stem}-{number}.{suffix}") for number in itertools.count(2))


def find_free_name(folder: Path) -> Path:
    """Return the next default name of a log directory that is free in ``folder``, relative to
    it."""
    return next(path for path in _candidates(None) if not (folder / path).exists())


def make(wanted: Path | None) -> Path:
    """Return a new or empty directory: the wanted one, or the next run.pario. Raises ParioError if
    it cannot be made, or is not empty."""
    for path in _candidates(wanted):
        try:
            _make_private(path, parents=wanted is not None)
            return path
        except FileExistsError:
            if wanted is not None and path.is_dir() and not any(path.iterdir()):
                return path
            if wanted is not None:
                raise ParioError(
                    f"{path} exists already; expected a new or empty directory for the logs"
                ) from None
        except OSError as error:
            raise _describe_failure(path, error) from error
    raise AssertionError("unreachable: candidates are endless")


def _describe_failure(path: Path, error: OSError) -> ParioError:
    return ParioError(
        f"cannot make the log directory {path}: {error.strerror}; choose another with -o DIR"
    )


def _find(wanted: Path | None, seat: Seat, command: tuple[str, ...]) -> Path:
    start = time.monotonic()
    while time.monotonic() < start + 2 * _LOOK_SECONDS:
        for path in itertools.takewhile(Path.exists, _candidates(wanted)):
            if _is_ours(path, seat, command) and _take(path, seat, command):
                return path.absolute()
        time.sleep(0.02)
        if time.monotonic() > start + _LOOK_SECONDS:
            _make_for_host(wanted, seat, command)
    raise ParioError(
        f"rank {seat.rank} on {socket.gethostname()}: {wanted or _DEFAULT} exists already; expected"
        " a new or empty directory"
    )


def _make_for_host(wanted: Path | None, seat: Seat, command: tuple[str, ...]) -> None:
    """Make a directory for the launchers of this host. A directory that another launcher made
    meanwhile is left alone."""
    path = next(path for path in _candidates(wanted) if wanted is not None or not path.exists())
    try:
        if wanted is None or not path.is_dir():
            _make_private(path, parents=wanted is not None)
        with _create_private(path / "job.json") as file:
            json.dump({**_description(command, seat), "start": time.time()}, file)
    except FileExistsError:
        return
    except OSError as error:
        raise _describe_failure(path, error) from error
    print_note(
        f"pario: rank {seat.rank} does not see rank 0's log directory; recording into"
        f" {path.absolute()} on {socket.gethostname()}"
    )


def _is_ours(path: Path, seat: Seat, command: tuple[str, ...]) -> bool:
    job = _read(path / "job.json")
    recent = abs(time.time() - job.get("start", 0.0)) < _RECENT_SECONDS
    return recent and job.get("launchers") == seat.size and job.get("command") == list(command)


def _take(path: Path, seat: Seat, command: tuple[str, ...]) -> bool:
    try:
        with _create_private(path / f"launcher.{seat.rank}.json") as file:
            json.dump(_description(command, seat), file)
    except FileExistsError:
        return False
    return True


def _make_private(path: Path, *, parents: bool) -> None:
    """Make a directory that only the user can access, regardless of the umask, because logs hold
    command lines and environments. Missing parents get the usual permissions.
    """
    if parents and not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(_DIRECTORY_MODE)
    path.chmod(_DIRECTORY_MODE)


def _create_private(path: Path) -> TextIO:
    """Create a file for writing that only the user can access, regardless of the umask."""

    def create(name: str, flags: int) -> int:
        descriptor = os.open(name, flags, _FILE_MODE)
        os.fchmod(descriptor, _FILE_MODE)
        return descriptor

    return cast(TextIO, open(path, "x", encoding="utf-8", opener=create))


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file is missing or incomplete."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: dict[str, Any]) -> None:
    """Replace a file in one step, because other launchers may be reading it. An error such as a
    full disk is printed and does not end the run."""
    try:
        with replacing(path, durable=False) as file:
            os.fchmod(file.fileno(), _FILE_MODE)  # before it has contents
            file.write(json.dumps(content).encode() + b"\n")
    except ParioError as error:
        print_note(f"pario: {error}")
