"""Asynchronous I/O by libaio and io_uring, mapped files, locks and directories: counted on their
files, without a change of the program's data."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Run, Trace
from tests.support.commands import run_command

BLOCK, BLOCKS = 4096, 32
HEADERS = ("/usr/include/libaio.h", "/usr/include/liburing.h")
WAYS = ("libaio", "uring", "fixed", "raw")


def build_aio(build: Compile) -> Path:
    for header in HEADERS:
        if not Path(header).exists():
            pytest.skip(f"needs {header}")
    return build("aio.c", "-O1", "-Wl,--no-as-needed", "-laio", "-luring")


def process_fact(run: Run, name: str) -> int:
    return int(run.job.processes[name].sum())


@pytest.mark.parametrize("way", WAYS)
def test_requests_are_counted_on_their_file(
    trace: Trace, build: Compile, work: Path, way: str
) -> None:
    run = trace(build_aio(build), way, "data")
    counts = run.counts(work / "data")
    assert run.status == 0
    assert counts["reads"] == counts["writes"] == BLOCKS
    assert counts["bytes_read"] == counts["bytes_written"] == BLOCK * BLOCKS
    assert counts["async_reads"] == counts["async_writes"] == BLOCKS
    assert counts["end_written"] == counts["end_read"] == BLOCK * BLOCKS
    assert counts["short_calls"] == counts["failed"] == 0
    assert counts["queue_depth_max"] == 8
    assert process_fact(run, "uring_unattributed") == 0
    assert process_fact(run, "aio_contexts") == (2 if way == "libaio" else 0)
    assert process_fact(run, "uring_rings") == (0 if way == "libaio" else 2)


@pytest.mark.parametrize("way", WAYS)
def test_requests_have_their_offsets(trace: Trace, build: Compile, work: Path, way: str) -> None:
    run = trace(build_aio(build), way, "data")
    api = "libaio" if way == "libaio" else "io_uring"
    expected = {(block * BLOCK, BLOCK) for block in range(BLOCKS)}
    assert set(run.events(work / "data", f"{api}_write")) == expected
    assert set(run.events(work / "data", f"{api}_read")) == expected


@pytest.mark.parametrize("way", WAYS)
def test_the_time_of_submitting_and_waiting_is_that_of_the_file(
    trace: Trace, build: Compile, work: Path, way: str
) -> None:
    run = trace(build_aio(build), way, "data")
    (row,) = (row for row in run.job.records if run.job.path(row["file"]) == str(work / "data"))
    calls = [
        row
        for row in run.job.functions
        if run.job.function_names[row["name"]]
        in ("io_submit", "io_getevents", "io_uring_enter", "io_uring_submit", "__io_uring_get_cqe")
        or run.job.function_names[row["name"]] == "io_uring_submit_and_wait"
    ]
    assert row["async_time"] == pytest.approx(sum(call["seconds"] for call in calls), rel=1e-3)
    assert row["async_calls"] == sum(call["calls"] for call in calls)
    assert row["read_time"] == row["write_time"] == 0
    assert row["async_latency"] > 0


@pytest.mark.parametrize("way", (*WAYS, "hand"))
def test_data_and_output_are_those_of_a_run_without_tracing(
    trace: Trace, build: Compile, work: Path, way: str
) -> None:
    program = build_aio(build)
    bare = run_command([program, way, "bare"], cwd=work, status=0)
    run = trace(program, way, "traced")
    hashes = [hashlib.sha256((work / name).read_bytes()).digest() for name in ("bare", "traced")]
    assert (run.status, run.stdout, run.stderr) == (0, bare.stdout, bare.stderr)
    assert hashes[0] == hashes[1]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="needs x86_64's instruction")
def test_requests_that_no_call_shows_are_counted_as_unattributed(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build_aio(build), "hand", "data")
    assert process_fact(run, "uring_unattributed") == 2 * BLOCKS
    assert run.counts(work / "data")["reads"] == 0


@pytest.mark.parametrize("first", ["file", "exit"])
def test_requests_of_a_static_liburing_are_counted_as_unattributed(
    trace: Trace, build: Compile, work: Path, first: str
) -> None:
    if not Path("/usr/include/liburing.h").exists():
        pytest.skip("needs /usr/include/liburing.h")
    (work / "data").write_bytes(bytes(BLOCK * BLOCKS))
    run = trace(
        build("static_ring.c", "-Wl,--whole-archive,-l:liburing.a,--no-whole-archive"),
        "data",
        BLOCKS,
        first,
    )
    assert (run.status, run.stdout, run.stderr) == (0, f"{BLOCK * BLOCKS}\n", "")
    assert process_fact(run, "uring_rings") == 1
    assert process_fact(run, "uring_unattributed") == BLOCKS
    assert run.counts(work / "data")["reads"] == 0


FIO_ENGINES = ("psync", "vsync", "libaio", "io_uring", "mmap", "splice")


@pytest.mark.parametrize("pattern", ["write", "read", "randread"])
@pytest.mark.parametrize("engine", FIO_ENGINES)
@pytest.mark.system
def test_fio_is_accounted_for_or_named_as_unseen(
    trace: Trace, work: Path, engine: str, pattern: str
) -> None:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    size, depth = 4 << 20, 8 if engine in ("libaio", "io_uring") else 1
    (work / "data").write_bytes(os.urandom(size))
    run = trace(
        *(
            "fio",
            "--name=job",
            "--filename=data",
            f"--size={size}",
            "--bs=16k",
            f"--iodepth={depth}",
        ),
        *(f"--ioengine={engine}", f"--rw={pattern}", "--thread", "--output-format=json"),
        *("--output=result.json", "--invalidate=0", "--fallocate=none"),
    )
    assert run.status == 0
    report = (work / "result.json").read_text()
    done = json.loads(report[report.index("{") :])["jobs"][0]  # notes may come first
    side = "write" if pattern == "write" else "read"
    moved = done[side]["io_bytes"]
    counts = run.counts(work / "data")
    counted = counts["bytes_written" if pattern == "write" else "bytes_read"]
    if engine == "mmap":
        assert counts["bytes_resident"] == pytest.approx(moved, rel=0.01)
    elif engine == "io_uring" and process_fact(run, "uring_unattributed"):
        assert process_fact(run, "uring_unattributed") == done[side]["total_ios"]
    else:
        assert counted == pytest.approx(moved, rel=0.01)
