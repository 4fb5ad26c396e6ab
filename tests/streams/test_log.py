"""The log of buffered files: outcomes of settings, reasons, and counters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pario.see.tables import read
from pario.see.tables.model import Job
from tests.streams.conftest import Start

Build = Callable[[str], Path]


def read_log(
    start: Start, *command: object, streams: str, env: dict[str, str] | None = None
) -> Job:
    done = start(*command, streams=streams, env={"PARIO_TRACE_DIR": "log"} | (env or {}))
    assert done.status == 0, done.stderr
    return read([done.folder / "log"])


def outcomes(job: Job, name: str) -> dict[str, tuple[str, str, str, str]]:
    return {
        it.key: (it.requested, it.applied, it.effective, it.reason)
        for it in job.audit
        if it.table == "streams" and it.path.rsplit("/", 1)[1] == name
    }


def python(
    start: Start, script: str, streams: str = "*.dat:size=64K", env: dict[str, str] | None = None
) -> Job:
    head = (
        "import ctypes, fcntl, mmap, os\nout = os.open('out.dat', os.O_CREAT |"
        " os.O_RDWR)\nos.write(out, b'x' * 100)\n"
    )
    return read_log(start, sys.executable, "-c", head + script, streams=streams, env=env)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("fcntl.flock(out, fcntl.LOCK_EX)", "the program locks it"),
        ("mmap.mmap(out, 100)", "the program maps it into memory"),
        ("os.fork() or os._exit(0)", "the program forked while it was open"),
        ("fcntl.fcntl(out, fcntl.F_SETFL, os.O_APPEND)", "its flags were changed"),
        ("ctypes.CDLL(None).fdopen(out, b'w')", "a stdio stream is open on it"),
        (
            "os.set_inheritable(out, True); os.posix_spawn('/bin/true', ['true'], {}); os.wait()",
            "another program inherits it",
        ),
    ],
)
def test_the_log_names_the_reason_for_the_end_of_buffering(
    start: Start, script: str, reason: str
) -> None:
    said = outcomes(python(start, script), "out.dat")
    assert said["buffers"] == ("*.dat", "yes", "no", reason)
    assert said["size"] == ("64K", "65536", "", "not in question: the file is not buffered")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("os.O_SYNC", "opened with O_SYNC or O_DSYNC"),
        ("os.O_DSYNC", "opened with O_SYNC or O_DSYNC"),
    ],
)
def test_the_log_names_the_reason_against_buffering(start: Start, flags: str, reason: str) -> None:
    job = python(start, f"os.open('other.dat', os.O_CREAT | os.O_WRONLY | {flags})")
    assert outcomes(job, "other.dat")["buffers"] == ("*.dat", "yes", "no", reason)
    assert outcomes(job, "out.dat")["buffers"] == ("*.dat", "yes", "yes", "")


def test_the_log_names_the_reason_against_buffering_a_pipe(start: Start) -> None:
    job = python(start, "os.mkfifo('pipe.dat'); os.open('pipe.dat', os.O_RDWR)")
    assert outcomes(job, "pipe.dat")["buffers"][3] == "a pipe, a socket, a terminal or a device"


def test_the_log_names_missing_memory(start: Start) -> None:
    job = python(
        start,
        "os.open('other.dat', os.O_CREAT | os.O_WRONLY)",
        "*.dat:size=64K",
        {"PARIO_STREAMS_MEMORY": "64K"},
    )
    assert outcomes(job, "other.dat")["buffers"] == (
        "*.dat",
        "yes",
        "no",
        "PARIO_STREAMS_MEMORY leaves no room",
    )
    script = "for i in range(5): os.pwrite(out, b'x', i * 65536)"
    assert (
        outcomes(
            python(start, script, "*.dat:size=64K:count=4", {"PARIO_STREAMS_MEMORY": "128K"}),
            "out.dat",
        )["count"][2]
        == "2"
    )


def test_the_log_has_the_effect_of_each_key(start: Start) -> None:
    said = outcomes(
        python(start, "", "*.dat:size=64K:count=100:szie=1:preflush=2:verbose"), "out.dat"
    )
    assert said["size"] == ("64K", "65536", "65536", "")
    assert said["count"][:3] == ("100", "100", "64")
    assert said["szie"] == ("1", "", "", '"szie=1": unknown: did you mean size?')
    assert said["preflush"][3] == "known, but without a meaning here"
    assert said["verbose"] == ("yes", "yes", "yes", "")


def test_the_log_has_the_outcome_of_stdio_streams(start: Start, build: Build) -> None:
    said = outcomes(
        read_log(start, build("lines.c"), "tiny", streams="*.txt:stdio_size=1M:count=3"), "out.txt"
    )
    assert said["buffers"] == ("*.txt", "yes", "yes", "")
    assert said["stdio_size"] == ("1M", "1048576", "1048576", "")
    assert "a stdio stream" in said["count"][3]


def test_counters_equal_the_calls(start: Start, build: Build) -> None:
    job = read_log(start, build("lines.c"), streams="*.txt:size=4K:delay=0")
    (row,) = [row for row in job.records if job.path(row["file"]).endswith("/out.txt")]
    assert (
        row["writes"],
        row["bytes_written"],
        row["buffered_write_bytes"],
        row["system_write_bytes"],
    ) == (1000, 8890, 8890, 8890)
    assert (row["system_writes"], row["buffers_used"], row["preflushes"]) == (3, 3, 2)


def test_wasted_read_ahead_is_counted(start: Start) -> None:
    script = (
        "os.pwrite(out, bytes(1 << 20), 0); os.fsync(out)\nfor i in range(100): os.read(out, 100)"
    )
    job = python(start, script, "*.dat:size=64K:prefetch=2:count=4")
    (row,) = [row for row in job.records if job.path(row["file"]).endswith("/out.dat")]
    assert row["system_reads"] >= 2
    assert row["prefetches"] >= 1
    assert row["wasted_bytes"] > 0


def test_the_log_of_a_child_has_its_own_notes(start: Start) -> None:
    script = (
        "if os.fork() == 0:\n os.write(os.open('child.dat', os.O_CREAT | os.O_WRONLY), b'x')\n"
        " os._exit(0)\nos.wait()"
    )
    assert outcomes(python(start, script), "child.dat")["buffers"] == ("*.dat", "yes", "yes", "")
