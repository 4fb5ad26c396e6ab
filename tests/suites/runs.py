"""Runs programs of the suites and judges them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.mpi.conftest import Mpi
from tests.suites.recipes import build
from tests.suites.sources import SUITES, Failed, Unavailable
from tests.suites.sources import run as run_step
from tests.suites.table import Program, Suite
from tests.support.commands import run_job
from tests.support.waiting import FACTOR, LateError

SECONDS = 180 * FACTOR
#: Text that shows a failure for any exit status.
_WRONG = re.compile(r"Found\s+[1-9]\d* errors|fail with|FAILED|AddressSanitizer")


@dataclass(frozen=True)
class Result:
    """The verdict of one run (passed, failed or skipped), its reason and its wall time."""

    program: Program
    verdict: str
    why: str = ""
    output: str = ""
    seconds: float = 0.0


def under_pario(library: Path | None, extra: dict[str, str] | None = None) -> dict[str, str]:
    """Returns the environment in which a program uses pario's MPI-IO, or without a library its
    MPI's."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if library:
        environment |= {"LD_PRELOAD": str(library.resolve()), "PARIO_MPIIO": "1"}
    # Some programs store the distance of two allocations in an int, which works within one arena
    # only.
    return environment | {"MALLOC_ARENA_MAX": "1"} | (extra or {})


@cache
def patience() -> Path:
    """Builds the library with which waiting ranks leave the cores to others (patience.c)."""
    made = SUITES / "build" / "patience.so"
    made.parent.mkdir(parents=True, exist_ok=True)
    run_step(
        [
            "cc",
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            made,
            Path(__file__).with_name("patience.c"),
            "-ldl",
        ]
    )
    return made


def suite_environment(library: Path | None) -> dict[str, str]:
    environment = under_pario(library)
    environment["LD_PRELOAD"] = ":".join(
        filter(None, [environment.get("LD_PRELOAD"), str(patience())])
    )
    return environment


def run(
    suite: Suite, program: Program, mpi: Mpi, library: Path | None, seconds: float = SECONDS
) -> Result:
    """Builds and runs a program in an empty directory."""
    if mpi.name not in suite.mpis:
        return Result(program, "skipped", f"not built for {mpi.name}")
    cores = len(os.sched_getaffinity(0))
    if program.name in suite.polling and cores < program.ranks:
        return Result(program, "skipped", f"its {program.ranks} ranks poll, on {cores} cores")
    if missing := mpi.missing():
        return Result(program, "skipped", f"{mpi.name}: no {missing}")
    try:
        command = build(suite, program, mpi)
    except Unavailable as unavailable:
        return Result(program, "skipped", str(unavailable))
    except Failed as failed:
        return Result(program, "failed", f"not built: {_find_error_line(str(failed))}", str(failed))
    directory = SUITES / "run" / mpi.name / suite.name / f"{program.name}-{program.ranks}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    job = mpi.start(*command, *program.arguments, ranks=program.ranks)
    begin = time.monotonic()
    try:
        result = judge(
            suite, program, run_job(job, directory, suite_environment(library), limit=seconds)
        )
    except LateError as late:
        result = Result(program, "failed", f"did not end in {seconds:.0f} seconds", str(late))
    elapsed = time.monotonic() - begin
    (directory.parent / f"{directory.name}.output").write_text(result.output)
    shutil.rmtree(directory, ignore_errors=True)
    return replace(result, seconds=elapsed)


def judge(suite: Suite, program: Program, done: subprocess.CompletedProcess[str]) -> Result:
    why = ""
    if done.returncode != 0:
        why = f"status {done.returncode}"
    elif suite.expect not in done.stdout:
        why = f"does not print '{suite.expect}'"
    elif wrong := _WRONG.search(done.stdout):
        why = f"prints '{wrong[0]}'"
    if why:
        return Result(program, "failed", f"{why}: {_find_error_line(done.stdout)}", done.stdout)
    return Result(program, "passed", output=done.stdout)


def _find_error_line(output: str) -> str:
    """Returns the line that most probably names the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    likely = [
        line
        for line in lines
        if re.search(r"err|fail|abort|signal|differ|wrong|unexpected|expected", line, re.IGNORECASE)
    ]
    return (likely or lines or [""])[0][:160]
