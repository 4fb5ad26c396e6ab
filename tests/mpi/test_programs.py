"""Programs that use MPI in unusual ways behave as without the tracer, and are counted."""

import pytest

from tests.mpi.conftest import RANKS, parameters

EVERY = parameters()
ENDED = (1, 2, 5)  # end_kind of a process: exit, _exit, abort
SESSIONS = parameters(lambda mpi: mpi.name in ("mpich-5", "openmpi-5"))


@pytest.mark.system
@pytest.mark.parametrize("mpi", EVERY)
def test_another_tool_behind_pario_counts_what_it_counts_alone(mpi, run_traced):
    run = run_traced(mpi, "talk.c", tool="counter_tool.c")
    said = sorted(line for line in run.output.splitlines() if line.startswith("tool:"))
    assert said == [
        "tool: rank 0 made 8 barriers",
        "tool: rank 1 made 7 barriers",
        "tool: rank 2 made 7 barriers",
    ]
    assert run.functions == run_traced(mpi, "talk.c").functions


@pytest.mark.system
@pytest.mark.parametrize("mpi", EVERY)
def test_errors_that_the_program_wants_returned_are_returned(mpi, run_traced):
    run = run_traced(mpi, "errors.c")
    assert run.output.split() == ["1111"] * RANKS
    failed = run.job.functions[run.job.functions["failed"] > 0]
    names = {
        run.job.function_names[row["name"]]
        for row in failed
        if row["category"] not in ("posix", "stdio", "peers")
    }
    assert names == {"MPI_Barrier", "MPI_Bcast", "MPI_Send", "MPI_File_open"}


@pytest.mark.system
@pytest.mark.parametrize("mpi", EVERY)
@pytest.mark.parametrize(("code", "status"), [(3, 3), (1, 1), (-1, 255)])
def test_an_aborted_job_leaves_its_counters(mpi, run_traced, code, status):
    run = run_traced(mpi, "aborts.c", str(code), fails=True)
    assert [run.functions[rank]["MPI_Init"] for rank in range(RANKS)] == [(1, 0)] * RANKS
    aborted = run.job.processes[run.job.processes["rank"] == 1][0]
    assert aborted["end_code"] == status
    assert aborted["end_kind"] in ENDED  # some MPIs end the process with exit()


@pytest.mark.parametrize("mpi", SESSIONS)
def test_programs_with_sessions_are_counted_without_a_world(mpi, run_traced):
    run = run_traced(mpi, "session.c")
    names = [
        run.job.function_names[row["name"]]
        for row in run.job.functions
        if row["category"] in ("mpi", "collective")
    ]
    assert sorted(set(names)) == [
        "MPI_Barrier",
        "MPI_Comm_create_from_group",
        "MPI_Comm_free",
        "MPI_Session_finalize",
        "MPI_Session_init",
    ]
    assert (run.job.processes["rank"] == -1).all()


@pytest.mark.system
@pytest.mark.parametrize("mpi", EVERY)
def test_threads_lose_no_call(mpi, run_traced):
    run = run_traced(mpi, "threads.c")
    if "multiple" not in run.output:
        pytest.skip(f"{mpi.name} has no MPI_THREAD_MULTIPLE")
    assert [run.functions[rank]["MPI_Allreduce"] for rank in range(RANKS)] == [(300, 2400)] * RANKS
