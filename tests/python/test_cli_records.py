"""Commands of ``pario records``: measured devices, and requests that are refused by name."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from pario import _native
from pario.cli import main, records_look

KIB = 1 << 10


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert records("index", path) == 0
    return path


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Gives each device 1 GB/s in order, and this number of random requests a second."""

    def use(requests: float) -> None:
        monkeypatch.setattr(_native, "measure_device", lambda path, length: (1e9, requests))

    return use


@pytest.mark.parametrize(
    ("requests", "break_even", "advice"),
    [
        (1e3, None, "A shuffled copy pays for records of any size here"),
        (4e6, KIB, "No shuffled copy is needed here"),
        (3e6, 4 * KIB, "Records of 4 KiB and more need no shuffled copy here"),
    ],
)
def test_the_advice_of_bench_follows_from_the_device(
    lines: Path,
    measure: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
    requests: float,
    break_even: int | None,
    advice: str,
) -> None:
    """Random access pays from the length on at which it has 80 % of the rate in order."""
    measure(requests)
    capsys.readouterr()
    assert records("bench", lines) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(advice)
    assert records("bench", lines, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["break_even"] == break_even
    assert [row["length"] for row in found["rows"]] == [KIB * 4**power for power in range(6)]
    for row in found["rows"]:  # the time of a record: its request, and its bytes
        assert row["length"] / row["at_random"] == pytest.approx(1 / requests + row["length"] / 1e9)


def test_the_table_of_bench_has_a_row_for_each_length(
    lines: Path, measure: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    measure(1e6)
    capsys.readouterr()
    assert records("bench", lines) == 0
    head, *rows, _ = capsys.readouterr().out.splitlines()
    assert head == "records of    in order      at random (16 at a time)"
    assert [row.split() for row in rows[:2]] == [
        ["1", "KiB", "1.00", "GB/s", "506", "MB/s", "51%"],
        ["4", "KiB", "1.00", "GB/s", "804", "MB/s", "80%"],
    ]
    assert len(rows) == 6


def test_a_file_that_cannot_be_measured_is_named(
    lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert records("bench", lines) == 2
    assert "a.txt: cannot be measured: a file of 200 MB" in capsys.readouterr().err


def test_a_record_that_does_not_exist_is_named(
    lines: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert records("get", lines, 1, 3) == 2
    assert capfdbinary.readouterr().err.endswith(b": record 3 of 3 of %b\n" % bytes(lines))


def test_verify_says_that_there_may_be_more_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / str(number)).write_bytes(b"content %d" % number)
    packed = tmp_path / "a.prec"
    assert records("pack", tmp_path / "in", "-o", packed) == 0
    packed.write_bytes(packed.read_bytes().replace(b"content", b"damaged"))
    monkeypatch.setattr(records_look, "_MOST", 3)
    capsys.readouterr()
    assert records("verify", packed) == 1
    found = capsys.readouterr().out.splitlines()
    assert [line.partition(": record ")[2][:1] for line in found] == ["0", "1", "2", ""]
    assert found[-1] == f"{packed}: there may be more"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["merge", "a.txt", "b.tfrecord"], "the files are of several formats: lines, tfrecord"),
        (["shuffle", "a.txt", "b.tfrecord"], "the inputs are of several formats: lines, tfrecord"),
        (
            ["convert", "a.txt", "--column", "text", "--to", "prec"],
            "a.txt: --column is for Parquet",
        ),
        (["convert", "unknown", "--to", "prec"], "unknown: its format is not known; say --format"),
        (["convert", "missing", "--to", "prec"], "missing: no such file or directory; expected"),
    ],
)
def test_requests_that_cannot_be_carried_out_leave_no_output(
    lines: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    reason: str,
) -> None:
    monkeypatch.chdir(lines.parent)
    assert records("convert", "a.txt", "--to", "tfrecord", "-o", "b.tfrecord") == 0
    assert records("index", "b.tfrecord") == 0
    Path("unknown").write_bytes(b"\0\1\2\3")
    before = sorted(Path.cwd().iterdir())
    capsys.readouterr()
    assert records(*words, "-o", "out") == 2
    assert reason in capsys.readouterr().err
    assert sorted(Path.cwd().iterdir()) == before


def test_an_explained_shuffle_writes_nothing(
    lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert records("shuffle", lines, "-o", lines.parent / "out.prec", "--explain") == 0
    assert "3 records" in capsys.readouterr().out
    assert not (lines.parent / "out.prec").exists()


def test_a_split_raises_the_limit_of_open_files_to_that_of_its_shards(
    lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (65, 1000))
    monkeypatch.setattr(resource, "setrlimit", lambda *limit: limits.append(limit))
    assert records("split", lines, "--shards", 3, "-o", lines.parent / "out.txt") == 0
    [(which, (soft, hard))] = limits
    assert (which, hard) == (resource.RLIMIT_NOFILE, 1000) and soft >= 3 + 64
    shards = sorted(lines.parent.glob("out*.txt"))
    assert [path.read_bytes() for path in shards] == [b"one\n", b"two\n", b"three\n"]
