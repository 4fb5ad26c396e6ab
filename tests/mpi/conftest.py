"""The MPIs of this machine, and traced runs of the test programs under them.

tests/support/tiers.py assigns each MPI to a tier. Tests skip a missing MPI and name it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from pario.see.launch.environment import Settings, traced_environment
from pario.see.tables.model import Job
from pario.see.tables.read import read
from tests.support.commands import run_command

RANKS = 3
PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
AS_ROOT = ("--allow-run-as-root", "--oversubscribe")


@dataclass(frozen=True)
class Mpi:
    """One MPI implementation: its tools and its version text."""

    name: str
    cc: str
    launcher: str
    library: str  # prefix of its version text
    options: tuple[str, ...] = ()
    fc: str | None = None
    python: str | None = None
    file_prefix: str = ""  # ROMIO's prefix of file names

    def start(self, *command: str, ranks: int = RANKS) -> list[str]:
        return [self.launcher, *self.options, "-n", str(ranks), *command]

    def missing(self, *tools: str | None) -> str | None:
        """Returns the first missing tool among its own and the given ones, or None."""
        return next(
            (
                tool
                for tool in (self.cc, self.launcher, *tools)
                if not tool or not shutil.which(tool)
            ),
            None,
        )


def _here(name: str) -> str:
    return str(Path(sys.prefix) / "bin" / name)


_OMPI = str(ROOT / ".venv-ompi" / "bin")
_IMPI = ROOT / ".venv-impi"
MPIS = {
    mpi.name: mpi
    for mpi in (
        Mpi(
            "mpich-5",
            _here("mpicc"),
            _here("mpiexec"),
            "MPICH 5",
            python=sys.executable,
            file_prefix="ufs:",
        ),
        Mpi("mpich-5-abi", _here("mpicc_abi"), _here("mpiexec"), "MPICH 5", file_prefix="ufs:"),
        Mpi(
            "mpich-4",
            "mpicc.mpich",
            "mpiexec.mpich",
            "MPICH 4",
            fc="mpif90.mpich",
            file_prefix="ufs:",
        ),
        Mpi(
            "openmpi-4",
            "mpicc.openmpi",
            "mpiexec.openmpi",
            "Open MPI v4",
            AS_ROOT,
            fc="mpif90.openmpi",
        ),
        Mpi(
            "openmpi-5",
            f"{_OMPI}/mpicc",
            f"{_OMPI}/mpiexec",
            "Open MPI v5",
            AS_ROOT,
            python=f"{_OMPI}/python",
        ),
        # Programs for MPICH run with it. Its own transport for one host needs no libfabric.
        Mpi(
            "intel-mpi",
            _here("mpicc"),
            str(_IMPI / "bin" / "mpiexec.hydra"),
            "Intel(R) MPI Library",
            ("-genv", "I_MPI_FABRICS", "shm", "-genv", "LD_LIBRARY_PATH", str(_IMPI / "lib")),
            file_prefix="ufs:",
        ),
    )
}


def parameters(condition: Callable[[Mpi], object] = lambda mpi: True) -> list[object]:
    """Returns the MPIs that fulfil a condition, as parameters of a test."""
    chosen = [mpi for mpi in MPIS.values() if condition(mpi)]
    return [pytest.param(mpi, id=mpi.name) for mpi in chosen]


@dataclass
class Run:
    """One traced run: its log as tables, its output, the directory of its files."""

    job: Job
    status: int
    output: str
    errors: str
    directory: Path
    #: rank -> function -> calls, bytes
    functions: dict[int, dict[str, tuple[int, int]]] = field(init=False)

    def __post_init__(self) -> None:
        ranks = self.job.processes["rank"]
        self.functions = {int(rank): {} for rank in sorted(ranks[ranks >= 0])}
        for row in self.job.functions:
            own = ranks[row["process"]] >= 0
            if own and str(row["category"]) not in ("posix", "stdio", "peers"):
                calls = self.functions[int(ranks[row["process"]])]
                name = self.job.function_names[row["name"]]
                before = calls.get(name, (0, 0))
                calls[name] = (before[0] + int(row["calls"]), before[1] + int(row["bytes"]))


def environment(logs: Path) -> dict[str, str]:
    """Returns the environment of a traced program.

    PARIO_LIBRARY selects another build of the library than the installed one.
    """
    traced = traced_environment(os.environ, logs, Settings())
    traced["LD_PRELOAD"] = os.environ.get("PARIO_LIBRARY", traced["LD_PRELOAD"])
    return traced


def need(mpi: Mpi, *tools: str | None) -> None:
    if missing := mpi.missing(*tools):
        pytest.skip(f"{mpi.name}: {missing} is not here (make test-all installs it)")


def mpi4py_of(mpi: Mpi, place: Path) -> dict[str, str]:
    """Returns variables that make this Python's mpi4py use the MPI.

    ``place``: a directory for a link to the MPI's library.
    """
    if mpi.name.startswith("openmpi"):
        own = Path(mpi.launcher).parent.parent / "lib"
        return {
            "MPI4PY_MPIABI": "openmpi",
            "MPI4PY_LIBMPI": str(own / "libmpi.so.40") if mpi.python else "libmpi.so.40",
        }
    if mpi.python:
        return {}
    asked = [mpi.cc, "-print-file-name=libmpich.so.12"]  # Debian's name of libmpi.so.12
    library = run_command(asked, status=0).stdout.strip()
    link = place / "libmpi.so.12"
    if not link.is_symlink():
        link.symlink_to(library)
    return {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(place)}


@pytest.fixture(scope="session")
def run_traced(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Runs a program of ``programs`` under an MPI, once per session: ``run_traced(mpi, "talk.c")``.

    ``tool``: source of a profiling tool to preload behind pario's library. ``fails``: the program
    must fail.
    """

    @cache
    def run(
        mpi: Mpi, source: str, *arguments: str, tool: str | None = None, fails: bool = False
    ) -> Run:
        place = tmp_path_factory.mktemp(f"{mpi.name}-{Path(source).stem}")
        logs = place / "logs"
        logs.mkdir()
        command = mpi.start(*_command(mpi, PROGRAMS / source, place), str(place), *arguments)
        variables = environment(logs)
        if tool:
            variables["LD_PRELOAD"] += f":{_tool(mpi, PROGRAMS / tool, place)}"
        done = run_command(command, env=variables)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return Run(read([logs]), done.returncode, done.stdout, done.stderr, place)

    return run


def _command(mpi: Mpi, source: Path, place: Path) -> list[str]:
    if source.suffix == ".py":
        need(mpi, mpi.python)
        return [str(mpi.python), str(source)]
    return [str(compile_program(mpi, source, place))]


def compile_program(mpi: Mpi, source: Path, place: Path) -> Path:
    """Compiles a program of C or Fortran; skips the test if the MPI or its compiler is missing."""
    compiler = mpi.cc if source.suffix == ".c" else mpi.fc
    need(mpi, compiler)
    program = place / source.stem
    run_command(
        [str(compiler), "-O1", "-g", "-w", "-pthread", "-o", str(program), str(source)],
        status=0,
        cwd=place,
    )
    return program


def _tool(mpi: Mpi, source: Path, place: Path) -> Path:
    library = place / f"lib{source.stem}.so"
    run_command(
        [mpi.cc, "-w", "-shared", "-fPIC", "-o", str(library), str(source)],
        status=0,
        cwd=place,
    )
    return library


@pytest.fixture(scope="module", params=parameters(lambda mpi: mpi.name != "mpich-5-abi"))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI in turn, for modules that compile their program once per MPI."""
    chosen: Mpi = request.param
    return chosen
