"""``pario bench api``: measurements, verdicts, pictures, and the history of a file system."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pario import _native
from pario.cli import main
from pario.prove.bench.history import changes, different, keep, last
from pario.prove.bench.verdicts import Rates, result_of, verdicts
from pario.prove.bench.ways import CONDITIONS, FORMAT, VERSION, WAYS, Request, make_file, measure
from pario.see.report.lines import Axes, Panel, figure
from pario.see.report.picture import check, draw

IN_ORDER, AT_RANDOM = "read in order from memory", "read at random from memory"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def document(**rates: dict[int, list[float]]) -> dict[str, Any]:
    """Makes a result of reading from memory in order; ``rates``: way -> piece size -> rates."""
    rows = [
        {"way": way, "condition": IN_ORDER, "piece": piece, "rates": values}
        for way, by in rates.items()
        for piece, values in by.items()
    ]
    pieces = sorted({row["piece"] for row in rows})
    about = {"size": 1 << 20, "seconds": 0.01, "left_in_memory": 0.0, "missing": {}}
    return {
        "format": FORMAT,
        "version": VERSION,
        "when": 0.0,
        "pieces": pieces,
        **about,
        "rows": rows,
    }


def list_verdicts(**rates: dict[int, list[float]]) -> list[str]:
    return dict(verdicts(result_of(document(**rates))))[IN_ORDER]


def test_every_way_is_measured_under_every_applicable_condition(tmp_path: Path) -> None:
    result = measure(Request(tmp_path, size=256 << 10, pieces=(4096,), repeat=2, seconds=0.01))
    missing = {what.split(", read ")[0].split(", write ")[0] for what in result["missing"]}
    measured = {(row["way"], row["condition"]) for row in result["rows"]}
    expected = {
        (way.name, condition.name)
        for way in WAYS
        for condition in CONDITIONS
        if condition.suits(way) and way.name not in missing
    }
    assert expected <= measured
    assert {"read", "pread", "stdio", "mmap"}.isdisjoint(missing)
    assert all(len(row["rates"]) == 2 and min(row["rates"]) > 0 for row in result["rows"])


def test_each_word_of_the_file_holds_its_offset(tmp_path: Path) -> None:
    make_file(tmp_path / "file", 9 << 20)
    data = (tmp_path / "file").read_bytes()
    assert len(data) == 9 << 20
    assert all(
        int.from_bytes(data[at : at + 8], "little") == at for at in (0, 8, 8 << 20, (9 << 20) - 8)
    )


def test_wrong_bytes_in_the_file_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    make_file(path, 64 << 10)
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"x")
    _, moved, wrong = _native.time_way(
        os.fsencode(path), ("pread", 1, 0, False, False), (False, True, False, 4096, 60.0)
    )
    assert (moved, wrong) == (64 << 10, 1)
    with pytest.raises(ValueError, match="read, pread, readv"):
        _native.time_way(
            os.fsencode(path), ("sendfile", 1, 0, False, False), (False, True, False, 4096, 60.0)
        )


def test_the_break_even_points_are_stated_in_words() -> None:
    read = {512: [100.0, 110.0], 4096: [800.0, 820.0], 65536: [1000.0, 1010.0]}
    stdio = {512: [400.0, 410.0], 4096: [790.0, 815.0], 65536: [500.0, 510.0]}
    first, largest, enough, pair = list_verdicts(read=read, stdio=stdio)
    assert first == "Pieces of 512 B: stdio is fastest, 405 B/s."
    assert largest == "Pieces of 64 KiB: read is fastest, 1.00 kB/s."
    assert (
        enough
        == "read() needs pieces of 64 KiB for 90 % of its best rate; pieces of 512 B reach 10 %."
    )
    assert (
        pair == "stdio is faster than read up to 512 B (3.9 times its rate at 512 B), "
        "slower than read from 64 KiB on (0.5 times its rate at 64 KiB)."
    )


def test_overlapping_repetitions_are_no_difference() -> None:
    assert (
        list_verdicts(mmap={4096: [100.0, 300.0]}, pread={4096: [200.0, 250.0]})[-1]
        == "mmap and pread do not differ clearly."
    )
    assert Rates((3.0, 4.0)).beats(Rates((1.0, 2.0))) and not Rates((2.0, 4.0)).beats(
        Rates((1.0, 2.0))
    )


def test_the_order_matters_until_pieces_are_large() -> None:
    kept = document(pread={4096: [1000.0], 65536: [1000.0]})
    kept["rows"] += [
        {"way": "pread", "condition": AT_RANDOM, "piece": piece, "rates": [rate]}
        for piece, rate in ((4096, 300.0), (65536, 950.0))
    ]
    assert (
        "Out of order, pieces of 4 KiB move at 30 % of the rate in order; from 64 KiB on the order"
        " does not matter." in (dict(verdicts(result_of(kept)))[AT_RANDOM])
    )


@pytest.mark.system
def test_the_command_prints_plots_keeps_and_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "bench",
        "api",
        str(tmp_path),
        "--size",
        "256K",
        "--pieces",
        "4K,8K",
        "--repeat",
        "2",
        "--seconds",
        "0.005",
    ]
    assert (
        main(
            [
                *words,
                "--compare",
                "--plot",
                str(tmp_path / "rates.svg"),
                "--json",
                str(tmp_path / "kept.json"),
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert all(condition.name in printed for condition in CONDITIONS)
    assert "No earlier result with these settings" in printed
    ElementTree.parse(tmp_path / "rates.svg")
    assert main([*words, "--compare", "--plot", str(tmp_path / "rates.html")]) == 0
    assert "rates do not differ clearly" in capsys.readouterr().out
    assert (tmp_path / "rates.html").read_text().count("<svg") == 1
    assert len(list((tmp_path / "state" / "pario" / "bench").rglob("api-*.json"))) == 2
    assert result_of(json.loads((tmp_path / "kept.json").read_text())).pieces == (4096, 8192)
    assert not [path for path in tmp_path.iterdir() if "pario-bench" in path.name]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "64K"], "expected at least 32 of the largest pieces"),
        (["--plot", "rates.pdf"], "expected a name that ends in .svg, .html or .png"),
        (["--plot", "/nonexistent/rates.svg"], "no directory /nonexistent"),
        (["--compare", "/nonexistent"], "/nonexistent: No such file or directory"),
        (["--compare", "/"], "/: Is a directory"),
        (
            ["--compare", "/etc/passwd"],
            "/etc/passwd: no JSON; expected a result that --json has written",
        ),
        (["--compare", "/proc/self/exe"], "/proc/self/exe: no JSON"),
        (
            ["--json", "/nonexistent/a.json"],
            "cannot write /nonexistent/a.json: no directory /nonexistent",
        ),
    ],
)
def test_errors_name_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["bench", "api", str(tmp_path), *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("pieces", ["4", "12", "2G", "4K,"])
def test_pieces_larger_than_a_call_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pieces: str
) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "api", str(tmp_path), "--pieces", pieces, "--size", "1T"])
    assert "expected" in capsys.readouterr().err


def test_only_results_with_the_same_settings_are_compared(tmp_path: Path) -> None:
    one = document(read={4096: [100.0, 101.0]})
    keep(tmp_path, one)
    keep(tmp_path, {**one, "size": 5})
    (tmp_path / "api-99999999T000000.000000000.json").write_text("{")
    found = last(tmp_path, one)
    assert found and found[1]["size"] == 1 << 20
    assert different(one, {**one, "size": 5, "seconds": 1}) == ["size", "seconds"]
    assert last(tmp_path, {**one, "size": 7}) is None


def test_changes_are_clear_when_no_repetition_is_between() -> None:
    before = {"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [1.0], "gone": [1.0]}
    found = {
        change.name: (change.factor, change.clear)
        for change in changes(before, {"a": [3.0, 6.0], "b": [2.0, 4.0], "c": [9.0]})
    }
    assert found == {"a": (3.0, True), "b": (2.0, False), "c": (9.0, False)}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("[]", "no result of pario bench"),
        (
            '{"format": "pario-bench-api", "version": 1}',
            "'rows' is missing; expected a result that --json has written",
        ),
        (
            '{"format": "pario-bench-patterns", "version": 1, "patterns": {}}',
            "a result of pario-bench-patterns; expected pario-bench-api",
        ),
    ],
)
def test_an_invalid_earlier_result_is_refused_before_the_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: str, said: str
) -> None:
    (tmp_path / "earlier.json").write_text(document)
    assert main(["bench", "api", str(tmp_path), "--compare", str(tmp_path / "earlier.json")]) == 2
    assert said in capsys.readouterr().err


AXES = Axes("n", "rate", str, lambda value: f"{value:.0f}")
PANELS = [
    Panel(f"panel {number}", {"a & b": [(1.0, 10.0), (10.0, 1000.0)]}) for number in range(3)
] + [Panel("none", {})]


@pytest.mark.system
def test_a_picture_has_the_format_of_its_suffix(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for suffix, begin in (
        (".svg", b"<svg "),
        (".html", b"<!doctype html>"),
        (".png", b"\x89PNG\r\n"),
    ):
        path = tmp_path / f"picture{suffix}"
        check(path)
        draw(path, "<title>", PANELS, AXES, "what was <told>")
        assert path.read_bytes().startswith(begin)
    page = (tmp_path / "picture.html").read_text()
    assert "&lt;title&gt;" in page and "what was &lt;told&gt;" in page and page.count("<svg") == 1
    from matplotlib import pyplot

    assert not pyplot.get_fignums()
    height, width, _ = pyplot.imread(tmp_path / "picture.png").shape
    assert width > height > 800  # two panels side by side, in two rows


def test_without_matplotlib_png_is_refused_before_the_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "api", str(tmp_path), "--plot", str(tmp_path / "rates.png")]) == 2
    assert "needs matplotlib" in capsys.readouterr().err
    assert (
        main(
            [
                "bench",
                "api",
                str(tmp_path),
                "--size",
                "8K",
                "--pieces",
                "8",
                "--plot",
                str(tmp_path),
            ]
        )
        == 2
    )
    assert not [path for path in tmp_path.iterdir() if path.name != "state"]


def test_pictures_show_each_line_where_its_values_are() -> None:
    text = figure(
        [
            Panel("<one>", {"a & b": [(1.0, 10.0), (10.0, 1000.0)], "flat": [(1.0, 10.0)]}),
            Panel("none", {}),
        ],
        AXES,
    )
    root = ElementTree.fromstring(text)
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["a & b: 1.0: 10, 10.0: 1000", "flat: 1.0: 10"]
    lines = [
        element.get("d") or ""
        for element in root.iter("{http://www.w3.org/2000/svg}path")
        if " L" in (element.get("d") or "")
    ]
    first, last_point = [
        tuple(map(float, point.split())) for point in lines[0].removeprefix("M").split(" L")
    ]
    assert first[0] < last_point[0] and first[1] > last_point[1]
