"""Copies the files of a directory to or from another host by rsync, several at a time.

A copy is complete if its size and its time of modification are those of the original: rsync sets
the time last, after it has compared a checksum of the whole file. An interrupted transfer continues
behind the bytes that arrived. Remote commands are started by ``RSYNC_RSH``, as those of rsync.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from pario.errors import ParioError
from pario.progress import Show
from pario.wording import printable

#: Seconds without any byte after which rsync gives up.
_TIMEOUT = 600
#: Bytes of a line of rsync's progress, or less.
_LONGEST_LINE = 100
#: Exit status of ssh when it has no connection.
_NO_CONNECTION = 255
_HOST_PATH = re.compile(r"((?:[^/:@]+@)?(?:\[[0-9A-Fa-f:.]+\]|[^/:\[\]]+)):(.*)", re.DOTALL)
_WILDCARD = re.compile(r"[*?[]")
_LISTED = re.compile(r"-\S+ +(\d+) (\S+ \S+) (.+)")
_PROGRESS = re.compile(rb"\s*(\d+)\s+\d+%")
_SENT = re.compile(rb"Literal data: (\d+) bytes")
#: Lines of rsync that name no cause.
_VAGUE = re.compile(r"rsync error: |rsync: connection unexpectedly closed|.*\bBroken pipe\b|$")
_CAUSE = re.compile(r"rsync: (?:\[[\w ]+\] )?(.*?)(?: \(\d+\))?$")

#: Size and time of modification of each file, as rsync lists them.
Listing = Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class HostPath:
    """A directory on another host: ``host:path`` or ``user@host:path``."""

    host: str
    path: str

    def __str__(self) -> str:
        return f"{self.host}:{self.path}"

    @property
    def local(self) -> str:
        """The path as commands on that host take it; a relative one begins at the home
        directory."""
        path = os.path.normpath(self.path.removeprefix("~/"))
        return path if path.startswith("/") else f"./{path}"

    def sibling(self, name: str) -> HostPath:
        """A directory beside this one."""
        return HostPath(self.host, str(PurePosixPath(self.local).parent / name))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.local).name


Place = HostPath | Path


def host_path(text: str) -> HostPath | None:
    """The directory that ``host:path`` names; None for a local path, whose first colon is behind
    a slash. Raises ParioError for a host or path that rsync would misunderstand."""
    found = _HOST_PATH.fullmatch(text)
    if not found:
        return None
    host, path = found.groups()
    if host.startswith("-") or path.startswith(":") or not path.strip("/"):
        raise ParioError(
            f"{printable(text)}: expected HOST:PATH of a directory (./{printable(text)} is a local"
            " path)"
        )
    return HostPath(host, path)


def run_remotely(host: str, script: str, *arguments: str) -> tuple[int, str]:
    """Runs a script of the shell on a host; returns its status and its errors. Its commands may not
    read their input, which is the script: csh, a login shell, knows no words of several lines.

    Raises ParioError that names the host if it cannot be reached.
    """
    command = " ".join(map(shlex.quote, ("sh", "-s", "--", *arguments)))
    shell = _remote_shell()
    try:
        done = subprocess.run(
            [*shell, re.sub(r"[][]", "", host), command],
            input=script,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise ParioError(f"{shell[0]}: {error.strerror}; expected ssh") from error
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    reason = printable(lines[-1]) if lines else f"exit status {done.returncode}"
    if done.returncode == _NO_CONNECTION:
        raise ParioError(f"{printable(host)}: no connection: {reason}")
    return done.returncode, reason


def _remote_shell() -> list[str]:
    return shlex.split(os.environ.get("RSYNC_RSH", "")) or ["ssh"]


def require_rsync() -> None:
    """Raises ParioError if this host has no rsync."""
    if not shutil.which("rsync"):
        raise ParioError("rsync is not installed here; transfers to and from other hosts need it")


def list_files(place: Place) -> Listing:
    """The regular files of a directory. Raises ParioError if it cannot be listed."""
    done = subprocess.run(
        ["rsync", "--list-only", "--no-h", "-s", f"--timeout={_TIMEOUT}", "--", f"{_text(place)}/"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=_environment(),
    )
    if done.returncode:
        raise ParioError(f"{printable(str(place))}: {_cause(done.stderr, done.returncode)}")
    lines = map(_LISTED.fullmatch, done.stdout.splitlines())
    return {found[3]: (int(found[1]), found[2]) for found in lines if found}


def _text(place: Place) -> str:
    """The place as rsync takes it: on the other host, it expands wildcards that have no
    backslash."""
    if not isinstance(place, HostPath):
        return str(place.absolute())
    path = place.local
    if _WILDCARD.search(path):
        path = re.sub(r"[][*?\\]", r"\\\g<0>", path)
    return f"{place.host}:{path}"


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _cause(errors: str, status: int) -> str:
    """The first line of rsync's errors that names a cause."""
    lines = [line.strip() for line in errors.splitlines()]
    telling = [line for line in lines if not _VAGUE.match(line)] or [line for line in lines if line]
    if not telling:
        return f"rsync ended with exit status {status}"
    found = _CAUSE.fullmatch(telling[0])
    return printable(found[1] if found else telling[0])


