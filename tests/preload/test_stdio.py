"""stdio calls in known numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Trace

FLAGS = pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O2",), ("-O2", "-D_FORTIFY_SOURCE=2")],
    ids=["plain", "inlined", "fortified"],
)


def select_counts(counts: dict[str, int], **expected: int) -> dict[str, int]:
    return {name: counts[name] for name in expected}


@FLAGS
def test_blocks_strings_and_formats_are_counted(
    trace: Trace, build: Compile, work: Path, flags: tuple[str, ...]
) -> None:
    run = trace(build("stdio.c", *flags), "blocks")
    expected = {
        **{"opens": 1, "closes": 1, "writes": 5, "bytes_written": 1039, "end_written": 1039},
        **{"reads": 4, "bytes_read": 100 + 14 + 1039, "zero_reads": 1, "seeks": 2},
        **{"flushes": 1, "formatted_calls": 1, "failed": 0},
    }
    assert run.status == 0
    assert select_counts(run.counts(work / "blocks", "stdio"), **expected) == expected


def test_streams_know_their_place(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("stdio.c", "-O0"), "blocks")
    assert run.events(work / "blocks", "fwrite") == [(0, 1000)]
    assert run.events(work / "blocks", "fprintf") == [(1030, 9)]
    assert run.events(work / "blocks", "fread") == [(10, 100), (0, 1039), (1039, 0)]
    assert run.events(work / "blocks", "fread_unlocked") == [(110, 14)]


@FLAGS
def test_lines_and_scans_are_counted_with_their_bytes(
    trace: Trace, build: Compile, work: Path, flags: tuple[str, ...]
) -> None:
    run = trace(build("stdio.c", *flags), "text")
    expected = {
        "writes": 100,
        "bytes_written": 800,
        "reads": 101,
        "bytes_read": 800,
        "formatted_calls": 141,
        "sampled_writes": 7,
        "sampled_numbers": 4,
        "failed": 0,
    }
    assert run.status == 0
    assert select_counts(run.counts(work / "text", "stdio"), **expected) == expected


@FLAGS
def test_every_character_is_counted_inlined_or_not(
    trace: Trace, build: Compile, work: Path, flags: tuple[str, ...]
) -> None:
    run = trace(build("stdio.c", *flags), "characters")
    expected = {
        **{"writes": 15078, "bytes_written": 15177, "end_written": 15177, "failed": 0},
        **{"reads": 15000 + 1 + 1 + 77 + 1, "bytes_read": 15178, "end_read": 15177},
        "zero_reads": 1,
    }
    assert run.status == 0
    assert select_counts(run.counts(work / "characters", "stdio"), **expected) == expected


def test_characters_of_a_stream_that_is_never_closed_are_counted(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("stdio.c"), "unclosed")
    assert run.counts(work / "unclosed", "stdio")["bytes_written"] == 6000
    assert (work / "unclosed").stat().st_size == 6000


def test_threads_on_one_stream_lose_nothing(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("stdio.c"), "threads")
    counts = run.counts(work / "threads", "stdio")
    assert run.status == 0
    assert (counts["writes"], counts["bytes_written"]) == (4 * 20200, 4 * 24000)
    assert (work / "threads").stat().st_size == 4 * 24000


def test_buffers_are_noted_with_size_and_mode(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("stdio.c"), "buffers")
    buffers = {
        name: run.counts(work / name, "stdio") for name in ("large", "none", "lines", "usual")
    }
    assert {
        name: (counts["buffer_size"], counts["buffer_mode"]) for name, counts in buffers.items()
    } == {
        "large": (1 << 20, 0),
        "none": (1, 2),
        "lines": (4096, 1),
        "usual": (4096, 0),
    }
    assert buffers["none"]["bytes_written"] == 2


def test_streams_of_all_origins(trace: Trace, build: Compile, work: Path) -> None:
    run = trace(build("stdio.c"), "streams")
    assert (run.status, run.stdout) == (0, "to stdout\nthrough a pipe\n")
    assert run.events(work / "append", "fputs") == [(0, 5), (5, 3)]
    assert run.counts(work / "append", "stdio")["closes"] == 2
    assert run.counts(work / "reopened", "stdio")["bytes_written"] == 2
    assert run.counts("<stdout>", "stdio")["bytes_written"] == 10
    assert run.counts(work / "no/such", "stdio")["failed_opens"] == 1


def test_two_streams_on_one_file_and_a_fork_count_everything_once(
    trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("stdio.c"), "shared")
    counts = run.counts(work / "shared", "stdio")
    assert run.status == 0
    assert (counts["bytes_written"], counts["writes"]) == (7504, 7503)
    assert (counts["opens"], counts["closes"]) == (1, 2)  # fdopen opens no file
    assert (work / "shared").stat().st_size == 7504


@FLAGS
def test_the_standard_streams_are_files_like_others(
    trace: Trace, build: Compile, flags: tuple[str, ...]
) -> None:
    run = trace(build("stdio.c", *flags), "standard", stdin="x" * 5000)
    assert (run.status, run.stderr) == (0, "to stderr\n")
    assert sorted(run.stdout.split()) == sorted("5000 characters puts ! dprintf".split())
    assert run.counts("<stdin>", "stdio")["bytes_read"] == 5000
    assert run.counts("<stdout>", "stdio")["bytes_written"] == len("5000 characters\nputs\n!")
    assert run.counts("<stdout>")["bytes_written"] == len("dprintf\n")
    assert run.counts("<stderr>", "stdio")["bytes_written"] == len("to stderr\n")


@FLAGS
def test_wide_characters_are_counted_in_bytes_of_the_file(
    trace: Trace, build: Compile, work: Path, flags: tuple[str, ...]
) -> None:
    run = trace(build("stdio.c", *flags), "wide")
    size = 12 * 9 + 7 + 2 * 7
    expected = {
        "writes": 12 + 5 + 2,
        "bytes_written": size,
        "reads": 12 + 5 + 2 + 2,
        "bytes_read": size,
        "zero_reads": 1,
        "failed": 0,
    }
    assert run.status == 0
    assert (work / "wide").stat().st_size == size
    assert select_counts(run.counts(work / "wide", "stdio"), **expected) == expected
