"""The advice between mmap and read() follows the reuse, the order and the memory of the run."""

from __future__ import annotations

from typing import Any

import pytest

from pario.see.analyze import analyze
from pario.see.analyze.model import Finding
from pario.see.tables.model import Job
from tests.python.jobs import add_filesystem, add_record, make_job

KIB, MB, GB = 1 << 10, 10**6, 10**9
MEMORY = 64 * GB


def job(memory: int = MEMORY, wall: float = 100.0) -> Job:
    made = make_job(1, wall, has={"posix", "per_rank", "sampled"})
    made.processes["memory"] = memory
    add_filesystem(made, "/scratch", "lustre", 4096, network=True)
    return made


def with_processor_times(made: Job, **facts: Any) -> Job:
    """Adds the times of processors: of a process that used none, with other ``facts``."""
    made.has.add("cpu")
    for name, value in ({"run_queue_delay": 0} | facts).items():
        made.processes[name] = value
    return made


def map_file(made: Job, size: int, touched: int, faults: int) -> None:
    counts: dict[str, Any] = {
        "bytes_mapped": size,
        "bytes_resident": touched,
        "mapped_faults": faults,
    }
    add_record(made, 0, "/scratch/model", opens=1, maps=1, size_at_open=size, **counts)


def read_file(made: Job, size: int, times: int) -> None:
    counts: dict[str, Any] = {
        "reads": size * times // MB,
        "bytes_read": size * times,
        "end_read": size,
    }
    add_record(made, 0, "/scratch/table", opens=1, size_at_open=size, read_time=30.0, **counts)


def finding(made: Job, rule: str) -> Finding:
    (found,) = (one for one in analyze(made).findings if one.rule == rule)
    return found


@pytest.mark.parametrize(
    ("use", "advice"),
    [
        (
            {"size": 8 * GB, "touched": 8 * GB, "faults": 65_536},
            "read() instead of mmap: 100 % of /scratch/model was touched, once. Read it with"
            " large calls (safetensors, numpy: load without mmap_mode). It fits into memory (8.00"
            " GB of files, 64.0 GB of memory).",
        ),
        (
            {"size": 40 * GB, "touched": 40 * GB, "faults": 65_536},
            "read() instead of mmap: 100 % of /scratch/model was touched, once. Read it with"
            " large calls (safetensors, numpy: load without mmap_mode).",
        ),
        (
            {"size": 80 * GB, "touched": 240 * GB, "faults": 65_536},
            "read() instead of mmap: the pages of /scratch/model were fetched 3 times, because they"
            " did not stay in memory (80.0 GB of files, 64.0 GB of memory). Read blocks with large"
            " calls, and finish with each before the next.",
        ),
        (
            {"size": 8 * GB, "touched": 40_960 * 4 * KIB, "faults": 40_960},
            "pread() instead of mmap: 2 % of /scratch/model was touched, 4.10 kB for each fault."
            " Read the records that are needed, sorted by offset; or madvise(MADV_RANDOM), so that"
            " a fault fetches one page.",
        ),
    ],
    ids=["once", "once-too-large", "again-too-large", "few-pages"],
)
def test_mapped_files_are_read_instead(use: dict[str, int], advice: str) -> None:
    made = with_processor_times(job(wall=1000.0))
    map_file(made, **use)
    assert finding(made, "mmap-network").fixes[1].text == advice


@pytest.mark.parametrize(
    ("memory", "times", "advice"),
    [
        (
            MEMORY,
            20,
            "mmap instead of read(): /scratch/table was read 20 times, and stays in memory (1.00 GB"
            " of files, 64.0 GB of memory). A mapping copies nothing, and the processes of a node"
            " share its pages.",
        ),
        (
            GB,
            20,
            "No mmap: /scratch/table was read 20 times, but does not stay in memory (1.00 GB of"
            " files, 1.00 GB of memory), so that its pages would be fetched again.",
        ),
        (0, 20, "For several processes on a node: MPI_Win_allocate_shared."),
    ],
    ids=["fits", "too-large", "unknown-memory"],
)
def test_files_read_again_and_again_are_mapped_instead(
    memory: int, times: int, advice: str
) -> None:
    made = job(memory)
    read_file(made, GB, times)
    assert advice in [fix.text for fix in finding(made, "re-read").fixes]


# --- the seconds of faults


def test_faults_take_the_time_in_which_the_process_waited() -> None:
    made = with_processor_times(job(wall=10.0), cpu_user=2.0, run_queue_delay=3 * 10**9)
    map_file(made, GB, GB, 8192)
    found = finding(made, "mmap-network")
    assert found.seconds == pytest.approx(5.0 - GB / 500e6)  # without one read at 500 MB/s


def test_a_process_that_waited_for_something_else_has_few_seconds_of_faults() -> None:
    made = with_processor_times(job(wall=1000.0), cpu_user=10.0)
    map_file(made, GB, GB, 8192)
    assert finding(made, "mmap-network").seconds < 8192 * 0.02


@pytest.mark.parametrize(
    ("touched", "cpu", "rules"),
    [(64 * MB, 5.0, ["mmap-network"]), (64 * MB, 10.0, []), (4 * MB, 5.0, [])],
    ids=["waited", "worked", "few-bytes"],
)
def test_touched_bytes_without_major_faults_count_if_the_process_waited(
    touched: int, cpu: float, rules: list[str]
) -> None:
    made = with_processor_times(job(wall=10.0), cpu_user=cpu)
    map_file(made, touched, touched, 0)
    assert [one.rule for one in analyze(made).findings] == rules


def test_without_times_of_processors_few_faults_do_not_count() -> None:
    made = job()
    map_file(made, 64 * MB, 64 * MB, 512)
    assert not analyze(made).findings
