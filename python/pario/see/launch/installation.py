"""Facts about this installation of pario, and about the machine as far as pario depends on it."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from urllib.parse import unquote

from pario import wording
from pario.errors import ParioError
from pario.launchers import find_mpiexec
from pario.see.launch import environment
from pario.version import version

#: Packages without which nearly nothing works: the dependencies of pyproject.toml.
REQUIRED = ("numpy", "rich", "jinja2")
#: Packages that features need, and the features.
OPTIONAL = {
    "pyarrow": "Parquet files",
    "darshan": "Darshan logs",
    "h5py": "pario.checkpoint",
    "mpi4py": "pario bench, checkpoints of several ranks",
    "matplotlib": "pictures of reports as PNG",
}
#: The launchers that the tests use: words of their version, name, and the major versions.
_TESTED = (
    (re.compile(r"HYDRA.*?Version:\s*(\d[\w.]*)", re.DOTALL), "MPICH", ("4", "5")),
    (re.compile(r"\((?:Open MPI|OpenRTE)\) (\d[\w.]*)"), "Open MPI", ("4", "5")),
    (re.compile(r"Intel\(R\) MPI Library.*?Version (\d[\w.]*)"), "Intel MPI", ()),
)
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_SECONDS = 20
_FEW_FILES = 1024
_SMALL_MEMORY = 64 << 20


@dataclass(frozen=True)
class Fact:
    """One line: its subject, its value, and the problem with its remedy ("" : none)."""

    subject: str
    value: str
    problem: str = ""


def list_facts() -> Iterator[Fact]:
    """Yields all facts, the installation first. Runs ``true`` and ``mpiexec --version``."""
    yield Fact("pario", f"{version()}, {describe_origin()}")
    yield Fact("Python", f"{platform.python_version()}, {sys.executable}")
    yield from _describe_library()
    yield _describe_module()
    yield _describe_mpi()
    yield from _describe_packages()
    yield _describe_shared_memory()
    yield from _describe_limits()
    yield _describe_rings()
    yield _describe_fuse()
    yield from _describe_blocks()


def describe_origin() -> str:
    """How this copy was installed: "from a wheel by pip", "editable from /src/pario"."""
    try:
        installed = metadata.distribution("pario")
    except metadata.PackageNotFoundError:
        return f"not installed, imported from {Path(__file__).parents[2]}"
    installer = (installed.read_text("INSTALLER") or "an unknown installer").strip()
    url = json.loads(installed.read_text("direct_url.json") or "{}")
    place = unquote(str(url.get("url", ""))).removeprefix("file://")
    if url.get("dir_info", {}).get("editable"):
        return f"editable from {place} by {installer}"
    tag = re.search(r"^Tag: (\S+)", installed.read_text("WHEEL") or "", re.MULTILINE)
    kind = tag[1] if tag else "unknown"
    built = "" if "manylinux" in kind else ", compiled on this machine"
    source = f" of {place}" if place else ""
    return f"wheel {kind}{source} by {installer}{built}"


def _describe_library() -> Iterator[Fact]:
    try:
        library = environment.library()
    except ParioError as error:
        yield Fact("library", "missing", f"{error}; install pario again")
        return
    try:
        versions = _GLIBC.findall(library.read_bytes())
    except OSError as error:
        yield Fact("library", str(library), f"cannot be read: {error.strerror}")
        return
    if not versions:
        yield Fact("library", str(library), "no library, or a part of one: install pario again")
        return
    yield Fact("library", str(library))
    needed = max((int(major), int(minor)) for major, minor in versions)
    wanted = ".".join(map(str, needed))
    present = platform.libc_ver()[1] or "unknown"
    parts = [int(part) for part in re.findall(r"\d+", present)[:2]]
    newer = f"needs glibc {wanted}; install a wheel, or compile pario here"
    yield Fact(
        "glibc",
        f"{present}; the library needs {wanted}",
        newer if parts and tuple(parts) < needed else "",
    )
    yield _try_preload(library)


def _describe_module() -> Fact:
    """The extension module, which is made for some versions of Python and one processor."""
    try:
        from pario import _native
    except ImportError as error:
        return Fact("module", "fails", f"{error}: install pario again for this Python")
    return Fact("module", f"works ({Path(_native.__file__).name})")


def _try_preload(library: Path) -> Fact:
    program = shutil.which("true") or "/bin/true"
    variables = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run([program], env=variables, capture_output=True, timeout=_SECONDS)
    message = done.stderr.decode(errors="replace").strip()
    if done.returncode == 0 and not message:
        return Fact("preload", f"works ({program})")
    return Fact("preload", "fails", message or f"{program} ended with status {done.returncode}")


def _describe_mpi() -> Fact:
    found = find_mpiexec()
    if found is None:
        return Fact("MPI", "no mpiexec beside this Python or on the PATH")
    try:
        done = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Fact("MPI", found, f"mpiexec --version: {error}")
    return Fact("MPI", f"{judge_mpi(done.stdout)}, {found}")


def judge_mpi(text: str) -> str:
    """Names the MPI whose ``mpiexec --version`` printed a text, and whether tests use it."""
    for pattern, name, majors in _TESTED:
        if match := pattern.search(text):
            known = match[1].split(".")[0] in majors
            return f"{name} {match[1]} ({'tested' if known else 'not tested in this version'})"
    return "an MPI that pario's tests do not know"


def _describe_packages() -> Iterator[Fact]:
    if absent := [name for name in REQUIRED if not util.find_spec(name)]:
        names = " ".join(absent)
        yield Fact("required", f"without {', '.join(absent)}", f"pip install {names}")
    present = [name for name in OPTIONAL if util.find_spec(name)]
    yield Fact("packages", ", ".join(present) or "no optional ones")
    missing = [f"{name} ({use})" for name, use in OPTIONAL.items() if name not in present]
    if missing:
        yield Fact("missing", "; ".join(missing))


def _describe_shared_memory() -> Fact:
    try:
        facts = os.statvfs("/dev/shm")
    except OSError as error:
        return Fact("/dev/shm", "missing", f"ranks of a node exchange data there: {error.strerror}")
    free = facts.f_bavail * facts.f_frsize
    small = "ranks of a node exchange data there (docker: --shm-size 1g)"
    return Fact("/dev/shm", f"{wording.size(free)} free", small if free < _SMALL_MEMORY else "")


def _describe_limits() -> Iterator[Fact]:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield Fact(
        "open files",
        f"{_limit(files)} (ulimit -n; at most {_limit(most)})",
        "logs of many files need more: ulimit -n 4096" if 0 <= files < _FEW_FILES else "",
    )
    size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    problem = "logs and outputs end there: ulimit -f unlimited" if size >= 0 else ""
    yield Fact("file size", "unlimited" if size < 0 else f"{size:,} bytes (ulimit -f)", problem)


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else f"{value:,}"


def _describe_rings() -> Fact:
    states = {"0": "allowed", "1": "allowed for root and one group", "2": "forbidden"}
    try:
        state = Path("/proc/sys/kernel/io_uring_disabled").read_text(encoding="ascii").strip()
    except OSError:
        state = "0"  # kernels before 6.6 have no such switch
    return Fact("io_uring", f"{states.get(state, state)} by the kernel (pario bench api)")


def _describe_blocks() -> Iterator[Fact]:
    """The cache of blocks of objects (``docs/object-stores.md``), if there is one."""
    try:
        from pario import _native
    except ImportError:
        return  # _describe_module names it
    try:
        cache = _native.describe_block_cache()
    except OSError as error:
        yield Fact("blocks", "no object can be opened", error.strerror or str(error))
        return
    if cache:
        directory, most, size = cache
        used = f"{wording.size(size)} of {wording.size(most)}"
        yield Fact("blocks", f"{used} of objects in {os.fsdecode(directory)}")


def _describe_fuse() -> Fact:
    try:
        places = [Path("/dev/fuse"), environment.library().with_name("pario-lab")]
    except ParioError:
        return Fact("pario lab", "not available: no library")
    absent = [place.name for place in places if not place.exists()]
    return Fact("pario lab", f"not available: no {', no '.join(absent)}" if absent else "available")
