"""Mounts a lab, finds it again, and takes it away without leaving anything."""

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
STATUS = (  # the attribute of the root by which a lab tells, and forgets, what it has counted
    "pario.lab"
)
_NOTE = "lab.json"
_GONE = (errno.ENOTCONN, errno.ECONNABORTED)  # what a mount answers whose process is gone, or going
_PATIENCE = 10.0  # seconds in which a lab should end


@dataclass(frozen=True)
class Model:
    """What a lab is like; the numbers that ``pario-lab`` takes."""

    targets: int = 8
    rate: int = 50 << 20  # bytes per second and target; 0: no limit
    latency: int = 1_000_000  # nanoseconds
    lock_handover: int = 2_000_000
    link: int = 0  # bytes per second and client; 0: no limit
    in_flight: int = 8
    ceph: bool = False
    process: bool = False
    cache: bool = False

    @property
    def words(self) -> list[str]:
        """As it takes them."""
        return [f"{name}={int(value)}" for name, value in vars(self).items()]


@dataclass
class Outcome:
    """Where a lab is now, and what was found there before."""

    point: Path
    backing: Path
    notes: list[str] = field(default_factory=list)


def up(point: Path, model: Model, backing: Path | None = None) -> Outcome:
    """Mounts. A lab that died there is cleared away, and its files are taken over."""
    point = point.absolute()
    notes = []
    if dead := _dead(point):
        _unmount(point, lazily=True)
        backing = backing or Path(dead.source)
        notes.append(f"a lab that had died was mounted at {point}; its files are in {dead.source}")
    elif (here := _mounted(point)) and here.type == TYPE:
        raise ParioError(f"{point} is a lab already; pario lab down {point} ends it")
    backing = (backing or point.with_name(point.name + ".lab")).absolute()
    command = [str(program()), str(backing), str(point), *model.words]
    _check(point, backing)
    made = [str(place) for place in (backing, point) if _make(place)]
    _note(backing, made)
    done = subprocess.run(command, capture_output=True, text=True, env=_plain_environment())
    if done.returncode != 0:
        _clear(backing)
        raise ParioError(_complaint(done))
    return Outcome(point, backing, notes)


def status(point: Path) -> dict[str, Any]:
    """What a lab is like, and what it has counted."""
    try:
        told = os.getxattr(point, STATUS)
    except OSError as error:
        if error.errno in _GONE:
            raise ParioError(
                f"the lab at {point} has died; pario lab up {point} mounts it again, pario lab down"
                " clears it away"
            ) from error
        raise ParioError(
            f"{point} is no lab; expected a directory mounted by pario lab up"
        ) from error
    value: dict[str, Any] = json.loads(told)
    return value


def reset(point: Path) -> None:
    """Counts from zero."""
    status(point)
    os.setxattr(point, STATUS, b"")


def down(point: Path, force: bool = False) -> None:
    """Unmounts, waits for the process to end, removes what ``up`` made."""
    point = point.absolute()
    dead = _dead(point)
    told: dict[str, Any] = {"backing": dead.source, "process": 0} if dead else status(point)
    _unmount(point, lazily=force or dead is not None)
    _wait(told["process"], point)
    _clear(Path(told["backing"]))


def _mounted(point: Path) -> Mount | None:
    at = [mount for _, mount in mounts() if mount.point == str(point)]
    return at[-1] if at else None


def _dead(point: Path) -> Mount | None:
    """The mount of a lab whose process is gone."""
    try:
        point.stat()
    except OSError as error:
        mount = _mounted(point)
        if error.errno in _GONE and mount and mount.type == TYPE:
            return mount
    return None


def program() -> Path:
    """The one that serves labs."""
    if named := os.environ.get("PARIO_LAB"):
        return Path(named)
    native = importlib.util.find_spec("pario._native")
    folders = [Path(native.origin).parent] if native and native.origin else []
    for folder in [*folders, Path(__file__).parents[2]]:
        if (folder / PROGRAM).exists():
            return folder / PROGRAM
    raise ParioError(
        f"{PROGRAM} is not there: libfuse3 was not, when pario was installed (Debian: apt-get"
        " install libfuse3-dev, then again)"
    )


def _check(point: Path, backing: Path) -> None:
    if not Path("/dev/fuse").exists():
        raise ParioError(
            "there is no /dev/fuse: this kernel, or this container, has no FUSE (docker: --device"
            " /dev/fuse --cap-add SYS_ADMIN)"
        )
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        raise ParioError(
            "fusermount3 is not installed, without which only root can mount (Debian: apt-get"
            " install fuse3)"
        )
    if point.exists() and any(point.iterdir()):
        raise ParioError(f"{point} is not empty: what is in it would be hidden")
    if backing.is_relative_to(point):
        raise ParioError(f"{backing} lies in {point}, where the lab will be")


def _make(place: Path) -> bool:
    """Whether it was not there."""
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise ParioError(f"{place}: {error.strerror}") from error
    return True


def _note(backing: Path, made: list[str]) -> None:
    """Says for ``down`` what is to be removed; what an earlier ``up`` made there still is."""
    earlier = _made(backing)
    (backing / _NOTE).write_text(
        json.dumps({"made": [*earlier, *(place for place in made if place not in earlier)]})
    )


def _made(backing: Path) -> list[str]:
    with suppress(OSError, ValueError, KeyError):
        return list(json.loads((backing / _NOTE).read_text())["made"])
    return []


def _clear(backing: Path) -> None:
    """Removes the directories that ``up`` made; the one with the files only then."""
    for place in map(Path, _made(backing)):
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
            f"{done.stderr.strip()}; programs that use it must end first, or --force takes it away"
            " under them"
        )


def is_running(process: int) -> bool:
    """Also not: one that has ended and that nobody has asked about yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def _wait(process: int, point: Path) -> None:
    begin, asked = time.monotonic(), False
    while is_running(process):
        passed = time.monotonic() - begin
        if passed > 1 and not asked:  # other mount namespaces have it, too
            os.kill(process, signal.SIGTERM)
            asked = True
        if passed > _PATIENCE:
            raise ParioError(f"process {process} still serves {point}; its files are kept")
        time.sleep(0.01)


def _plain_environment() -> dict[str, str]:
    """Without what is preloaded into the caller."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stderr.strip() or f"{PROGRAM} ended with status {done.returncode}"
    if "libfuse3.so" in text:
        return f"{text} (Debian: apt-get install libfuse3-3)"
    return text.removeprefix(f"{PROGRAM}: ")
