"""The traced calls beside the kernel's counters: unseen I/O leads the verdict, explained
differences do not, and waiting for processors is named."""

from __future__ import annotations

from typing import Any

import pytest

from pario.see.analyze import analyze
from pario.see.tables.model import Job, Unseen
from tests.python.jobs import add_function, add_record, make_job

GB = 10**9


def known_job(ranks: int = 1, wall: float = 10.0, **facts: Any) -> Job:
    """A job with the kernel's counters, in which the kernel counted nothing."""
    job = make_job(ranks, wall=wall, mpi=False)
    for name in ("syscalls_read", "syscalls_write", "kernel_read", "kernel_written"):
        job.processes[name] = 0
    job.processes["storage_read"] = job.processes["storage_write"] = 0
    job.processes["run_queue_delay"] = 0
    job.processes["processors"] = 2
    job.processes["cpu_user"] = wall
    for name, value in facts.items():
        job.processes[name] = value
    return job


def sentence(job: Job) -> str:
    return analyze(job).verdict.sentence


def test_equal_counts_are_healthy() -> None:
    job = known_job(kernel_read=GB, syscalls_read=1000)
    add_record(job, 0, "/data/in", reads=1000, bytes_read=GB, read_time=0.5)
    analysis = analyze(job)
    assert analysis.kernel is not None
    assert (analysis.kernel.read, analysis.kernel.read_accounted) == (GB, GB)
    assert analysis.kernel.unattributed == ()
    assert analysis.verdict.bound == "compute"


def test_bytes_of_unseen_calls_lead_the_verdict() -> None:
    job = known_job(kernel_read=12 * GB, syscalls_read=1000, cpu_user=4.0)
    verdict = analyze(job).verdict
    assert verdict.sentence.startswith(
        "12.0 GB and up to 6.00 s of this run's I/O went through calls that pario does not see"
    )
    assert verdict.bound == "unknown"


def test_many_small_unseen_calls_lead_the_verdict() -> None:
    job = known_job(kernel_written=10**6, syscalls_write=10**6)
    assert sentence(job).startswith("1.00 MB of this run's I/O went through calls")


def test_few_unseen_calls_lead_the_verdict_of_processes_that_waited() -> None:
    facts = {"kernel_written": 25_600, "syscalls_write": 400}
    waiting = sentence(known_job(cpu_user=0.1, **facts))
    assert waiting.startswith("25.6 kB and up to 9.90 s of this run's I/O went through calls")
    queued = sentence(known_job(cpu_user=0.1, run_queue_delay=9.9e9, **facts))
    assert queued.startswith("25.6 kB of this run's I/O went through calls")
    assert "this run's I/O" not in sentence(known_job(**facts)), "the processor was busy"
    seen = {"untraced_writes": 400, "untraced_bytes_written": 25_600}
    assert "this run's I/O" not in sentence(known_job(cpu_user=0.1, **facts, **seen))


@pytest.mark.parametrize(("seconds", "says"), [(3.0, True), (9.0, False)])
def test_time_on_the_run_queue_is_no_computation(seconds: float, says: bool) -> None:
    text = sentence(known_job(cpu_user=10.0 - seconds, run_queue_delay=seconds * 1e9))
    assert ("computation takes" in text) == says
    assert f"{seconds * 10:.0f} % of the run the processes waited for a processor" in text


@pytest.mark.parametrize(
    ("facts", "records"),
    [
        # pipes and sockets
        ({"kernel_read": GB, "untraced_bytes_read": GB}, {}),
        # a stream without a buffer reads a line of a pipe byte by byte
        (
            {
                "kernel_read": 70_000,
                "syscalls_read": 70_000,
                "untraced_bytes_read": 70_000,
                "untraced_reads": 10_000,
            },
            {},
        ),
        # the tracer itself
        ({"kernel_written": GB, "tracer_bytes_written": GB}, {}),
        # the dynamic loader, and the image before an exec
        ({"kernel_read": GB, "kernel_read_before": GB}, {}),
        # an open file of stdio is read in whole buffers after each seek
        (
            {"kernel_read": 400_000_000, "syscalls_read": 100_000},
            {"layer": "stdio", "reads": 100_000, "seeks": 100_000, "bytes_read": 800_000},
        ),
        # read-ahead of reads at random
        (
            {"storage_read": 130_000 * 1000, "kernel_read": 4_096_000, "syscalls_read": 1000},
            {"reads": 1000, "bytes_read": 4_096_000},
        ),
        # each small write makes a page dirty
        (
            {"storage_write": 4096 * 10_000, "kernel_written": 160_000, "syscalls_write": 10_000},
            {"writes": 10_000, "bytes_written": 160_000},
        ),
        # a cache serves the reads
        ({"kernel_read": GB, "syscalls_read": 1000}, {"reads": 1000, "bytes_read": GB}),
    ],
)
def test_explained_differences_are_silent(facts: dict[str, int], records: dict[str, Any]) -> None:
    job = known_job(**facts)
    if records:
        add_record(job, 0, "/data/file", **records)
    kernel = analyze(job).kernel
    assert kernel is not None and kernel.unattributed == ()


