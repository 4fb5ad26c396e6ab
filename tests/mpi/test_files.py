"""MPI-IO calls of files.c in the log, under each MPI."""

import pytest

from tests.mpi.conftest import RANKS, Run, parameters

EVERY = parameters()
BLOCK = 1000
IN_MPI_IO, IN_MPI, COLLECTIVE, SHORT, IN_VIEW = 2, 4, 8, 16, 32


@pytest.fixture(scope="session", params=EVERY)
def run(request, run_traced) -> Run:
    return run_traced(request.param, "files.c", *filter(None, [request.param.file_prefix]))


def record(run: Run, name: str, rank: int):
    rows = [
        row
        for row in run.job.records
        if row["layer"] == 2
        and run.job.path(row["file"]) == str(run.directory / name)
        and run.job.processes["rank"][row["process"]] == rank
    ]
    assert len(rows) == 1
    return rows[0]


def calls(run: Run, rank: int) -> list[tuple[str, int, int, int]]:
    """Function, offset, length and flags of the rank's MPI-IO events on the file that opened."""
    events = run.job.events[
        (run.job.events["layer"] == 2)
        & (run.job.processes["rank"][run.job.events["process"]] == rank)
    ]
    here = [e for e in events if run.job.path(e["file"]).endswith("out.bin")]
    return [
        (run.job.function_names[e["function"]], int(e["offset"]), int(e["length"]), int(e["flags"]))
        for e in here
    ]


def counters(row, names: str) -> dict[str, int]:
    return {name: int(row[name]) for name in names.split()}


@pytest.mark.system
@pytest.mark.parametrize("rank", range(RANKS))
def test_calls_and_bytes_are_counted_under_the_plain_path(run, rank):
    row = record(run, "out.bin", rank)
    expected = {
        **{"opens": 1, "closes": 1, "reads": 4, "writes": 6, "seeks": 1, "syncs": 1},
        **{"truncates": 1, "views": 2, "nonblocking_calls": 1, "noncontiguous_calls": 1},
        **{"collective_opens": 1, "collective_writes": 3, "collective_reads": 0, "failed": 0},
    }
    assert counters(row, " ".join(expected)) == expected
    assert row["bytes_read"] == BLOCK + 100 + 10 + 10
    assert row["bytes_written"] == 4 * BLOCK + 8 + 16 * 8


@pytest.mark.system
def test_a_failed_open_is_counted_as_such(run):
    assert counters(record(run, "nowhere/x", 0), "opens failed_opens failed") == {
        "opens": 0,
        "failed_opens": 1,
        "failed": 1,
    }


@pytest.mark.system
def test_offsets_are_bytes_of_the_file(run):
    rank = 1
    found = calls(run, rank)
    assert ("MPI_File_write_at", rank * BLOCK, BLOCK, 0) in found
    assert ("MPI_File_write_at_all", rank * BLOCK, BLOCK, COLLECTIVE) in found
    assert ("MPI_File_read_at", RANKS * BLOCK - 100, 100, SHORT) in found
    assert [c[1] for c in found if c[0] == "MPI_File_read"] == [50, 60]  # the individual pointer
    assert ("MPI_File_iwrite_at", rank * BLOCK, BLOCK, 0) in found
    # in a view of doubles after a header
    assert ("MPI_File_write_at", 8 + (2 + rank) * 8, 8, 0) in found
    # in a view with holes
    assert ("MPI_File_write_all", 0, 128, COLLECTIVE | IN_VIEW) in found
    assert ("MPI_File_set_size", 5 * BLOCK, 0, COLLECTIVE) in found


@pytest.mark.system
def test_views_are_noted_with_their_layouts(run):
    rank = 2
    (process,) = (row for row, of in enumerate(run.job.processes["rank"]) if of == rank)
    views = [(view.displacement, view.layout) for view in run.job.views if view.process == process]
    assert views == [(8, "8"), (8 * rank, f"4x8/{8 * RANKS}@0+{4 * 8 * RANKS}")]


@pytest.mark.system
def test_bytes_of_split_collectives_are_counted_once(run):
    found = {c[0]: c[2] for c in calls(run, 0) if "_at_all_" in c[0]}
    assert found == {"MPI_File_write_at_all_begin": BLOCK, "MPI_File_write_at_all_end": 0}


@pytest.mark.system
def test_collective_calls_come_in_the_same_order_on_all_ranks(run):
    orders = [[c[0] for c in calls(run, rank) if c[3] & COLLECTIVE] for rank in range(RANKS)]
    assert len(orders[0]) == 10
    assert orders.count(orders[0]) == RANKS


@pytest.mark.system
def test_posix_calls_of_the_mpi_library_are_nested(run):
    events, ranks = run.job.events, run.job.processes["rank"]
    inner = [
        e
        for e in events[events["layer"] == 0]
        if ranks[e["process"]] >= 0 and run.job.path(e["file"]).endswith("out.bin")
    ]
    assert any(e["length"] == BLOCK for e in inner)
    assert all(
        e["flags"] & (IN_MPI_IO | IN_MPI) for e in inner
    )  # non-blocking I/O may end in MPI_Wait


@pytest.mark.system
def test_hints_are_noted_as_asked_and_as_effective(run):
    noted = {
        (h.when, h.key): h.value for h in run.job.hints if h.process == run.job.hints[0].process
    }
    assert noted[("requested", "cb_buffer_size")] == "1048576"
    assert noted[("requested", "not_a_hint")] == '"quoted"'
    assert any(when == "effective" for when, _ in noted)
