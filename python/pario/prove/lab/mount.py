"""Mounts a lab, finds a mounted one, and removes it without remains."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pario.errors import ParioError
from pario.fix.stripe.filesystem import Mount, mounts

PROGRAM = "pario-lab"
TYPE = "fuse.pario-lab"
#: The attribute of the root directory: reading it returns the counters, writing it resets them.
STATUS = "pario.lab"
_NOTE = "lab.json"
#: Errors of a mount whose process has ended, or is ending.
_GONE = (errno.ENOTCONN, errno.ECONNABORTED)
_PATIENCE = 10.0  # seconds within which a lab should end


@dataclass(frozen=True)
class Model:
    """The parameters of a lab, which are those of ``pario-lab``."""

    targets: int = 8
    rate: int = 50 << 20  # bytes per second and target; 0: no limit
    latency: int = 1_000_000  # nanoseconds
    metadata: int = 0  # nanoseconds of each request about names
    lock_handover: int = 2_000_000
    link: int = 0  # bytes per second and client; 0: no limit
    in_flight: int = 8
    ceph: bool = False
    process: bool = False
    cache: bool = False

    @property
    def words(self) -> list[str]:
        """The arguments of ``pario-lab``."""
        return [f"{name}={int(value)}" for name, value in vars(self).items()]


@dataclass
class Outcome:
    """The places of a mounted lab, and notes about a dead one that it replaced."""

    point: Path
    backing: Path
    notes: list[str] = field(default_factory=list)


def up(point: Path, model: Model, backing: Path | None = None) -> Outcome:
    """Mount a lab. A dead lab at the same place is unmounted, and its files are used. Raises
    ParioError."""
    point = point.absolute()
    notes = []
    if dead := _find_dead(point):
        _unmount(point, lazily=True)
        backing = backing or Path(dead.source)
        notes.append(f"a lab that had died was mounted at {point}; its files are in {dead.source}")
    elif (here := _find_mount(point)) and here.type == TYPE:
        raise ParioError(f"{point} is a lab already; pario lab down {point} ends it")
    backing = (backing or point.with_name(point.name + ".lab")).absolute()
    command = [str(program()), str(backing), str(point), *model.words]
    _check(point, backing)
    made = [str(place) for place in (backing, point) if _make(place)]
    _write_note(backing, made)
    done = subprocess.run(command, capture_output=True, text=True, env=_plain_environment())
    if done.returncode != 0:
        _clear(backing)
        raise ParioError(_complaint(done))
    return Outcome(point, backing, notes)


def status(point: Path) -> dict[str, Any]:
    """The parameters and counters of a lab. Raises ParioError."""
    try:
        text = os.getxattr(point, STATUS)
    except OSError as error:
        if error.errno in _GONE:
            raise ParioError(
                f"the lab at {point} has died; pario lab up {point} mounts it again, pario lab down"
                " removes it"
            ) from error
        raise ParioError(
            f"{point} is no lab; expected a directory mounted by pario lab up"
        ) from error
    value: dict[str, Any] = json.loads(text)
    return value


def reset(point: Path) -> None:
    """Reset the counters. Raises ParioError."""
    status(point)
    os.setxattr(point, STATUS, b"")


def down(point: Path, force: bool = False) -> None:
    """Unmount a lab, wait for its process to end, and remove the directories that ``up`` created.
    Raises ParioError."""
    point = point.absolute()
    dead = _find_dead(point)
    found: dict[str, Any] = {"backing": dead.source, "process": 0} if dead else status(point)
    _unmount(point, lazily=force or dead is not None)
    _wait(found["process"], point)
    _clear(Path(found["backing"]))


def _find_mount(point: Path) -> Mount | None:
    at = [mount for _, mount in mounts() if mount.point == str(point)]
    return at[-1] if at else None


def _find_dead(point: Path) -> Mount | None:
    """The mount of a lab whose process has ended."""
    try:
        point.stat()
    except OSError as error:
        mount = _find_mount(point)
        if error.errno in _GONE and mount and mount.type == TYPE:
            return mount
    return None


def program() -> Path:
    """The path of ``pario-lab``. Raises ParioError."""
    if named := os.environ.get("PARIO_LAB"):
        return Path(named)
    native = importlib.util.find_spec("pario._native")
    folders = [Path(native.origin).parent] if native and native.origin else []
    for folder in [*folders, Path(__file__).parents[2]]:
        if (folder / PROGRAM).exists():
            return folder / PROGRAM
    raise ParioError(
        f"{PROGRAM} is missing: only a build with libfuse3 has it, wheels have not (Debian: apt-get"
        " install libfuse3-dev, then pip install . in pario's source folder)"
    )


def _check(point: Path, backing: Path) -> None:
    if not Path("/dev/fuse").exists():
        raise ParioError(
            "/dev/fuse is missing: this kernel, or this container, has no FUSE (docker: --device"
            " /dev/fuse --cap-add SYS_ADMIN)"
        )
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        raise ParioError(
            "fusermount3 is not installed; without it, only root can mount (Debian: apt-get"
            " install fuse3)"
        )
    if point.exists() and any(point.iterdir()):
        raise ParioError(f"{point} is not empty: a lab would hide its files")
    if backing.is_relative_to(point):
        raise ParioError(f"{backing} lies in {point}, the mount point of the lab")


def _make(place: Path) -> bool:
    """Create a directory; False if it exists already."""
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise ParioError(f"{place}: {error.strerror}") from error
    return True


def _write_note(backing: Path, made: list[str]) -> None:
    """Record the directories that ``down`` removes: those that this ``up``, or an earlier one,
    created."""
    earlier = _read_note(backing)
    (backing / _NOTE).write_text(
        json.dumps({"made": [*earlier, *(place for place in made if place not in earlier)]})
    )


def _read_note(backing: Path) -> list[str]:
    with suppress(OSError, ValueError, KeyError):
        return list(json.loads((backing / _NOTE).read_text())["made"])
    return []


def _clear(backing: Path) -> None:
    """Remove the directories that ``up`` created, the one with the files only if it is one of
    them."""
    for place in map(Path, _read_note(backing)):
        if place == backing:
            shutil.rmtree(place)
        else:
            with suppress(OSError):
                place.rmdir()


def _unmount(point: Path, lazily: bool) -> None:
    lazy = ["-l"] if os.geteuid() == 0 else ["-z"]
    tool = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
    done = subprocess.run(
        [*tool, *(lazy if lazily else []), str(point)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise ParioError(
            f"{done.stderr.strip()}; end the programs that use it first, or unmount it under them"
            " with --force"
        )


def is_running(process: int) -> bool:
    """True if a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def _wait(process: int, point: Path) -> None:
    begin, asked = time.monotonic(), False
    while is_running(process):
        passed = time.monotonic() - begin
        if passed > 1 and not asked:  # other mount namespaces may hold the mount
            os.kill(process, signal.SIGTERM)
            asked = True
        if passed > _PATIENCE:
            raise ParioError(f"process {process} still serves {point}; its files are kept")
        time.sleep(0.01)


def _plain_environment() -> dict[str, str]:
    """The environment without the libraries preloaded into this process."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stderr.strip() or f"{PROGRAM} ended with status {done.returncode}"
    if "libfuse3.so" in text:
        return f"{text} (Debian: apt-get install libfuse3-3)"
    return text.removeprefix(f"{PROGRAM}: ")
