"""The verdict: lanes, waiting, the critical path, the split of the wall time and its sentence."""

import numpy as np
import pytest

from pario.see.analyze import analyze
from pario.see.analyze.lanes import find_lanes
from pario.see.analyze.model import Split
from pario.see.analyze.split import Times
from pario.see.report.words import split_parts
from pario.see.tables.model import Job
from tests.python.jobs import add_events, add_function, add_record, make_job

COLLECTIVE = 8


def barrier(job: Job, number: int, arrivals: list[float]) -> None:
    """A barrier of all ranks: each waits from its arrival to the last arrival."""
    arrived = np.array(arrivals)
    last = arrived.max() + 1e-6
    add_events(
        job,
        range(len(arrivals)),
        "",
        "communicate",
        start=arrived,
        duration=last - arrived,
        offset=number,
        flags=COLLECTIVE,
    )


def io(
    job: Job,
    rank: int,
    start: float,
    seconds: float,
    path: str = "/scratch/out.dat",
    kind: str = "write",
    length: int = 1 << 20,
) -> None:
    name = {"write": "bytes_written", "read": "bytes_read"}[kind]
    add_record(job, rank, path, **{kind + "s": 1, kind + "_time": seconds, name: length})
    add_events(job, rank, path, kind, start=start, duration=seconds, length=length, offset=0)


def parts(split: Split) -> tuple[float, ...]:
    return tuple(
        round(value, 3) for value in (split.compute, split.communication, split.waiting, split.io)
    )


def test_io_that_others_wait_for_is_io_on_the_critical_path() -> None:
    job = make_job(4, wall=10.0)
    io(job, 0, 1.0, 6.0)
    barrier(job, 0, [7.0, 1.0, 1.0, 1.0])
    verdict = analyze(job).verdict
    assert parts(verdict.critical) == (4.0, 0.0, 0.0, 6.0)
    assert parts(verdict.mean) == (4.0, 0.0, 4.5, 1.5)
    assert (verdict.bound, verdict.slowest_rank) == ("io", 0)
    assert verdict.sentence.startswith(
        "I/O-bound: I/O costs 6.00 s (60 %) of the 10.0 s on the critical path"
    )


def test_critical_path_changes_ranks_at_every_meeting() -> None:
    job = make_job(2, wall=10.0)
    io(job, 0, 0.0, 3.0)
    barrier(job, 0, [3.0, 0.5])
    io(job, 1, 3.5, 4.0)
    barrier(job, 1, [4.0, 7.5])
    times = Times(job)
    assert times.path.lane.tolist() in ([0, 1, 0], [1, 0])
    assert parts(times.critical) == (3.0, 0.0, 0.0, 7.0)


def test_rank_that_computes_long_makes_the_job_compute_bound() -> None:
    job = make_job(2, wall=10.0)
    io(job, 0, 0.0, 2.0)
    barrier(job, 0, [2.0, 9.0])
    verdict = analyze(job).verdict
    assert parts(verdict.critical) == (10.0, 0.0, 0.0, 0.0)
    assert verdict.sentence == (
        "I/O is 0 % of the 10.0 s on the critical path: nothing here is worth changing;"
        " computation takes 100 %."
    )


@pytest.mark.parametrize(
    "system, words", [(4.0, "100 %, 40 % of it in the kernel"), (1.0, "100 %.")]
)
def test_work_of_the_kernel_that_is_not_traced_is_named(system: float, words: str) -> None:
    job = make_job(1, wall=10.0)
    io(job, 0, 0.0, 0.01)
    job.processes["cpu_user"], job.processes["cpu_system"] = 9.9 - system, system
    assert f"computation takes {words}" in analyze(job).verdict.sentence


@pytest.mark.parametrize("system, words", [(4.0, ", 40 % of it in the kernel"), (1.0, "")])
def test_bytes_through_sockets_are_named(system: float, words: str) -> None:
    job = make_job(1, wall=10.0)
    io(job, 0, 0.0, 0.01)
    job.processes["cpu_user"], job.processes["cpu_system"] = 9.9 - system, system
    job.processes["bytes_received"] = 2e9
    expected = f"computation takes 100 %{words}; 2.00 GB went through sockets."
    assert analyze(job).verdict.sentence.endswith(expected)


def test_bytes_through_pipes_are_named() -> None:
    job = make_job(1, wall=10.0)
    io(job, 0, 0.0, 0.01)
    job.processes["cpu_user"] = 9.9
    job.processes["untraced_bytes_written"] = 2e9
    sentence = analyze(job).verdict.sentence
    assert sentence.endswith("computation takes 100 %; 2.00 GB went through pipes.")


@pytest.mark.parametrize(
    "waited, used, words",
    [
        (9.0, 0.1, "9.00 s (90 %) were spent waiting for other processes or users"),
        (3.0, 0.1, "the processes mostly slept or waited for something outside"),
        (9.0, 9.9, "computation takes 100 %"),  # in a thread beside one that computes
    ],
)
def test_waiting_for_peers_is_named_if_the_processor_is_idle(
    waited: float, used: float, words: str
) -> None:
    job = make_job(1, wall=10.0)
    io(job, 0, 0.0, 0.01)
    add_function(job, 0, "poll", "peers", calls=100, seconds=waited, thread=0)
    job.processes["cpu_user"] = used
    analysis = analyze(job)
    assert f"nothing here is worth changing; {words}" in analysis.verdict.sentence
    assert not analysis.findings