def test_a_child_counts_once() -> None:
    job = known_job(2)
    job.processes["kernel_read"] = [GB, GB]  # the parent has waited for the child
    job.processes["parent"][1] = job.processes["pid"][0]
    job.processes["start"], job.processes["end"] = [0.0, 1.0], [10.0, 9.0]
    add_record(job, 1, "/data/in", reads=10, bytes_read=GB)
    kernel = analyze(job).kernel
    assert kernel is not None
    assert (kernel.read, kernel.unattributed) == (GB, ())


def test_the_tracers_last_reads_in_children_are_no_unseen_calls() -> None:
    """Only the parent's counters have them."""
    job = known_job(3001)
    processes = job.processes
    processes["kernel_read"], processes["syscalls_read"] = 200, 12
    processes["kernel_read_before"], processes["syscalls_read_before"] = 100, 8
    processes["tracer_bytes_read"], processes["tracer_reads"] = 117, 4
    processes["kernel_read"][0], processes["syscalls_read"][0] = 100 + 3000 * 320, 8 + 3000 * 16
    processes["parent"][1:] = processes["pid"][0]
    processes["start"][1:], processes["end"][1:] = 1.0, 9.0
    kernel = analyze(job).kernel
    assert kernel is not None and kernel.unattributed == ()


def test_an_untraced_child_is_named() -> None:
    job = known_job(kernel_read=GB)
    job.unseen.append(Unseen("/bin/busybox was not followed", 0))
    (part,) = (analyze(job).kernel or pytest.fail()).unattributed
    assert part.mechanism == "programs that pario cannot follow"


def test_a_large_untraced_child_is_one_sentence_and_a_small_one_none() -> None:
    job = known_job(kernel_read=GB)
    job.unseen.append(Unseen("/bin/busybox was not followed", 0, "/bin/busybox"))
    assert sentence(job).startswith(
        "1.00 GB of this run's I/O went through programs that pario cannot follow (busybox), which"
    )
    small = known_job(kernel_read=GB)
    add_record(small, 0, "/data/in", reads=1000, bytes_read=GB - 10_000, read_time=0.5)
    small.unseen.append(Unseen("/sbin/ldconfig was not followed", 0, "/sbin/ldconfig"))
    verdict = analyze(small).verdict
    assert (verdict.covered, verdict.unseen) == (True, ("/sbin/ldconfig was not followed",))
    assert verdict.sentence.startswith("I/O is 5 % of the 10.0 s run: nothing here is worth")


def test_an_untraced_program_that_nobody_waits_for_leads_the_verdict() -> None:
    job = known_job(2)
    job.processes["end_kind"][1] = 3  # exec of a program that was not followed
    job.unseen.append(Unseen("/bin/busybox was not followed", 1, "/bin/busybox"))
    assert sentence(job).startswith("Incomplete: /bin/busybox was not followed.")


@pytest.mark.parametrize(
    ("storage", "amount"), [(0, "5,000 requests"), (GB, "5,000 requests (at least 1.00 GB)")]
)
def test_requests_of_rings_are_named_also_if_a_cache_serves_them(storage: int, amount: str) -> None:
    job = known_job(uring_rings=1, uring_unattributed=5000, storage_read=storage)
    job.processes["cpu_user"] = 10.0
    verdict = analyze(job).verdict
    assert verdict.sentence.startswith(f"{amount} of this run's I/O went through io_uring")
    assert verdict.bound == "unknown"


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"storage_read": GB}, "ways that pario does not see"),
        ({"storage_read": GB, "major_faults": 5000, "cpu_user": 2.0}, "page faults"),
    ],
)
def test_storage_without_calls_is_named(facts: dict[str, Any], word: str) -> None:
    assert f"of this run's I/O went through {word}" in sentence(known_job(**facts))


def test_libraries_read_at_the_start_are_silent() -> None:
    job = known_job(storage_read=30_000_000, major_faults=200, cpu_user=9.8)
    assert (analyze(job).kernel or pytest.fail()).unattributed == ()


def test_characters_of_popen_are_not_claimed() -> None:
    job = known_job(kernel_read=GB)
    add_function(job, 0, "popen", "posix", calls=1)
    assert (analyze(job).kernel or pytest.fail()).unattributed == ()


def test_waiting_for_a_processor_is_not_sleep() -> None:
    job = known_job(8, cpu_user=2.5, run_queue_delay=7_500_000_000)
    verdict = analyze(job).verdict
    assert verdict.bound == "compute"
    assert verdict.sentence.endswith(
        " 75 % of the run the processes waited for a processor: 8 busy threads on 2 processors."
    )
    assert "slept" not in verdict.sentence


def test_a_log_without_the_kernels_counters_has_no_totals() -> None:
    assert analyze(make_job(2)).kernel is None
