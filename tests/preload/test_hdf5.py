"""Calls of HDF5: counted by dataset, forwarded to the HDF5 of the caller, without a change of the
program's data."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from pario.see.tables.model import LAYERS
from tests.preload.conftest import VICTIMS, Compile, Run, Trace
from tests.support.commands import run_command

ROWS, COLUMNS, ELEMENT = 40, 30, 8
READ, READ_BY_CHILD = 10, 5  # rows
CHUNKS_OF_COLUMN = 2
INCLUDE, LIBRARIES = "/usr/include/hdf5", "/usr/lib/x86_64-linux-gnu/hdf5"


def flags_of(variant: str) -> tuple[str, ...]:
    """Returns the compiler's options for a variant of Debian's HDF5."""
    if not Path(INCLUDE, variant, "hdf5.h").exists():
        pytest.skip(f"needs {INCLUDE}/{variant}/hdf5.h")
    mpi = ("-I/usr/include/x86_64-linux-gnu/mpich",) if variant == "mpich" else ()
    return (
        "-O1",
        f"-I{INCLUDE}/{variant}",
        *mpi,
        f"-L{LIBRARIES}/{variant}",
        "-Wl,--no-as-needed",
        "-lhdf5_hl",
        "-lhdf5",
    )


@pytest.fixture(scope="module")
def program(build: Compile) -> Path:
    return build("hdf5.c", *flags_of("serial"))


@pytest.fixture
def run(trace: Trace, program: Path) -> Run:
    done = trace(program, "data.h5")
    assert (done.status, done.stderr) == (0, "")
    return done


def test_output_is_that_of_a_run_without_tracing(run: Run, program: Path, work: Path) -> None:
    alone = run_command([program, "alone.h5"], cwd=work)
    assert run.stdout == alone.stdout
    assert (work / "data.h5").stat().st_size == (work / "alone.h5").stat().st_size


def test_transfers_are_counted_on_their_dataset(run: Run, work: Path) -> None:
    table = run.counts(f"{work}/data.h5:/group/table", "hdf5")
    reads = READ + READ_BY_CHILD
    assert (table["writes"], table["bytes_written"]) == (1, ROWS * COLUMNS * ELEMENT)
    assert (table["reads"], table["bytes_read"]) == (reads, reads * COLUMNS * ELEMENT)
    assert table["chunks_written"] == CHUNKS_OF_COLUMN * COLUMNS
    assert table["chunks_read"] == reads * COLUMNS
    assert (table["opens"], table["closes"], table["failed"]) == (2, 2, 0)


def test_calls_of_the_high_level_library_count_once(run: Run, work: Path) -> None:
    numbers = run.counts(f"{work}/data.h5:/numbers", "hdf5")
    assert (numbers["opens"], numbers["writes"], numbers["bytes_written"]) == (1, 1, 12)
    assert run.calls("H5Dwrite") == 2


def test_calls_on_the_file_have_a_row_of_its_own(run: Run, work: Path) -> None:
    file = run.counts(work / "data.h5", "hdf5")
    assert (file["opens"], file["closes"], file["others"]) == (2, 2, 1)
    assert run.counts(work / "missing.h5", "hdf5")["failed_opens"] == 1


def test_calls_on_files_are_counted_in_the_call_around_them(run: Run, work: Path) -> None:
    rows = [row for row in run.job.records if LAYERS[row["layer"]] == "hdf5"]
    posix = run.counts(work / "data.h5")
    for name in ("reads", "writes", "bytes_read", "bytes_written"):
        assert sum(int(row[f"inner_{name}"]) for row in rows) == posix[name] > 0
    for row in rows:
        assert 0 <= row["inner_read_time"] <= row["read_time"]
        assert 0 <= row["inner_write_time"] <= row["write_time"]


def test_the_child_of_a_fork_counts_on_the_datasets_of_its_parent(run: Run, work: Path) -> None:
    table = f"{work}/data.h5:/group/table"
    by_process = sorted(
        run.counts(table, "hdf5", int(pid))["reads"] for pid in run.job.processes["pid"]
    )
    assert by_process == [READ_BY_CHILD, READ]


def test_the_properties_of_a_dataset_are_noted(run: Run, work: Path) -> None:
    table = run.datasets()[f"{work}/data.h5:/group/table"]
    assert table.shape == (ROWS, COLUMNS)
    assert (table.layout, table.chunk, table.element) == ("chunked", (20, 1), ELEMENT)
    assert table.filters == ("shuffle", "deflate")
    assert table.cache == 1 << 20
    assert (table.write_box, table.read_box) == ((ROWS, COLUMNS), (1, COLUMNS))
    assert run.datasets()[f"{work}/data.h5:/numbers"].layout == "contiguous"


def test_the_private_library_of_h5py_is_traced(trace: Trace, work: Path) -> None:
    if importlib.util.find_spec("h5py") is None:
        pytest.skip("needs h5py")
    run = trace(sys.executable, VICTIMS / "hdf5_modules.py")
    assert (run.status, run.stdout, run.stderr) == (0, "45 35.0\n", "")
    elements = run.counts(f"{work}/python.h5:/runs/elements", "hdf5")
    assert (elements["writes"], elements["bytes_written"]) == (20, 160)
    assert (elements["reads"], elements["bytes_read"]) == (1, 40)
    assert (elements["opens"], elements["closes"]) == (2, 2)
    assert run.counts(f"{work}/python.h5:/runs/first", "hdf5")["reads"] == 1


def test_a_dataset_without_a_name_is_not_searched_for(trace: Trace, work: Path) -> None:
    if importlib.util.find_spec("h5py") is None:
        pytest.skip("needs h5py")
    run = trace(sys.executable, VICTIMS / "hdf5_modules.py")
    unnamed = run.counts(f"{work}/python.h5:(unnamed)", "hdf5")
    assert (unnamed["writes"], unnamed["bytes_written"]) == (1, 80)


def test_each_object_calls_its_own_library(trace: Trace, build: Compile, work: Path) -> None:
    plugin = build(
        "hdf5_plugin.c",
        *flags_of("mpich"),
        "-shared",
        "-fPIC",
        "-Dcount_numbers=count_numbers_of_plugin",
    )
    program = build("hdf5_two.c", str(VICTIMS / "hdf5_plugin.c"), *flags_of("serial"), "-ldl")
    run = trace(program, plugin)
    assert (run.status, run.stdout, run.stderr) == (0, "5 5 5\n", "")
    assert run.counts(f"{work}/main.h5:/numbers", "hdf5")["writes"] == 2
    assert run.counts(f"{work}/plugin.h5:/numbers", "hdf5")["reads"] == 1


def test_without_hdf5_a_weak_reference_returns_an_error(trace: Trace, build: Compile) -> None:
    run = trace(build("hdf5_weak.c", "-O1"))
    assert (run.status, run.stdout) == (0, "0\n-1\n")
    assert "H5Fopen was called, but no loaded library has it" in run.stderr
