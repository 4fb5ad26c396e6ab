"""Calls of netCDF and PnetCDF: counted by variable, forwarded to the library of the caller, without
a change of the program's data."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preload.conftest import VICTIMS, Compile, Run, Trace
from tests.support.commands import run_command

pytestmark = pytest.mark.system

ROWS, COLUMNS, DOUBLE = 40, 30, 8
CHUNKS_OF_ROW, CHUNKS = 6, 24
EACH, STEPS, RANKS = 100, 3, 2
MPIEXEC = ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]


@pytest.fixture(scope="module")
def program(build: Compile) -> Path:
    if not Path("/usr/include/netcdf.h").exists():
        pytest.skip("needs /usr/include/netcdf.h")
    return build("netcdf.c", "-O1", "-Wl,--no-as-needed", "-lnetcdf")


@pytest.fixture
def run(trace: Trace, program: Path) -> Run:
    done = trace(program, "data.nc")
    assert (done.status, done.stderr) == (0, "")
    return done


def test_output_is_that_of_a_run_without_tracing(run: Run, program: Path, work: Path) -> None:
    alone = run_command([program, "alone.nc"], cwd=work)
    assert run.stdout == alone.stdout == "1\n2\n1\n1\n"
    assert (work / "data.nc").stat().st_size == (work / "alone.nc").stat().st_size


def test_transfers_are_counted_on_their_variable(run: Run, work: Path) -> None:
    table = run.counts(f"{work}/data.nc:/table", "netcdf")
    assert (table["writes"], table["bytes_written"]) == (ROWS, ROWS * COLUMNS * DOUBLE)
    assert (table["reads"], table["bytes_read"]) == (3, (ROWS * COLUMNS + 20) * DOUBLE)
    assert (table["chunks_written"], table["chunks_read"]) == (ROWS * CHUNKS_OF_ROW, CHUNKS + 4)
    assert table["failed"] == 1
    scalar = run.counts(f"{work}/data.nc:/scalar", "netcdf")
    assert (scalar["writes"], scalar["bytes_written"]) == (1, 4)
    inner = run.counts(f"{work}/data.nc:/group/inner", "netcdf")
    assert (inner["writes"], inner["bytes_written"]) == (2, (COLUMNS + 1) * 4)


def test_functions_for_each_type_count_as_one(run: Run) -> None:
    assert run.calls("nc_put_var") == 2
    assert run.calls("nc_put_vara") == ROWS


def test_calls_of_hdf5_inside_netcdf_count_once(run: Run, work: Path) -> None:
    assert run.calls("H5Dwrite") == 0
    file = run.counts(work / "data.nc", "netcdf")
    assert (file["opens"], file["closes"]) == (2, 2)
    posix = run.counts(work / "data.nc")
    assert file["inner_writes"] == posix["writes"] > 0
    assert run.counts(work / "missing.nc", "netcdf")["failed_opens"] == 1


def test_the_properties_of_a_variable_are_noted(run: Run, work: Path) -> None:
    table = run.datasets()[f"{work}/data.nc:/table"]
    assert (table.shape, table.element) == ((ROWS, COLUMNS), DOUBLE)
    assert (table.layout, table.chunk) == ("chunked", (10, 5))
    assert table.filters == ("shuffle", "deflate")
    assert table.cache > 0
    assert (table.write_box, table.read_box) == ((1, COLUMNS), (ROWS, COLUMNS))


def test_the_private_library_of_netcdf4_python_is_traced(trace: Trace, work: Path) -> None:
    if importlib.util.find_spec("netCDF4") is None:
        pytest.skip("needs netCDF4")
    run = trace(sys.executable, VICTIMS / "netcdf_modules.py")
    assert (run.status, run.stdout, run.stderr) == (0, "10.0\n", "")
    elements = run.counts(f"{work}/python.nc:/runs/elements", "netcdf")
    assert (elements["writes"], elements["bytes_written"]) == (20, 160)
    assert (elements["reads"], elements["bytes_read"]) == (1, 40)


def test_calls_of_fortran_programs_are_counted(trace: Trace, build: Compile, work: Path) -> None:
    if not Path("/usr/include/netcdf.mod").exists():
        pytest.skip("needs /usr/include/netcdf.mod")
    run = trace(build("netcdf.f90", "-I/usr/include", "-Wl,--no-as-needed", "-lnetcdff"))
    assert (run.status, run.stdout) == (0, "40.0\n")
    rows = run.counts(f"{work}/data.nc:/rows", "netcdf")
    assert (rows["writes"], rows["bytes_written"]) == (ROWS, ROWS * COLUMNS * DOUBLE)
    assert (rows["reads"], rows["bytes_read"]) == (1, COLUMNS * DOUBLE)
    values = run.counts(f"{work}/data.nc:/values", "netcdf")
    assert (values["writes"], values["bytes_written"]) == (ROWS * COLUMNS, ROWS * COLUMNS * DOUBLE)


def test_calls_of_parallel_netcdf_are_counted(trace: Trace, work: Path) -> None:
    folder = "/usr/lib/x86_64-linux-gnu/netcdf/mpi"
    if shutil.which("mpicc.openmpi") is None or not Path(folder, "include").exists():
        pytest.skip(f"needs mpicc.openmpi and {folder}/include")
    program = work / "netcdf_par"
    paths = [f"-I{folder}/include", f"-L{folder}", f"-Wl,-rpath,{folder}"]
    source = VICTIMS / "netcdf_par.c"
    run_command(["mpicc.openmpi", "-O1", source, "-o", program, *paths, "-lnetcdf"], status=0)
    run = trace(*MPIEXEC, program, "data.nc")
    assert (run.status, run.stdout) == (0, "0\n0\n")
    for name, calls in (("rows", ROWS * RANKS), ("whole", RANKS)):
        counts = run.counts(f"{work}/data.nc:/{name}", "netcdf")
        moved = RANKS * ROWS * COLUMNS * DOUBLE
        assert (counts["writes"], counts["bytes_written"]) == (calls, moved)
    file = run.counts(work / "data.nc", "netcdf")
    assert (file["opens"], file["closes"]) == (RANKS, RANKS)


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with PnetCDF, for Debian's Open MPI, with which Debian builds it."""
    if shutil.which("mpicc.openmpi") is None or not Path("/usr/include/pnetcdf.h").exists():
        pytest.skip("needs mpicc.openmpi and /usr/include/pnetcdf.h")
    made = tmp_path_factory.mktemp("pnetcdf") / "pnetcdf"
    source = str(VICTIMS / "pnetcdf.c")
    subprocess.run(["mpicc.openmpi", "-O1", source, "-o", str(made), "-lpnetcdf"], check=True)
    return made


def test_transfers_of_pnetcdf_are_counted_by_kind(trace: Trace, parallel: Path, work: Path) -> None:
    run = trace(*MPIEXEC, parallel, "data.nc")
    assert (run.status, run.stdout) == (0, "0\n0\n")
    steps = run.counts(f"{work}/data.nc:steps", "pnetcdf")
    assert (steps["writes"], steps["collective_writes"]) == (STEPS * RANKS, STEPS * RANKS)
    assert steps["bytes_written"] == STEPS * RANKS * EACH * DOUBLE
    alone = run.counts(f"{work}/data.nc:alone", "pnetcdf")
    assert (alone["writes"], alone["collective_writes"]) == (EACH * RANKS, 0)
    assert (alone["reads"], alone["bytes_read"]) == (RANKS, RANKS * RANKS * EACH * DOUBLE)
    later = run.counts(f"{work}/data.nc:later", "pnetcdf")
    assert (later["writes"], later["nonblocking_calls"]) == (2 * RANKS, 2 * RANKS)
    assert later["bytes_written"] == 35 * 4 * RANKS
    file = run.counts(work / "data.nc", "pnetcdf")
    assert (file["opens"], file["closes"], file["flushes"]) == (2 * RANKS, 2 * RANKS, RANKS)
