"""Fetches the sources of the suites: Debian's source packages with apt, PyPI's source archives with
pip.

They lie in PARIO_SUITES (else build/suites) and are fetched once.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
import tarfile
from pathlib import Path

from tests.support.commands import run_command
from tests.support.waiting import PATIENCE, LateError

ROOT = Path(__file__).parents[2]
SUITES = Path(os.environ.get("PARIO_SUITES") or ROOT / "build" / "suites").resolve()
#: Seconds for one step, which may build a large library.
_LIMIT = 15 * PATIENCE
_APT_TOOLS = ("apt-get", "dpkg-source")


class Unavailable(Exception):
    """A requirement of a suite is not available here; the text names it."""


class Failed(Exception):
    """A step of fetching or building failed; the text holds the command and its output."""


#: Packages that could not be fetched; this process does not try them again.
_NOT_FETCHED: dict[str, Unavailable | Failed] = {}


def source(name: str) -> Path:
    """Returns the folder with the sources of a package; fetches them if they are missing."""
    folder = SUITES / name
    SUITES.mkdir(parents=True, exist_ok=True)
    with (SUITES / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            _fetch(name, folder)
    return folder


def _fetch(name: str, folder: Path) -> None:
    if name in _NOT_FETCHED:
        raise _NOT_FETCHED[name]
    shutil.rmtree(folder, ignore_errors=True)
    try:
        (_from_pypi if name == "mpi4py" else _from_debian)(name, folder)
    except (Unavailable, Failed) as error:
        _NOT_FETCHED[name] = error
        raise
    (folder / ".complete").touch()


def run(command: list[str | Path], **options: object) -> None:
    """Runs a step of fetching or building; its output is shown only if it fails."""
    try:
        done = run_command(command, limit=_LIMIT, **options)
    except LateError as late:
        raise Failed(str(late)) from late
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name} ... {command[-1]}: {done.stderr or done.stdout}")


def _from_debian(name: str, folder: Path) -> None:
    if missing := [tool for tool in _APT_TOOLS if not shutil.which(tool)]:
        raise Unavailable(f"no {', '.join(missing)} to fetch Debian's source package of {name}")
    options = _apt_options()
    run(["apt-get", *options, "update"])
    with_files = SUITES / "packages"
    with_files.mkdir(exist_ok=True)
    run(["apt-get", *options, "source", "--download-only", name], cwd=with_files)
    run(["dpkg-source", "-x", max(with_files.glob(f"{name}_*.dsc")), folder])


def _apt_options() -> list[str]:
    """Makes a separate apt configuration, so that the machine's stays as it is."""
    apt = SUITES / "apt"
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (apt / "parts").mkdir(exist_ok=True)
    codename = platform.freedesktop_os_release()["VERSION_CODENAME"]
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "sources.list").write_text(
        f"deb-src [signed-by={key}] http://deb.debian.org/debian {codename} main\n"
    )
    places = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": apt / "parts",
        "Dir::State::lists": apt / "lists",
    }
    return [
        "-qq",
        *(word for key, value in places.items() for word in ("-o", f"{key}={value}")),
        "-o",
        "APT::Sandbox::User=root",
    ]


def _from_pypi(name: str, folder: Path) -> None:
    """pip needs an archive's build system to read its metadata, so the build system is installed
    aside."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        wanted = f"{name}=={version(name)}"
    except PackageNotFoundError:
        raise Unavailable(f"{name} is not installed") from None
    with_files, tools = SUITES / "packages", SUITES / "tools"
    with_files.mkdir(exist_ok=True)
    if not (tools / "bin" / "pip").exists():
        run([sys.executable, "-m", "venv", tools])
    run([tools / "bin" / "pip", "install", "-q", "setuptools", "wheel", "cython"])
    run(
        [
            tools / "bin" / "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--no-binary",
            ":all:",
            "-d",
            with_files,
            wanted,
        ]
    )
    with tarfile.open(max(with_files.glob(f"{name}-*.tar.gz"))) as archive:
        archive.extractall(SUITES, filter="data")
    next(path for path in SUITES.glob(f"{name}-*") if path.is_dir()).rename(folder)