@pytest.mark.parametrize(
    "delay, grade, bound", [(6.0, "healthy", "compute"), (0.0, "unexplained", "io")]
)
def test_waiting_for_a_processor_inside_calls_is_no_io(
    delay: float, grade: str, bound: str
) -> None:
    job = make_job(1, wall=10.0)
    io(job, 0, 0.0, 6.0)
    used = job.processes
    used["cpu_user"], used["cpu_system"], used["run_queue_delay"] = 0.2, 3.0, delay * 1e9
    verdict = analyze(job).verdict
    assert (verdict.grade, verdict.bound) == (grade, bound)
    assert ("of it waiting for a processor: nothing here" in verdict.sentence) == (delay > 0)


def test_blocking_messages_are_matched_with_their_senders() -> None:
    job = make_job(2, wall=10.0)
    io(job, 1, 0.0, 5.0)
    add_events(
        job, 0, "", "communicate", start=1.0, duration=4.5, offset=1 << 32 | 7, function="MPI_Recv"
    )
    add_events(
        job, 1, "", "communicate", start=5.0, duration=0.5, offset=0 << 32 | 7, function="MPI_Send"
    )
    waits = Times(job).waits
    assert waits.lane.tolist() == [0]
    assert waits.seconds == pytest.approx([4.0])
    assert waits.last_lane.tolist() == [1]


def test_collective_io_calls_are_matched_by_file_and_running_number() -> None:
    job = make_job(2, wall=10.0)
    add_record(
        job,
        range(2),
        "/scratch/s.h5",
        layer="mpiio",
        writes=1,
        write_time=[5.0, 2.0],
        collective_writes=1,
    )
    add_events(
        job,
        [0, 1],
        "/scratch/s.h5",
        "write",
        layer="mpiio",
        start=[1.0, 4.0],
        duration=[5.0, 2.0],
        flags=COLLECTIVE,
    )
    times = Times(job)
    assert times.waits.seconds == pytest.approx([3.0])
    assert times.active_cells[:, 1] == pytest.approx([2.0, 2.0])


def test_posix_time_inside_mpi_io_counts_once() -> None:
    job = make_job(1, wall=10.0, has={"posix", "mpiio"})
    add_record(job, 0, "/f", layer="mpiio", writes=1, write_time=4.0)
    add_record(job, 0, "/f", writes=9, write_time=3.5, nested_write_time=3.0, nested_writes=8)
    assert Times(job).cells.sum() == pytest.approx(4.5)


def test_threads_of_a_process_count_once_where_they_overlap() -> None:
    job = make_job(1, wall=10.0)
    for thread in range(4):
        add_events(job, 0, "/f", "read", start=1.0, duration=2.0, length=100, thread=thread)
    add_record(job, 0, "/f", reads=4, read_time=8.0, bytes_read=400)
    assert analyze(job).verdict.critical.io == pytest.approx(2.0)


def test_without_events_the_busiest_thread_bounds_the_time_of_a_process() -> None:
    job = make_job(1, wall=10.0, has={"posix"})
    add_record(job, 0, "/f", reads=4, read_time=8.0, bytes_read=400)
    for thread, seconds in enumerate([2.0, 3.0, 1.0, 2.0]):
        add_function(job, 0, "read", "posix", calls=1, seconds=seconds, thread=thread)
    assert analyze(job).verdict.critical.io == pytest.approx(3.0)


def test_waiting_on_a_pipe_is_not_storage_io() -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "<stdin>", reads=1, read_time=9.0, bytes_read=10)
    job.files["stream"] = 1
    add_events(job, 0, "<stdin>", "read", start=0.0, duration=9.0, length=10)
    assert analyze(job).verdict.critical.io == 0


def test_processes_one_after_the_other_share_a_lane() -> None:
    job = make_job(3, wall=10.0, mpi=False)
    job.processes["start"] = [0.0, 4.0, 2.0]
    job.processes["end"] = [4.0, 10.0, 3.0]
    lanes = find_lanes(job)
    assert (lanes.count, lanes.of_process.tolist()) == (2, [0, 1, 1])


def test_children_and_earlier_images_belong_to_the_rank_of_their_process() -> None:
    job = make_job(5, wall=10.0)
    job.processes["rank"] = [0, 1, -1, -1, -1]
    job.processes["pid"] = [10, 11, 10, 30, 99]
    job.processes["parent"] = [1, 1, 1, 11, 1]
    assert find_lanes(job).of_process.tolist() == [0, 1, 0, 1, -1]


