"""Calls of ADIOS2: counted by variable through all bindings, without a change of the program's
data."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.preload.conftest import VICTIMS, Compile, Run, Trace
from tests.support.commands import run_command

pytestmark = pytest.mark.system

STEPS, COLUMNS, ELEMENTS, PART = 3, 500, 40, 20
DOUBLE, INTEGER = 8, 4


def find_package() -> Path:
    found = importlib.util.find_spec("adios2")
    if found is None or found.origin is None:
        pytest.skip("needs the package adios2")
    return Path(found.origin).parent


@pytest.fixture(scope="module")
def program(build: Compile) -> Path:
    folder = find_package()
    libraries = folder.parent / "adios2.libs"
    return build(
        "adios2.c",
        "-O1",
        f"-I{folder}/include",
        f"-L{folder}",
        "-Wl,--no-as-needed",
        "-ladios2_c",
        "-ladios2_core",
        f"-Wl,-rpath,{folder},-rpath-link,{libraries}",
    )


@pytest.fixture
def run(trace: Trace, program: Path) -> Run:
    done = trace(program, "data.bp")
    assert done.status == 0
    return done


def test_output_is_that_of_a_run_without_tracing(run: Run, program: Path, work: Path) -> None:
    alone = run_command([program, "alone.bp"], cwd=work)
    assert run.stdout == alone.stdout == "1\n930\n"
    data = [(work / name / "data.0").stat().st_size for name in ("data.bp", "alone.bp")]
    assert data[0] == data[1]


def test_transfers_are_counted_on_their_variable(run: Run, work: Path) -> None:
    field = run.counts(f"{work}/data.bp:/field", "adios2")
    assert (field["writes"], field["bytes_written"]) == (STEPS, STEPS * COLUMNS * DOUBLE)
    assert (field["reads"], field["bytes_read"]) == (STEPS, STEPS * PART * DOUBLE)
    assert field["nonblocking_calls"] == 2 * STEPS
    element = run.counts(f"{work}/data.bp:/group/element", "adios2")
    assert (element["writes"], element["bytes_written"]) == (ELEMENTS, ELEMENTS * INTEGER)
    assert element["nonblocking_calls"] == 0
    time = run.counts(f"{work}/data.bp:/time", "adios2")
    assert (time["writes"], time["bytes_written"]) == (STEPS, STEPS * 4)


def test_steps_are_counted_on_their_file(run: Run, work: Path) -> None:
    file = run.counts(f"{work}/data.bp", "adios2")
    assert (file["opens"], file["closes"]) == (2, 2)
    assert run.calls("adios2::BeginStep") == run.calls("adios2::EndStep") == 2 * STEPS + 1
    assert run.calls("adios2::PerformPuts") == run.calls("adios2::PerformGets") == STEPS
    posix = run.counts(f"{work}/data.bp/data.0")
    assert posix["bytes_written"] > STEPS * COLUMNS * DOUBLE
    assert file["inner_bytes_written"] >= posix["bytes_written"]


def test_engine_and_selections_of_a_variable_are_noted(run: Run, work: Path) -> None:
    field = run.datasets()[f"{work}/data.bp:/field"]
    assert (field.element, field.layout) == (DOUBLE, "BP5Writer")
    assert (field.write_box, field.read_box) == ((COLUMNS,), (PART,))


def test_calls_of_python_are_traced_after_exceptions_of_the_library(
    trace: Trace, work: Path
) -> None:
    find_package()
    run = trace(sys.executable, VICTIMS / "adios2_modules.py")
    assert (run.status, run.stdout) == (0, "missing\n" * 3 + f"{5 * 99 * 100 // 2}\n")
    value = run.counts(f"{work}/python.bp:/value", "adios2")
    assert (value["writes"], value["bytes_written"]) == (5, 5 * 8)
    block = run.counts(f"{work}/python.bp:/block", "adios2")
    assert (block["reads"], block["bytes_read"]) == (5, 5 * 100 * 4)
