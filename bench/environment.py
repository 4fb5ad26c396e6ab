"""Describes the environment of a measurement: machine, file system, versions, commit.

Every function reads /proc or asks a program; none of them changes anything. A fact that cannot be
found is None, so that a measurement never fails for the lack of one.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from pario.machine import count_processors

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"

#: Words of a processor's model name that do not tell two processors apart.
_NOISE = re.compile(
    r"\((?:r|tm)\)|@.*|\b(?:intel|amd|cpu|processor|core|platinum|gold|silver|bronze|\d+-core)\b"
)


def describe_environment(directories: Iterable[Path], launchers: Iterable[Path]) -> dict[str, Any]:
    """Returns the facts of env.json that stay the same during a measurement.

    ``directories`` are the measured ones, ``launchers`` the mpiexec of each MPI that is used.
    """
    return {
        "command": describe_command(),
        "settings": describe_settings(),
        **describe_commit(),
        "machine": describe_machine(),
        "file_systems": [describe_file_system(directory) for directory in directories],
        "versions": find_versions(launchers),
    }


def describe_machine() -> dict[str, Any]:
    """Returns processor, cores, memory and kernel."""
    return {
        "processor": find_processor(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        "cores": count_processors(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
    }


def find_processor(cpuinfo: str) -> str:
    """Returns the model name in the text of /proc/cpuinfo, else the architecture."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def derive_machine_name(processor: str, cores: int) -> str:
    """Returns a short name: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz" -> xeon-8481c-2c."""
    words = re.findall(r"[a-z0-9]+", _NOISE.sub(" ", processor.lower()))
    return "-".join([*words, f"{cores}c"])


def describe_file_system(directory: Path) -> dict[str, Any]:
    """Returns type, mount point and mount options of the file system that holds a directory."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    return find_mount(directory.resolve(), mounts)


def find_mount(directory: Path, mountinfo: str) -> dict[str, Any]:
    """Returns the mount of a directory in the text of /proc/self/mountinfo (proc(5)).

    Of several mounts on one point, the last one hides the others. Paths in options become "...".
    """
    found = {"type": "unknown", "mount": "", "options": ""}
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        point = mount.split()[4].replace("\\040", " ")
        if directory.is_relative_to(point) and len(point) >= len(found["mount"]):
            options = [*mount.split()[5].split(","), *source.split()[2].split(",")]
            shown = (re.sub(r"=.*/.*", "=...", option) for option in dict.fromkeys(options))
            found = {"type": source.split()[0], "mount": point, "options": ",".join(shown)}
    return found


#: Packages of other projects beside which benchmarks measure.
PEERS = (
    "adios2", "array_record", "darshan", "fsspec", "grain", "h5py", "mosaicml-streaming",
    "obstore", "orbax-checkpoint", "s3torchconnector", "safetensors", "torch", "webdataset",
    "zarr",
)  # fmt: skip


def find_peers() -> dict[str, str]:
    """Returns the versions of the installed packages of PEERS, of fio and of tar."""
    found = {}
    for package in PEERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    for program in ("fio", "tar"):
        if number := re.search(r"\d+\.\d[\d.]*", run_tool(program, "--version") or ""):
            found[program] = number[0]
    return found


def find_versions(launchers: Iterable[Path]) -> dict[str, Any]:
    """Returns the versions of Python, numpy, pario, gcc, the peers and the MPIs that are used."""
    versions: dict[str, Any] = {"python": platform.python_version()}
    for package in ("numpy", "pario"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    versions["gcc"] = run_tool("gcc", "-dumpfullversion")
    versions["peers"] = find_peers()
    if found := [find_mpi(launcher) for launcher in launchers]:
        versions["mpi"] = found
    return versions


def find_mpi(launcher: Path) -> str | None:
    """Returns "MPICH 5.0.2" or "Open MPI 4.1.4", as its mpiexec says."""
    text = run_tool(str(launcher), "--version") or ""
    if found := re.search(r"^\s*Version:\s*(\S+)", text, re.MULTILINE):
        return f"MPICH {found[1]}"
    found = re.search(r"\((?:OpenRTE|Open MPI|PRRTE)\)\s+(\S+)|\bOpen MPI\D+([\d.]+)", text)
    return f"Open MPI {found[1] or found[2]}" if found else None


def describe_commit() -> dict[str, Any]:
    """Returns the commit of the working tree, and whether anything but results differs from it."""
    status = run_tool("git", "status", "--porcelain", "--", ".", ":!bench/results")
    return {
        "commit": run_tool("git", "rev-parse", "HEAD"),
        "dirty": None if status is None else status != "",
    }


def describe_command() -> str:
    """Returns the command line of this process."""
    script = str(Path(sys.argv[0]).resolve())
    return " ".join(["python", *(shorten_path(word) for word in (script, *sys.argv[1:]))])


def describe_settings() -> dict[str, str]:
    """Returns the environment variables that pario reads."""
    return {
        name: shorten_path(value)
        for name, value in sorted(os.environ.items())
        if name.startswith("PARIO_")
    }


def shorten_path(text: str) -> str:
    """Returns a text with paths below the repository made relative to it."""
    return text.replace(f"{ROOT}/", "")


def run_tool(*command: str) -> str | None:
    """Returns the output of a program; None if it is missing or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
