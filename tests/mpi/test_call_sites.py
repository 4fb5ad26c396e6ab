"""Call sites of MPI programs: calls of the MPI library belong to the user's line, too."""

from collections import Counter

import pytest

from pario.see.analyze import analyze
from pario.see.analyze.libraries import user_depth
from pario.see.symbols import resolve
from tests.mpi.conftest import PROGRAMS, RANKS, Run, parameters

STEPS = 20


def line_of(mark: str) -> int:
    lines = (PROGRAMS / "sites.c").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"mark: {mark}"))


@pytest.fixture(scope="module", params=parameters(lambda mpi: mpi.name != "mpich-5-abi"))
def run(request, run_traced) -> Run:
    done = run_traced(request.param, "sites.c")
    resolve(done.job)
    return done


def places(run: Run, function: str) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    for site in run.job.sites:
        if run.job.function_names[site["name"]] == function:
            stack = run.job.stacks[site["stack"]]
            frame = stack[user_depth(stack)]
            found[frame.file.rpartition("/")[2], frame.line] += int(site["calls"])
    return found


@pytest.mark.system
@pytest.mark.parametrize(
    ("function", "mark"), [("MPI_File_write_at_all", "write"), ("MPI_Barrier", "barrier")]
)
def test_mpi_calls_belong_to_their_lines(run, function, mark):
    assert places(run, function) == {("sites.c", line_of(mark)): RANKS * STEPS}


@pytest.mark.system
def test_system_calls_of_the_mpi_library_belong_to_the_line_of_the_mpi_call(run):
    job, found = run.job, set()
    for site in job.sites:
        name = job.function_names[site["name"]]
        on_file = site["file"] >= 0 and job.path(site["file"]).endswith("sites.bin")
        if on_file and name.startswith(("write", "pwrite")):
            stack = job.stacks[site["stack"]]
            found.add(stack[user_depth(stack)].line)
    assert found == {line_of("write")}


@pytest.mark.system
def test_the_flame_graph_counts_no_second_twice(run):
    leaves = {row.frames[-1] for row in analyze(run.job).stacks}
    assert "MPI_File_write_at_all" in leaves
    assert not any(name.startswith(("write", "pwrite")) for name in leaves)
