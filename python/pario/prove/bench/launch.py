"""Starts the ranks of a benchmark, plain or under ``pario run``."""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pario.errors import ParioError
from pario.launchers import find_mpiexec


@dataclass(frozen=True)
class Request:
    """The worker's request for a comparison of patterns. ``dimensions``: 1 to 3; ``groups`` 0: half
    as many as ranks."""

    directory: str
    patterns: Sequence[str]
    size: int
    dimensions: int
    repeat: int
    groups: int = 0
    stripes: int = 0
    sync: bool = False


def launcher(words: str | None) -> list[str]:
    """The command of the MPI launcher: the one given, else the ``mpiexec`` beside this Python or on
    the PATH. Raises ParioError."""
    if words:
        try:
            return shlex.split(words)
        except ValueError as error:
            raise ParioError(f"--mpiexec {words}: {error}") from error
    found = find_mpiexec()
    if found is None:
        raise ParioError(
            "no mpiexec beside this Python or on the PATH; name one with --mpiexec (or: pip install"
            " mpich)"
        )
    return [found]


@dataclass(frozen=True)
class Checkpoints:
    """The worker's request for S3D's checkpoint. ``repeat`` 0: write each way once, untimed."""

    directory: str
    ways: Sequence[str]
    grid: Sequence[int]
    repeat: int


def measure(
    request: Request | Checkpoints,
    ranks: int,
    mpiexec: Sequence[str],
    *,
    mpiio: bool = False,
    log: Path | None = None,
) -> dict[str, Any]:
    """Run the worker on ``ranks`` ranks, with pario's MPI-IO if ``mpiio`` is set, traced into
    ``log`` if given; returns its result. Raises ParioError."""
    if importlib.util.find_spec("mpi4py") is None:
        raise ParioError(
            "pario bench uses MPI through mpi4py, which is not installed (pip install mpi4py)"
        )
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "result.json"
        work = json.dumps({**asdict(request), "output": str(output)})
        worker = (
            "pario.prove.bench.worker" if isinstance(request, Request) else "pario.prove.bench.s3d"
        )
        command = [*mpiexec, "-n", str(ranks), sys.executable, "-m", worker, work]
        if mpiio or log:
            options = [
                *(["--mpiio"] if mpiio else []),
                *([] if log else ["--no-report"]),
                "-o",
                str(log or Path(scratch) / "run.pario"),
            ]
            command = [sys.executable, "-m", "pario", "run", *options, "--", *command]
        status, errors = _run(command, quietly=log is not None)
        if status != 0 or not output.exists():
            print(errors, end="", file=sys.stderr)
            raise ParioError(f"the ranks ended with status {status}: {shlex.join(command[:-1])}")
        result: dict[str, Any] = json.loads(output.read_text())
        return {**result, "mpiio": mpiio}


def _run(command: Sequence[str], *, quietly: bool) -> tuple[int, str]:
    """Run a command; returns its exit status and, if ``quietly``, its output on stderr. The ranks
    end with this process."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if quietly else None, text=True
    ) as process:
        try:
            errors = process.communicate()[1] or ""
        except BaseException:
            process.terminate()  # launchers forward the signal to the ranks
            raise
    return process.returncode, errors