def test_job_that_sleeps_is_idle() -> None:
    job = make_job(1, wall=10.0)
    job.processes["cpu_user"] = 0.1
    verdict = analyze(job).verdict
    assert verdict.bound == "idle"
    assert dict(split_parts(verdict.critical))["compute"] == "sleeping or waiting"
    job.processes["cpu_user"] = 4.0
    assert analyze(job).verdict.bound == "idle"
    job.processes["cpu_user"] = 9.0
    assert dict(split_parts(analyze(job).verdict.critical))["compute"] == "compute"


def test_processes_that_work_in_turn_are_not_idle() -> None:
    job = make_job(2, wall=10.0, mpi=False)
    job.processes["cpu_user"] = 4.5
    assert analyze(job).verdict.bound == "compute"


def test_missing_data_is_reported() -> None:
    job = make_job(4, wall=10.0, has={"posix"})
    add_record(job, range(4), "/f", writes=1, write_time=1.0, bytes_written=100)
    assert any("MPI communication" in text for text in analyze(job).verdict.not_known)


def test_sum_over_ranks_gives_the_slowest_rank_its_own_time() -> None:
    job = make_job(4, wall=10.0, has={"posix"})
    add_record(
        job,
        -1,
        "/f",
        writes=4,
        write_time=9.0,
        slowest_rank=2,
        slowest_rank_time=6.0,
        fastest_rank=1,
        fastest_rank_time=1.0,
        ranks=4,
    )
    verdict = analyze(job).verdict
    assert (verdict.slowest_rank, verdict.slowest.io) == (2, pytest.approx(6.0))


def test_job_without_data_has_a_verdict() -> None:
    verdict = analyze(Job(source="x", format="pario")).verdict
    assert verdict.bound == "unknown"


def test_short_run_with_hardly_any_io_gets_a_short_verdict() -> None:
    job = make_job(1, wall=0.003)
    add_record(job, 0, "/etc/passwd", reads=1, read_time=0.002, bytes_read=100)
    verdict = analyze(job).verdict
    assert (verdict.bound, verdict.sentence) == (
        "little",
        "Hardly any I/O: 2.00 ms of the 3.00 ms run.",
    )


def test_sentence_names_the_gain_and_the_repair_in_one_line() -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out.dat", writes=1_000_000, bytes_written=8_000_000, write_time=8.0)
    analysis = analyze(job)
    assert analysis.verdict.sentence.endswith(
        "could be saved, mostly by joining small writes into large ones."
    )
    assert len(analysis.verdict.sentence) <= 140


def transfer(seconds: float, moved: int, calls: int = 100) -> Job:
    """A job of 10 s whose only I/O writes ``moved`` bytes in large calls."""
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out.dat", opens=1, writes=calls, bytes_written=moved, write_time=seconds)
    return job


def test_io_as_fast_as_its_bytes_allow_is_healthy_even_if_it_binds_the_run() -> None:
    verdict = analyze(transfer(8.0, 8 * 10**9)).verdict
    assert (verdict.bound, verdict.grade) == ("io", "healthy")
    assert verdict.sentence == (
        "I/O-bound: I/O costs 8.00 s (80 %) of the 10.0 s run for 8.00 GB at 1.00 GB/s: nothing"
        " here is worth changing."
    )


def test_io_that_nothing_explains_gets_no_praise() -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out.dat", opens=2, open_time=8.0)
    verdict = analyze(job).verdict
    assert (verdict.bound, verdict.grade) == ("io", "unexplained")
    assert "worth changing" not in verdict.sentence
    assert verdict.sentence.endswith(
        "no cause was found that a change of calls or settings would remove."
    )


@pytest.mark.parametrize("wait", [3.0, 6.0])
def test_a_worthwhile_change_and_a_denial_never_stand_in_one_sentence(wait: float) -> None:
    job = make_job(1, wall=10.0)
    add_record(job, 0, "/out", writes=1_000_000, bytes_written=8_000_000, write_time=wait)
    verdict = analyze(job).verdict
    assert verdict.grade == "worthwhile"
    assert "could be saved" in verdict.sentence
    assert "Not " not in verdict.sentence and "worth changing" not in verdict.sentence


def test_a_log_without_processor_times_calls_nothing_computation() -> None:
    job = make_job(1, wall=10.0, has={"posix", "stdio"})
    add_record(job, 0, "/f", writes=1, write_time=0.1, bytes_written=10**8)
    verdict = analyze(job).verdict
    assert (verdict.bound, verdict.critical.divided) == ("other", False)
    assert "computation" not in verdict.sentence
    assert any("computation" in text for text in verdict.not_known)


def test_waiting_for_a_processor_is_at_most_the_io_of_the_critical_path() -> None:
    job = make_job(2, wall=10.0)
    io(job, 0, 0.0, 6.0)
    io(job, 1, 0.0, 2.0, path="/scratch/other.dat")
    barrier(job, 0, [6.1, 9.0])
    used = job.processes
    used["cpu_user"], used["cpu_system"], used["run_queue_delay"] = 0.2, 3.0, 6e9
    verdict = analyze(job).verdict
    assert parts(verdict.critical)[-1] == 2.0
    assert "2.00 s of it waiting for a processor" in verdict.sentence
