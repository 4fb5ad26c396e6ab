"""The labelled corpus: its table, and functions that build, prepare and run its programs."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.diagnosis import inputs
from tests.library import find_library
from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
LARGE_FILE = 1 << 20  # bytes
_SUFFIXES = {"c": "c", "c++": "cpp", "fortran": "f90", "python": "py", "shell": "sh"}
_INTERPRETERS = {"python": sys.executable, "shell": "bash"}


@dataclass(frozen=True)
class Program:
    """A row of programs.toml."""

    name: str
    language: str
    problem: str
    rules: tuple[str, ...] = ()  # empty: healthy
    size: int = 1
    ranks: int = 0
    counted: bool = False
    cold: bool = False
    results: tuple[str, ...] = ()
    differs: str = ""
    inputs: tuple[Mapping[str, Any], ...] = ()
    libraries: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """True if the program has no problem, and no twin."""
        return not self.rules

    @property
    def source(self) -> Path:
        """The source file."""
        folder = HERE / ("counted" if self.counted else "programs")
        return folder / f"{self.name}.{_SUFFIXES[self.language]}"

    @property
    def compiled(self) -> bool:
        """True if the program must be built."""
        return self.language not in _INTERPRETERS


@dataclass(frozen=True)
class Run:
    """A finished run."""

    seconds: float  # wall-clock time of the command
    output: str = field(repr=False)

    @property
    def truth(self) -> dict[str, Any]:
        """The line of JSON that a counted program prints."""
        return dict(json.loads(self.output))


@dataclass(frozen=True)
class Tracing:
    """pario's library, the directory for its logs, and settings of I/O as variables."""

    library: Path
    log: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Returns the variables that trace a command."""
        return {"LD_PRELOAD": str(self.library), "PARIO_TRACE_DIR": str(self.log), **self.settings}


def library() -> Path | None:
    """Returns the library to preload; None if it is not built."""
    return find_library()


@cache
def _read_table() -> dict[str, Any]:
    return tomllib.loads((HERE / "programs.toml").read_text())


@cache
def table() -> tuple[Program, ...]:
    """Returns all programs, the healthy ones last."""
    return tuple(
        Program(**{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()})
        for row in _read_table()["program"]
    )


def counted_programs() -> list[Program]:
    """Returns the programs that count their own calls."""
    return [program for program in table() if program.counted]


def select(names: Iterable[str]) -> list[Program]:
    """Returns the named programs in the order of the table. Raises KeyError for unknown names."""
    wanted = set(names)
    if unknown := wanted - {program.name for program in table()}:
        raise KeyError(f"programs that the table lacks: {', '.join(sorted(unknown))}")
    return [program for program in table() if program.name in wanted]


def mpiexec() -> Path | None:
    """Returns the launcher of the MPI beside this Python, if it has one."""
    launcher = BIN / "mpiexec"
    return launcher if launcher.exists() and (BIN / "mpicc").exists() else None


def find_missing(program: Program) -> str:
    """Returns the first requirement of a program that this machine lacks; empty if none."""
    if program.ranks and not mpiexec():
        return "mpiexec beside this Python (pip install mpich)"
    if program.compiled and not _find_compiler(program):
        return f"a compiler of {program.language}"
    for header in program.needs:
        if not Path(header).exists():
            return header
    for module in program.modules:
        if importlib.util.find_spec(module) is None:
            return f"the Python module {module}"
    return ""


def _find_compiler(program: Program) -> str | None:
    build = _read_table()["build"][program.language]
    if program.ranks:
        found = BIN / build["parallel"]
        return str(found) if found.exists() else None
    return shutil.which(build["serial"])


def build(directory: Path, *names: str) -> None:
    """Builds the named programs into ``directory``, or all that this machine can run."""
    chosen = select(names) if names else table()
    wanted = [program for program in chosen if program.compiled and not find_missing(program)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda program: _build_one(program, directory), wanted))


def _build_one(program: Program, directory: Path) -> None:
    target = directory / program.name
    if target.exists():
        return
    compiler = _find_compiler(program)
    assert compiler is not None
    flags = [*_read_table()["build"][program.language]["flags"], f"-I{program.source.parent}"]
    sources = [program.source, *([HERE / "counted/counted.c"] if program.counted else [])]
    run_command([compiler, *flags, "-o", target, *sources, *program.libraries], status=0)


def command(
    program: Program,
    built: Path,
    work: Path,
    *,
    scale: float = 1,
    repaired: bool = False,
) -> list[str]:
    """Returns the words that start a program, whose working directory must be ``work``."""
    launcher = [str(mpiexec()), "-n", str(program.ranks)] if program.ranks else []
    if program.compiled:
        start = [str(built / program.name)]
    else:
        start = [_INTERPRETERS[program.language], str(program.source)]
    if program.counted:
        arguments = ["--dir", str(work), "--scale", str(scale)]
        return [*launcher, *start, *arguments, *(["--repaired"] if repaired else [])]
    size = str(scaled_size(program, scale))
    return [*launcher, *start, size, *(["repaired"] if repaired else [])]


def scaled_size(program: Program, scale: float) -> int:
    """Returns the argument of a program at a scale."""
    return max(1, round(program.size * scale))


def prepare(program: Program, built: Path, work: Path, scale: float = 1) -> None:
    """Creates the input files and removes the files of earlier runs; not measured."""
    if program.counted:
        run_command([*command(program, built, work, scale=scale), "--prepare"], status=0)
        return
    names = [str(row.get("file") or row["folder"]) for row in program.inputs]
    clear(work, keep=names)
    for row in program.inputs:
        inputs.create(row, scaled_size(program, scale), work)
    if program.cold:
        for name in names:
            inputs.drop_from_cache(work / name)


def clear(work: Path, keep: Iterable[str] = ()) -> None:
    """Empties a working directory, except for the names in ``keep``: deletes large files, and moves
    the others into a directory beside it, which the caller removes at the end.

    ext4 does not use the inodes of deleted files again for some minutes. Until then each new file
    searches long for another one (0.6 ms instead of 0.03), which a benchmark would measure.
    """
    kept = set(keep)
    aside: Path | None = None
    for path in list(work.iterdir()):
        if path.name in kept:
            continue
        if path.is_file() and path.stat().st_size >= LARGE_FILE:
            path.unlink()
            continue
        aside = aside or Path(tempfile.mkdtemp(prefix="aside-", dir=work.parent))
        path.rename(aside / path.name)


def run(
    program: Program,
    built: Path,
    work: Path,
    *,
    repaired: bool = False,
    scale: float = 1,
    tracing: Tracing | None = None,
    prefix: Iterable[object] = (),
    variables: Mapping[str, str] | None = None,
) -> Run:
    """Runs a prepared program to its end, behind the words of ``prefix`` (a tracer)."""
    environment = {**os.environ, **(tracing.environment() if tracing else {}), **(variables or {})}
    words = [*prefix, *command(program, built, work, scale=scale, repaired=repaired)]
    start = time.perf_counter()
    done = run_command(words, status=0, cwd=work, env=environment, limit=3 * PATIENCE)
    return Run(time.perf_counter() - start, done.stdout)


def describe(program: Program) -> str:
    """Returns language and kind of a program: "C, 2 ranks"."""
    name = {"c": "C", "c++": "C++"}.get(program.language, program.language.capitalize())
    return f"{name}, {program.ranks} ranks" if program.ranks else name
