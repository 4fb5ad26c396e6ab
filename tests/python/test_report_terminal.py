"""The terminal page: its text and size, and that text of a log cannot control the terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pario.see.analyze.model import Analysis
from pario.see.report import terminal
from tests.python.support import analyses

GOLDEN = Path(__file__).parent / "golden"


def page(analysis: Analysis, width: int = 100, everything: bool = False) -> str:
    stream = io.StringIO()
    terminal.render(analysis, Console(file=stream, width=width), all=everything)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "analysis", "width", "everything"),
    [
        ("small", analyses.small(), 80, False),
        ("small-all", analyses.small(), 80, True),
        ("rich", analyses.rich(10), 100, False),
        ("healthy", analyses.healthy(), 80, False),
        ("empty", analyses.empty(), 80, False),
    ],
)
def test_the_page_reads_as_the_golden_text(
    name: str, analysis: Analysis, width: int, everything: bool
) -> None:
    golden = GOLDEN / f"report-{name}.txt"
    assert page(analysis, width, everything) == golden.read_text(encoding="utf-8")


def test_sentences_of_a_narrow_page_continue_in_the_next_line() -> None:
    text = " ".join(page(analyses.rich(10), 60).split())
    assert "I/O: 106 s (mean 30.2 s), without waiting (mean 79.4 s, 43 %)." in text
    assert "10 times the bytes of the others; OST 0015 has 36 % of the bytes" in text


@pytest.mark.parametrize(("io", "named"), [(0.05, False), (0.5, True)])
def test_mpiio_without_a_finding_is_sent_to_replays(io: float, named: bool) -> None:
    calm = analyses.healthy()
    (row, *_) = calm.files
    critical = replace(calm.verdict.critical, io=io * calm.verdict.critical.wall)
    found = replace(
        calm,
        files=(replace(row, layers=("mpiio", "posix")),),
        verdict=replace(calm.verdict, critical=critical),
    )
    text = " ".join(page(found).split())
    assert ("`pario advise` of this log measures by replays" in text) is named
    assert "`pario advise`" not in page(replace(found, files=(row,)))


@pytest.mark.parametrize("ranks", [10, 1000])
def test_a_rich_job_fits_one_screen(ranks: int) -> None:
    lines = page(analyses.rich(ranks)).splitlines()
    assert len(lines) <= 49
    assert lines[0].startswith("I/O-bound")


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal_but_commands_and_notes(width: int) -> None:
    lines = page(analyses.rich(1000), width).splitlines()
    notes = next(index for index, line in enumerate(lines) if line.startswith("Note"))
    assert [line for line in lines[:notes] if len(line) > width and "$" not in line] == []


def test_everything_is_shown_on_demand() -> None:
    text = page(analyses.rich(10), everything=True)
    assert "12,000 files below 64 kB" in text
    assert "table_258.nc" in text
    assert "lseek64" in text


def test_a_hint_without_effect_is_one_line_of_the_first_screen() -> None:
    lines = [line for line in page(analyses.rich(10), 80).splitlines() if line.startswith("Hints")]
    assert lines == ["Hints  unknown hint cb_nods: did you mean cb_nodes? (and 1 more: --all)"]
    harmless = tuple(
        row for row in analyses.rich(10).audit if row.state in ("in force", "without meaning")
    )
    assert "Hints" not in page(replace(analyses.rich(10), audit=harmless))


def test_everything_has_the_hints_and_figures_of_parios_mpiio() -> None:
    lines = page(analyses.rich(10), 100, everything=True).splitlines()
    hints = lines.index("pario's MPI-IO   hints")
    assert lines[hints + 1].split() == [
        "Hint",
        "requested",
        "applied",
        "effective",
        "outcome",
        "files",
    ]
    assert lines[hints + 4].split() == [
        "striping_factor",
        "16",
        "16",
        "1",
        "not",
        "in",
        "force",
        "40",
    ]
    assert lines[hints + 5] == "    existing file: it keeps 1 stripe"
    assert any(re.search(r" 2,400 +4.17 MB +2,380 +7 +7 +4.10 kB$", line) for line in lines)
    assert any(
        re.search(r" 0.40 s +40.0 s +12.0 s +4.00 s +2.00 s +24.0 s +250 MB/s +417 MB/s$", line)
        for line in lines
    )
    assert "pario's MPI-IO" not in page(analyses.small(), everything=True)


def test_a_file_gets_no_colours_and_a_terminal_does() -> None:
    assert "\x1b" not in page(analyses.rich(10))
    stream = io.StringIO()
    terminal.render(
        analyses.rich(10),
        Console(file=stream, width=100, force_terminal=True, color_system="standard"),
    )
    assert "\x1b[" in stream.getvalue()


def test_no_color_in_the_environment_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    terminal.render(
        analyses.rich(10),
        Console(file=stream, width=100, force_terminal=True, color_system="standard"),
    )
    assert "\x1b[3" not in stream.getvalue()


def test_names_from_a_log_cannot_steer_the_terminal() -> None:
    text = page(analyses.hostile(), everything=True)
    assert not [
        character for character in text if character != "\n" and not character.isprintable()
    ]
    assert "[bold]markup[/bold]" in text


def test_an_ascii_terminal_gets_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    terminal.render(analyses.rich(10), Console(file=stream, width=100))
    stream.flush()
    assert b"####" in raw.getvalue()


def test_a_command_is_never_broken() -> None:
    assert "$ lfs setstripe -c 16 -S 4M /lustre/work/combustion/run17/out\n" in page(
        analyses.rich(10), width=60
    )


def test_the_split_shows_every_part_that_is_not_zero() -> None:
    bar = page(analyses.healthy(), 80).splitlines()[4]
    assert len(bar) == 80
    assert {"░", "▒", "▓", "█"} == set(bar)


def test_a_run_with_hardly_any_io_gets_three_lines() -> None:
    analysis = analyses.small()
    verdict = replace(
        analysis.verdict, sentence="Hardly any I/O: 58.0 µs of the 1.60 ms run.", bound="little"
    )
    lines = page(replace(analysis, verdict=verdict, findings=())).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("Hardly any I/O")


@pytest.mark.system
@pytest.mark.parametrize("width", range(20, 141, 7))
def test_the_split_bar_fills_its_line_and_no_more(width: int) -> None:
    bars = [
        line
        for line in page(analyses.rich(10), width).splitlines()
        if line and set(line) <= set("░▒▓█")
    ]
    assert [len(line) for line in bars] == [min(max(width, 20), 120)]
