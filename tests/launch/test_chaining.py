"""Programs under `pario run` and another tool: sanitizers, valgrind and Darshan."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path

import pytest

from pario.see.tables import read
from pario.see.tables.model import LAYERS, Job
from tests.launch.conftest import PARIO, PROGRAMS
from tests.suites.sources import SUITES
from tests.support.commands import run_command

pytestmark = pytest.mark.system

BYTES = {("posix", "out"): 3, ("stdio", "stream"): 4}
STATUS = 5
#: Addresses, process ids and numbers of leaks in reports of errors.
NUMBERS = re.compile(r"0x[0-9a-f]+|==\d+==|loss record \d+ of \d+")
#: The ways to link a program with the address sanitizer.
LINKED = {
    "shared": ["gcc", "-fsanitize=address"],
    "static": ["gcc", "-fsanitize=address", "-static-libasan"],
    "clang": ["clang-19", "-fsanitize=address"],
}
WRONG = ["none", "write", "fwrite", "store", "leak"]

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles ``programs/memory_errors.c`` by a command; skips tests without the compiler."""

    def compile_program(*command: str) -> Path:
        program = tmp_path_factory.mktemp("chaining") / "memory_errors"
        if shutil.which(command[0]) is None:
            pytest.skip(f"needs {command[0]}")
        source = PROGRAMS / "memory_errors.c"
        built = run_command([*command, "-g", "-O0", "-w", "-o", program, source])
        if built.returncode:
            pytest.skip(f"needs a compiler for {' '.join(command)}")
        return program

    return compile_program


def written_bytes(job: Job) -> dict[tuple[str, str], int]:
    """Returns the bytes written by layer and file name."""
    return {
        (LAYERS[row["layer"]], Path(job.path(row["file"])).name): int(row["bytes_written"])
        for row in job.records
        if row["bytes_written"] > 0
    }


def run_alone_and_recorded(
    place: Path, *command: object, **variables: str
) -> tuple[tuple[int, list[str]], tuple[int, list[str]], Job]:
    """Returns status and error summaries of a command without and with `pario run`, and the log."""
    outcomes = []
    for start in ([], [*PARIO, "run", "--no-report", "-o", "log", "--"]):
        done = run_command([*start, *command], cwd=place, env=os.environ | variables)
        lines = NUMBERS.sub("", done.stderr).splitlines()
        outcomes.append((done.returncode, [line for line in lines if "SUMMARY" in line]))
    return outcomes[0], outcomes[1], read(sorted((place / "log").glob("*.plog")))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("linked", LINKED)
def test_the_address_sanitizer_finds_the_same_errors(
    linked: str, wrong: str, build: Build, tmp_path: Path
) -> None:
    program = build(*LINKED[linked])
    alone, recorded, job = run_alone_and_recorded(tmp_path, program, wrong)
    assert recorded == alone
    assert alone[0] == STATUS if wrong == "none" else "AddressSanitizer" in alone[1][0]
    if wrong in ("none", "leak"):
        assert written_bytes(job) == BYTES


def test_a_preloaded_address_sanitizer_finds_errors_of_a_shared_library(
    build: Build, tmp_path: Path
) -> None:
    sanitizer = run_command(["gcc", "-print-file-name=libasan.so"]).stdout.strip()
    library = build("gcc", "-fsanitize=address", "-shared", "-fPIC", "-Dmain=run_wrongly")
    script = (
        "import ctypes, sys; run = ctypes.CDLL(sys.argv[1]).run_wrongly;"
        "run(2, (ctypes.c_char_p * 2)(b'', b'store'))"
    )
    variables = {"LD_PRELOAD": str(Path(sanitizer).resolve()), "ASAN_OPTIONS": "detect_leaks=0"}
    words = [sys.executable, "-c", script, library]
    alone, recorded, _ = run_alone_and_recorded(tmp_path, *words, **variables)
    assert recorded == alone
    assert "heap-buffer-overflow" in alone[1][0]


def test_a_program_with_the_thread_sanitizer_is_recorded(build: Build, tmp_path: Path) -> None:
    program = build("gcc", "-fsanitize=thread")
    alone, recorded, job = run_alone_and_recorded(tmp_path, program, "none")
    assert recorded == alone == (STATUS, [])
    assert written_bytes(job) == BYTES


@pytest.mark.parametrize(("wrong", "status"), [("none", STATUS), ("store", 9), ("leak", 9)])
def test_valgrind_finds_the_errors_of_the_program_and_no_others(
    wrong: str, status: int, build: Build, tmp_path: Path
) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    program = build("gcc")
    checked = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", program, wrong]
    outputs = [
        run_command([*start, *checked], cwd=tmp_path)
        for start in ([], [*PARIO, "run", "--no-report", "-o", "log", "--"])
    ]
    assert [done.returncode for done in outputs] == [status, status]
    alone, recorded = (NUMBERS.sub("", done.stderr) for done in outputs)
    assert recorded == alone
    job = read(sorted((tmp_path / "log").glob("*.plog")))
    assert written_bytes(job) == BYTES


def darshan_library() -> Path:
    """Returns the path of libdarshan.so for programs without MPI."""
    beside = SUITES / "darshan/lib/libdarshan.so"
    found = beside if beside.exists() else find_library("darshan")
    if not found:
        pytest.skip("needs libdarshan.so, in PARIO_SUITES/darshan/lib or where the linker looks")
    return Path(found)


def test_darshan_and_pario_record_the_same_run(build: Build, tmp_path: Path) -> None:
    library = darshan_library()
    pytest.importorskip("darshan")
    logs = tmp_path / "darshan"
    logs.mkdir()
    variables = {
        "LD_PRELOAD": str(library),
        "DARSHAN_LOG_DIR": str(logs),
        "DARSHAN_ENABLE_NONMPI": "1",
    }
    alone, recorded, job = run_alone_and_recorded(tmp_path, build("gcc"), "none", **variables)
    assert recorded == alone == (STATUS, [])
    of_program = sorted(logs.glob("*_memory_errors_*.darshan"))
    assert len(of_program) == 2
    for counted in (job, *(read([log]) for log in of_program)):
        assert written_bytes(counted).items() >= BYTES.items()
