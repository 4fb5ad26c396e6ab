"""The form of numbers and names in texts."""

from __future__ import annotations

import math

import pytest

from pario import wording
from tests.support.commands import run_command


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (8.5e-7, "850 ns"),
        (1.2e-5, "12.0 µs"),
        (0.0034, "3.40 ms"),
        (0.42, "0.42 s"),
        (9.999, "10.0 s"),
        (12.34, "12.3 s"),
        (184.2, "184 s"),
        (999.7, "1,000 s"),
        (1469.0, "1,469 s"),
        (3599.9, "1 h 00 min"),
        (7630.0, "2 h 07 min"),
        (math.nan, "not known"),
        (math.inf, "not known"),
    ],
)
def test_seconds_have_three_digits_and_a_unit_that_fits(value: float, text: str) -> None:
    assert wording.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (2048, "2.05 kB"),
        (999_999, "1.00 MB"),
        (4 * 10**11, "400 GB"),
        (2 * 10**19, "20.0 EB"),
    ],
)
def test_sizes_are_in_si_units(value: int, text: str) -> None:
    assert wording.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512, "512 B"),
        (4096, "4 KiB"),
        (1.5 * (1 << 20), "1.5 MiB"),
        (1 << 30, "1 GiB"),
        (1 << 50, "1024 TiB"),
        (math.nan, "not known"),
    ],
)
def test_blocks_are_in_binary_units(value: float, text: str) -> None:
    assert wording.block(value) == text


def test_the_exact_size_and_the_rate_go_with_it() -> None:
    assert wording.exact_size(2048) == "2,048 B"
    assert wording.rate(1.5e9) == "1.50 GB/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (950, "950"), (1000, "1k"), (1234, "1.2k"), (34_000_000, "34M"), (999_600, "1M")],
)
def test_short_counts(value: int, text: str) -> None:
    assert wording.short_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"),
        (0.0004, "<0.1 %"),
        (0.004, "0.4 %"),
        (0.0096, "1 %"),
        (0.584, "58 %"),
        (1, "100 %"),
    ],
)
def test_shares_are_in_per_cent(value: float, text: str) -> None:
    assert wording.share(value) == text


def test_a_part_of_nothing_is_nothing() -> None:
    assert wording.percent(1, 0) == "0 %"
    assert wording.percent(1, 4) == "25 %"


def test_plurals() -> None:
    assert wording.plural(1, "file") == "1 file"
    assert wording.plural(2000, "file") == "2,000 files"
    assert wording.plural(2, "process", "processes") == "2 processes"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1, 2, 3), "0-3"),
        ((8, 0, 1, 1), "0-1, 8"),
        (tuple(range(0, 40, 2)), "0, 2, 4, 6, 8, 10 and 14 more"),
    ],
)
def test_ranks_are_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert wording.ranks(numbers) == text


def test_a_long_path_loses_its_middle_and_keeps_its_end() -> None:
    assert wording.elide("/lustre/work/combustion/out/chk.h5", 20) == "/lustre…n/out/chk.h5"
    assert wording.elide("short", 5) == "short"
    assert wording.elide("anything", 1) == "…"


def test_a_long_command_loses_directories_first() -> None:
    assert (
        wording.command("mpiexec -n 4 /home/ada/combustion/bin/s3d in.nml", 30)
        == "mpiexec -n 4 …/s3d in.nml"
    )
    assert wording.command("tar -cf archive.tar data more", 12) == "tar -cf arc…"
    assert (
        wording.command("./a.out /home/ada/combustion/in", 40) == "./a.out /home/ada/combustion/in"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("naïve-数据", "naïve-数据"),
        ("שלום", "שלום"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, shown: str) -> None:
    assert wording.printable(text) == shown


@pytest.mark.parametrize(
    "word",
    ["plain", "two words", "it's", "\nfor i in range(3):\n\tprint('a\\\\b')\n", "\x1b[0m", ""],
)
def test_a_command_line_is_one_line_that_a_shell_reads_back(word: str) -> None:
    line = wording.command_line(["printf", "<%s>", word, "end"])
    assert wording.printable(line) == line
    done = run_command(["bash", "-c", line], status=0)
    assert done.stdout == f"<{word}><end>"


def test_moments_are_in_utc() -> None:
    assert wording.moment(1_790_000_000.0) == "21 September 2026, 14:13:20 UTC"


def test_an_exit_status_names_its_signal() -> None:
    assert wording.exit_status(139) == "exit status 139 (SIGSEGV)"
    assert wording.exit_status(143) == "exit status 143 (SIGTERM)"
    assert wording.exit_status(1) == "exit status 1"
    assert wording.exit_status(255) == "exit status 255"