@dataclass(frozen=True)
class Missing:
    """A file to be transferred, of which the target has ``begin`` bytes. ``replaces``: the target
    has a file that is no beginning of it."""

    name: str
    size: int
    begin: int
    replaces: bool


def missing_files(source: Listing, target: Listing) -> list[Missing]:
    """The files that the target lacks, or has in part; the longest transfers first."""
    found = []
    for name, facts in source.items():
        size, there = facts[0], target.get(name, (0, ""))
        if there != facts:
            replaces = there[0] >= size and name in target
            found.append(Missing(name, size, 0 if replaces else there[0], replaces))
    return sorted(found, key=lambda one: (one.begin - one.size, one.name))


class _Transfer:
    """A running rsync that copies one file."""

    def __init__(self, file: Missing, source: Place, target: Place, errors: IO[bytes]) -> None:
        self._file, self._target, self._errors = file, target, errors
        self.done, self.sent = 0, 0  # bytes that were missing; bytes that rsync has counted
        self._rest = b""  # of its output
        # rsync skips a longer file if it appends.
        way = ("--inplace", "--no-whole-file") if file.replaces else ("--append-verify",)
        options = ("-tp", "-s", "--no-h", "--info=progress2", "--stats", f"--timeout={_TIMEOUT}")
        ends = (f"{_text(source)}/{file.name}", f"{_text(target)}/")
        self.process = subprocess.Popen(
            ["rsync", *options, *way, "--", *ends],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # without a reader, rsync ends with its next progress line
            stderr=errors,
            env=_environment(),
        )

    def read(self) -> bool:
        """Reads the progress; False at its end."""
        assert self.process.stdout
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        text = self._rest + data
        for found in _PROGRESS.finditer(text):
            self.done = max(self.done, int(found[1]) - self._file.begin)
        if sent := _SENT.search(text):
            self.sent = int(sent[1])
        self._rest = text[-_LONGEST_LINE:]
        return bool(data)

    def finish(self) -> None:
        """Waits for the end. Raises ParioError that names the file and the cause."""
        status = self.process.wait()
        if status:
            self._errors.seek(0)
            cause = _cause(self._errors.read().decode("utf-8", "replace"), status)
            copy = f"{printable(str(self._target))}/{self._file.name}"
            raise ParioError(f"{copy}: {cause}; the same command continues the transfer")
        self.done = self._file.size - self._file.begin

    def end(self) -> None:
        """Ends the program if it runs."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


def transfer(source: Place, target: Place, listing: Listing, transfers: int, show: Show) -> int:
    """Copies the listed files of a directory, ``transfers`` at a time; returns the bytes sent.

    ``target`` is a directory that exists, one of both is a HostPath. Raises ParioError that names
    the file and the cause; the files and bytes that arrived stay.
    """
    missing = missing_files(listing, list_files(target))
    whole = sum(file.size - file.begin for file in missing)
    started: list[_Transfer] = []
    with ExitStack() as ends:
        running = ends.enter_context(selectors.DefaultSelector())

        def start() -> None:
            if file := next(waiting, None):
                one = _Transfer(file, source, target, ends.enter_context(tempfile.TemporaryFile()))
                ends.callback(one.end)
                started.append(one)
                assert one.process.stdout
                running.register(one.process.stdout, selectors.EVENT_READ, one)

        waiting = iter(missing)
        for _ in range(transfers):
            start()
        while running.get_map():
            for key, _ in running.select():
                if not key.data.read():
                    running.unregister(key.fileobj)
                    key.data.finish()
                    start()
            show(sum(one.done for one in started), whole)
    return sum(one.sent for one in started)
