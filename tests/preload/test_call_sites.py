"""Call sites: each traced call belongs to the line of the program that makes it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pario.see.analyze import analyze
from pario.see.analyze.libraries import is_user_code, user_depth
from pario.see.symbols import elf, resolve
from pario.see.tables.model import Job
from tests.preload.conftest import VICTIMS, Compile, Run, Trace
from tests.support.commands import run_command

NO_FRAME_POINTERS = ("-O2", "-fomit-frame-pointer")


def line_of(source: str, mark: str) -> int:
    """Returns the number of the line with a mark."""
    lines = (VICTIMS / source).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"mark: {mark}"))


def places(job: Job, path: Path, function: str) -> Counter[tuple[str, int]]:
    """Returns the calls of a function on a file by source and line of their call site."""
    found: Counter[tuple[str, int]] = Counter()
    for site in resolve(job).sites:
        here = site["file"] >= 0 and job.path(site["file"]) == str(path)
        if here and job.function_names[site["name"]] == function and site["stack"] >= 0:
            stack = job.stacks[site["stack"]]
            frame = stack[user_depth(stack)]
            found[frame.file.rpartition("/")[2], frame.line] += int(site["calls"])
    return found


def callers(job: Job, mark: int) -> Counter[int]:
    """Returns the calls whose call site is a line of sites.c, by the line of its caller there."""
    found: Counter[int] = Counter()
    for site in job.sites:
        stack = [frame for frame in job.stacks[site["stack"]] if is_user_code(frame)]
        if len(stack) > 1 and stack[0].line == mark:
            found[stack[1].line] += int(site["calls"])
    return found


@pytest.fixture(scope="module", params=[NO_FRAME_POINTERS, ("-O0",)], ids=["O2", "O0"])
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


@pytest.fixture
def run(trace: Trace, build: Compile, work: Path, flags: tuple[str, ...]) -> Run:
    done = trace(build("sites.c", *flags), work / "out")
    assert (done.status, done.stderr) == (0, "")
    return done


def test_each_write_of_a_c_program_belongs_to_its_line(run: Run, work: Path) -> None:
    at = {mark: ("sites.c", line_of("sites.c", mark)) for mark in MARKS}
    assert places(run.job, work / "out", "write") == {
        at["put"]: 300 + 100 + 200 + GENERATED + 1,
        at["variable"]: 184,
        at["handler"]: 3,
        at["coroutine"]: 4,
        at["thread"]: 4 * 5,
    }


MARKS = ("put", "variable", "handler", "coroutine", "thread")
GENERATED = 3  # calls through generated code


def test_opens_and_stdio_calls_belong_to_their_lines(run: Run, work: Path) -> None:
    job, path = run.job, work / "out"
    assert places(job, path, "open") == {("sites.c", line_of("sites.c", "open")): 1}
    assert set(places(job, path, "fread")) == {("sites.c", line_of("sites.c", "fread"))}


def test_one_function_is_attributed_to_each_of_its_callers(run: Run) -> None:
    found = callers(resolve(run.job), line_of("sites.c", "put"))
    assert found[line_of("sites.c", "caller-a")] == 300 + GENERATED
    assert found[line_of("sites.c", "caller-b")] == 100 + 1


def test_every_call_has_a_call_site(run: Run) -> None:
    job = run.job
    assert int(job.processes["sites_lost"].sum()) == 0
    functions: Counter[str] = Counter()
    for row in job.functions:
        functions[job.function_names[row["name"]]] += int(row["calls"])
    sites: Counter[str] = Counter()
    for row in job.sites:
        sites[job.function_names[row["name"]]] += int(row["calls"])
    assert sites == functions


def test_a_program_without_debug_information_has_functions(
    trace: Trace, build: Compile, work: Path
) -> None:
    program = build("sites.c", "-O1", "-g0")
    run = trace(program, work / "out")
    assert run.status == 0
    stacks = resolve(run.job).stacks
    names = {stack[user_depth(stack)].function for stack in stacks}
    assert {"put", "run_thread", "handle", "coroutine"} <= names


def test_a_stripped_program_runs_and_its_call_sites_name_the_program(
    trace: Trace, build: Compile, work: Path, tmp_path: Path
) -> None:
    program = shutil.copy(build("sites.c", "-O2"), tmp_path / "stripped")
    run_command(["strip", "-s", program], status=0)
    run = trace(program, work / "out")
    assert run.status == 0
    modules = {stack[user_depth(stack)].module for stack in resolve(run.job).stacks}
    assert str(program) in modules


def test_a_program_that_changed_after_the_run_gets_no_lines(
    trace: Trace, build: Compile, work: Path, tmp_path: Path
) -> None:
    program = Path(shutil.copy(build("sites.c", "-O2"), tmp_path / "changing"))
    run = trace(program, work / "out")
    shutil.copy(build("sites.c", "-O0"), program)
    assert elf.build_id(str(program))
    job = resolve(run.job)
    its = [frame for stack in job.stacks for frame in stack if frame.module == str(program)]
    assert its and not any(frame.line for frame in its)
    assert any("has changed since the run" in message for message in job.messages)


@pytest.mark.system
def test_inlined_functions_and_streams_of_cpp(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("sites.cpp", "-O2"), work / "values", work / "text")
    assert run.status == 0
    inlined = places(run.job, work / "values", "write")
    assert inlined == {("sites.cpp", line_of("sites.cpp", "inlined")): 50}
    stream = places(run.job, work / "text", "write")
    assert stream == {("sites.cpp", line_of("sites.cpp", "stream")): 40}
    lines = {frame.line for stack in run.job.stacks for frame in stack}
    assert line_of("sites.cpp", "caller") in lines


def test_fortran_statements(trace: Trace, build: Compile, work: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("needs gfortran")
    run = trace(build("sites.f90", "-O2"), work / "values")
    assert run.status == 0
    found = places(run.job, work / "values", "write")
    assert found == {("sites.f90", line_of("sites.f90", "flush")): 30}
    functions = {frame.function for stack in run.job.stacks for frame in stack}
    assert "output::save_values" in functions


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("native") / "libsites.so"
    source = VICTIMS / "sites_native.c"
    run_command(["gcc", "-g", "-O2", "-shared", "-fPIC", "-o", library, source], status=0)
    return library


@pytest.mark.parametrize("name", ["own", "3.11", "3.12", "3.13", "3.14"])
@pytest.mark.system
def test_python_lines_and_native_code_below_them(
    trace: Trace, work: Path, native: Path, name: str
) -> None:
    python = sys.executable if name == "own" else shutil.which(f"python{name}")
    if not python or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"needs python{name}")
    run = trace(python, VICTIMS / "sites.py", native, work / "out")
    assert (run.status, run.stderr) == (0, "")
    job = run.job
    written = places(job, work / "out", "write")
    assert written == {("sites.py", line_of("sites.py", "python")): 50}
    copied = places(job, work / "out.copy", "sendfile64") + places(job, work / "out.copy", "open64")
    assert set(copied) == {("sites.py", line_of("sites.py", "copy"))}
    below = places(job, work / "out.native", "write")
    assert below == {("sites_native.c", line_of("sites_native.c", "native")): 25}
    outer = line_of("sites.py", "extension-caller")
    assert any(
        stack[user_depth(stack)].file.endswith("sites_native.c")
        and outer in {frame.line for frame in stack}
        for stack in job.stacks
    )


def lines(job: Job, function: str) -> Counter[int]:
    """Returns the calls of a function by line of their call site, 0 for those without a stack."""
    found: Counter[int] = Counter()
    for site in job.sites:
        if job.function_names[site["name"]] == function:
            stack = job.stacks[site["stack"]] if site["stack"] >= 0 else ()
            found[stack[user_depth(stack)].line if stack else 0] += int(site["calls"])
    return found


@pytest.mark.system
def test_many_files_and_ever_new_stacks_keep_their_sums(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("sites_many.c", "-O2"), work)
    assert run.status == 0
    job = resolve(run.job)
    assert lines(job, "open")[line_of("sites_many.c", "many-files")] == 4000
    writes = lines(job, "write")
    lost = int(job.processes["sites_lost"].sum())
    late = line_of("sites_many.c", "late")
    assert sum(writes.values()) + lost == (16 + 1) * 1500
    assert set(writes) <= {0, line_of("sites_many.c", "many-stacks"), late}
    assert writes[late] == 1500
    assert places(job, work / "late", "write") == {("sites_many.c", late): 1500}
    unknown = writes[0] + lost
    assert bool(unknown) == any("have no line of the program" in text for text in job.messages)


@pytest.mark.system
def test_a_loop_after_many_imports_has_its_line(trace: Trace, work: Path, tmp_path: Path) -> None:
    package = tmp_path / "crowd"
    package.mkdir()
    for number in range(900):
        following = f"from crowd import m{number + 1}\n" if number % 9 < 8 else ""
        (package / f"m{number}.py").write_text(f"{following}NAME = {number}\n")
    (tmp_path / "loop.py").write_text(
        "import importlib, os\n"
        "for n in range(0, 900, 9): importlib.import_module(f'crowd.m{n}')\n"
        "out = os.open('out', os.O_CREAT | os.O_WRONLY)\n"
        "for n in range(2000): os.write(out, b'x')\n"
    )
    run = trace(sys.executable, tmp_path / "loop.py")
    assert (run.status, run.stderr) == (0, "")
    written = places(run.job, work / "out", "write")
    assert written["loop.py", 4] >= 2000 - 64  # the first ones may have no stack
    assert int(run.job.processes["sites_lost"].sum()) == 0


def test_the_setting_switches_call_sites_off(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("sites.c"), work / "out", env={"PARIO_TRACE_SITES": "no"})
    assert run.status == 0
    assert (len(run.job.sites), run.job.stacks) == (0, [])


@pytest.mark.system
@pytest.mark.parametrize(
    ("start", "program"), [('subprocess.run(["true"])', "true"), ('os.system("true")', r"(da)?sh")]
)
def test_a_storm_of_processes_names_the_line_that_starts_them(
    trace: Trace, tmp_path: Path, start: str, program: str
) -> None:
    script = tmp_path / "starts.py"
    script.write_text(f"import os, subprocess\nfor n in range(100):\n    {start}\n")
    run = trace(sys.executable, script)
    (storm,) = (one for one in analyze(run.job).findings if one.rule == "process-storm")
    title = "100 starts of programs for little work each: "
    assert re.fullmatch(rf"{title}({program}) 100", storm.title)
    assert [(site.file, site.line) for site in storm.sites] == [(str(script), 3)]
    assert storm.sites[0].calls >= 100
