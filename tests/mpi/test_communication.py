"""Calls, bytes, communicators and order of talk.c in the log, under each MPI."""

from collections import Counter

import numpy as np
import pytest

from tests.mpi.conftest import RANKS, Run, parameters

EVERY = parameters()
COLLECTIVE = 8

#: Calls and bytes of each rank; functions of its rank number where that matters.
EXPECTED = {
    "MPI_Init_thread": (1, 0),
    "MPI_Irecv": (1, 800),
    "MPI_Isend": (1, 800),
    "MPI_Waitall": (1, 0),
    "MPI_Sendrecv": (1, 80),
    "MPI_Bcast": (1, 64),
    "MPI_Allreduce": (1, 24),
    "MPI_Gather": (1, 32),
    "MPI_Scatter": (1, 40),
    "MPI_Allgatherv": (1, lambda rank: 8 * (rank + 1)),
    "MPI_Alltoall": (1, 16 * RANKS),
    "MPI_Alltoallv": (1, lambda rank: 8 * sum(rank + i for i in range(RANKS))),
    "MPI_Ibarrier": (1, 0),
    "MPI_Wait": (1, 0),
    "MPI_Comm_dup": (2, 0),
    "MPI_Comm_split": (2, 0),
    "MPI_Comm_free": (lambda rank: 4 if rank == 0 else 3, 0),
    "MPI_Barrier": (lambda rank: 8 if rank == 0 else 7, 0),
    "MPI_Win_allocate": (1, 0),
    "MPI_Win_fence": (2, 0),
    "MPI_Put": (1, 8),
    "MPI_Win_free": (1, 0),
    "MPI_Finalize": (1, 0),
}


@pytest.fixture(scope="session", params=EVERY)
def run(request, run_traced) -> Run:
    return run_traced(request.param, "talk.c")


def communication(run: Run) -> np.ndarray:
    """Events of MPI communication of the ranks."""
    events = run.job.events
    return events[(events["layer"] == 255) & (run.job.processes["rank"][events["process"]] >= 0)]


def events_of(run: Run, name: str, rank: int) -> np.ndarray:
    events = communication(run)
    here = run.job.processes["rank"][events["process"]] == rank
    return events[here & (events["function"] == run.job.function_names.index(name))]


@pytest.mark.system
def test_nothing_is_said_and_nothing_fails(run):
    assert "pario" not in run.errors
    assert not run.job.functions["failed"][
        [c not in ("posix", "stdio", "peers") for c in run.job.functions["category"]]
    ].any()


@pytest.mark.parametrize("rank", range(RANKS))
@pytest.mark.system
def test_every_call_is_counted_once_with_its_bytes(run, rank):
    expected = {
        name: tuple(n(rank) if callable(n) else n for n in numbers)
        for name, numbers in EXPECTED.items()
    }
    if rank < 2:
        expected |= {"MPI_Send": (2, 8), "MPI_Recv": (1, 4)}
        expected |= {"MPI_Mprobe": (1, 0), "MPI_Mrecv": (1, 4)}
    assert run.functions[rank] == expected


@pytest.mark.system
def test_messages_name_peer_and_tag(run):
    assert events_of(run, "MPI_Send", 0)["offset"].tolist() == [1 << 32 | 7, 1 << 32 | 6]
    assert events_of(run, "MPI_Mprobe", 0)["offset"].tolist() == [1 << 32 | 6]
    # from any source: its rank is in the status
    assert events_of(run, "MPI_Recv", 0)["offset"].tolist() == [1 << 32 | 8]
    # any tag from rank 0, without a status
    assert events_of(run, "MPI_Recv", 1)["offset"].tolist() == [0xFFFFFFFF]
    assert events_of(run, "MPI_Irecv", 0)["offset"].tolist() == [(RANKS - 1) << 32 | 9]


@pytest.mark.system
def test_communicators_are_the_same_on_all_their_ranks(run):
    members = sorted((c.size, c.ranks) for c in run.job.communicators)
    everyone = tuple(range(RANKS))
    assert [c.ranks for c in run.job.communicators if c.id == 1] == [everyone]
    singles = [
        (1, (0,)),
        (1, (0,)),
        (1, (1,)),
        (1, (1,)),
        (1, (2,)),
    ]  # MPI_COMM_SELF, the lone one, the half with one rank
    assert members == sorted(
        [(RANKS, everyone)] * 3 + [(2, (0, 2))] + singles[:1] * 2 + singles[2:3] * 2 + singles[4:]
    )


@pytest.mark.system
def test_collective_calls_agree_over_ranks_in_function_and_number(run):
    events = communication(run)
    events = events[events["flags"] & COLLECTIVE > 0]
    calls = Counter(
        zip(
            events["file"].tolist(),
            events["offset"].tolist(),
            events["function"].tolist(),
            strict=True,
        )
    )
    sizes = [c.size for c in run.job.communicators]
    assert {sizes[comm] - count for (comm, _, _), count in calls.items()} == {0}
    places = Counter((comm, number) for comm, number, _ in calls)
    assert set(places.values()) == {1}


@pytest.mark.system
def test_waiting_for_a_late_rank_can_be_derived(run):
    last = [events_of(run, "MPI_Barrier", rank)[-1] for rank in range(RANKS)]
    assert len({(int(e["file"]), int(e["offset"])) for e in last}) == 1
    latest = max(float(e["start"]) for e in last)
    waited = [min(latest - float(e["start"]), float(e["duration"])) for e in last]
    assert waited[RANKS - 1] == 0
    assert all(seconds > 0.1 for seconds in waited[:-1])


@pytest.mark.system
def test_ranks_and_clocks_are_noted(run, request):
    mpi = request.node.callspec.params["run"]
    assert run.job.ranks == RANKS
    assert run.job.mpi_library.startswith(mpi.library)
    ranks = run.job.processes[run.job.processes["rank"] >= 0]
    assert sorted(ranks["rank"]) == list(range(RANKS))
    assert (ranks["mpi_start"] < ranks["mpi_end"]).all()
