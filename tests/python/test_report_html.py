"""The HTML page as text: valid, self-contained, small, and without markup from a log."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import cache
from html import unescape
from importlib import resources
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from pario.see.analyze.model import Analysis, Outlier
from pario.see.analyze.survey import summarize
from pario.see.report import html, svg
from pario.see.report.html import survey
from pario.see.report.html.charts.chart import decades, linear, round_step, span
from pario.see.report.html.table import render_table
from pario.see.report.tables import run
from tests.python.support import analyses, colour, surveys

html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")

SURVEYS = {
    "survey": lambda: surveys.many(40),
    "many runs": lambda: surveys.many(5000),
    "hostile survey": surveys.hostile,
    "no runs": lambda: summarize([]),
}
MAKERS = {
    "small": analyses.small,
    "healthy": analyses.healthy,
    "empty": analyses.empty,
    "ten": lambda: analyses.rich(10),
    "thousand": lambda: analyses.rich(1000),
    "hostile": analyses.hostile,
}
STYLE = resources.files("pario.see.report.html").joinpath("style.css").read_text(encoding="utf-8")
SCRIPT = resources.files("pario.see.report.html").joinpath("script.js").read_text(encoding="utf-8")


@cache
def page(name: str) -> str:
    if name in SURVEYS:
        return survey.render(SURVEYS[name](), ["/logs", "/more"])
    return html.render(MAKERS[name]())


@cache
def tree_of(name: str) -> Element:
    """Parses strictly: a mistake is an error."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page(name))


def parse_html(text: str) -> Element:
    return html5lib.parse(text, namespaceHTMLElements=False)


@pytest.mark.system
@pytest.mark.parametrize("name", [*MAKERS, *SURVEYS])
def test_the_page_is_valid_html(name: str) -> None:
    assert tree_of(name).find("body/main") is not None


@pytest.mark.system
@pytest.mark.parametrize("name", [*MAKERS, *SURVEYS])
def test_ids_are_unique_and_references_resolve(name: str) -> None:
    tree = tree_of(name)
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    links = {element.get("href")[1:] for element in tree.iter("a")}
    links |= {element.get("for") for element in tree.iter() if element.get("for")}
    assert links <= set(ids)


@pytest.mark.system
@pytest.mark.parametrize("name", [*MAKERS, *SURVEYS])
def test_the_page_needs_nothing_from_elsewhere(name: str) -> None:
    tree = tree_of(name)
    links = [
        element.get(key)
        for element in tree.iter()
        for key in ("src", "href", "action", "data", "srcset")
        if element.get(key)
    ]
    assert [link for link in links if not link.startswith(("#", "data:image/png;base64,"))] == []
    assert not re.search(r"url\(|@import|https?:", STYLE)
    assert not re.search(
        r"fetch\(|XMLHttpRequest|import\(|https?:(?!//www\.w3\.org/2000/svg)", SCRIPT
    )
    assert list(tree.iter("link")) == []


@pytest.mark.system
def test_the_page_stays_small() -> None:
    sizes = {name: len(page(name).encode()) for name in (*MAKERS, *SURVEYS)}
    print(sizes)
    assert max(sizes.values()) < 1_000_000
    assert len(SCRIPT.encode()) < 20_000


@pytest.mark.system
def test_many_long_names_do_not_make_the_page_large() -> None:
    rows = tuple(
        replace(row, path="/" + "ü" * 4000 + str(number))
        for number, row in enumerate(analyses.rich(1000).files)
    )
    text = html.render(replace(analyses.rich(1000), files=rows * 4))
    assert len(text.encode()) < 1_000_000


def test_noise_in_the_timeline_does_not_make_the_page_large() -> None:
    timeline = analyses.rich(1000).timeline
    assert timeline is not None
    noise = tuple(
        tuple((row * 7919 + column * 104_729) % 1009 / 4036 for column in range(analyses.BINS))
        for row in range(64)
    )
    busy = replace(
        timeline, read_share=noise, write_share=noise[::-1], meta_share=noise, mpi_share=noise
    )
    assert len(html.render(replace(analyses.rich(1000), timeline=busy)).encode()) < 1_000_000


def test_nothing_of_a_log_becomes_markup() -> None:
    tree = tree_of("hostile")
    assert len(list(tree.iter("script"))) == 2  # scripts of the page, and its data
    assert not [
        element for element in tree.iter() for key in element.attrib if key.startswith("on")
    ]
    text = "".join(tree.find("body").itertext())
    for shown in (
        "<script>alert(1)</script>",
        "\"quoted\" & 'single'",
        "\\xff\\xfe",
        "{{ 7 * 7 }}{% raw %}",
        "</style></title>",
        "\\u202egnp.exe",
    ):
        assert shown in text


def test_nothing_of_a_survey_becomes_markup() -> None:
    tree = tree_of("hostile survey")
    assert len(list(tree.iter("script"))) == 2
    text = "".join(tree.find("body").itertext())
    for visible in ("<script>alert(1)</script>", "\\x1b[31m", "\\u202e", "\\xff", "{{ 7 * 7 }}"):
        assert visible in text


@pytest.mark.system
def test_the_page_of_a_survey_has_the_first_runs_and_all_totals() -> None:
    tree = tree_of("many runs")
    rows = {
        section.get("id"): len(list(section.iter("tr"))) - 1
        for section in tree.iter("section")
        if section.find(".//table") is not None
    }
    assert rows == {"runs": 500, "causes": 5, "programs": 100, "users": 100}
    assert "The first 500 runs of 5,000" in "".join(tree.find("body").itertext())


def test_paths_are_isolated_from_the_direction_of_the_text_around() -> None:
    tree = tree_of("hostile")
    cells = [
        row.find("th")
        for row in next(
            table for table in tree.iter("table") if table.get("id") == "file-table"
        ).find("tbody")
    ]
    assert all(cell.find("bdi") is not None for cell in cells)


def test_the_verdict_and_the_findings_come_before_all_else() -> None:
    tree = tree_of("ten")
    assert [section.get("id") for section in tree.iter("section")][:2] == ["verdict", "findings"]
    title = next(tree.iter("h1")).text or ""
    assert title.replace("\u00a0%", " %") == analyses.rich(10).verdict.sentence


def test_every_finding_is_shown_with_seconds_cause_and_fix() -> None:
    text = unescape(re.sub(r"<[^>]+>", "", page("ten")))
    for finding in analyses.rich(10).findings:
        assert finding.title in text
        assert finding.cause in text
        assert finding.fixes[0].text in text
    assert "55.3 s" in text


def test_tables_have_captions_and_charts_have_descriptions() -> None:
    tree = tree_of("ten")
    assert all(table.find("caption") is not None for table in tree.iter("table"))
    charts = [
        element
        for element in tree.iter()
        if str(element.tag).endswith("svg") and not element.get("aria-hidden")
    ]
    assert charts
    assert all(chart.get("role") == "img" and chart.get("aria-label") for chart in charts)


def test_the_section_of_mpiio_shows_hints_calls_and_times() -> None:
    section = next(
        section for section in tree_of("ten").iter("section") if section.get("id") == "mpiio"
    )
    hints, calls, system, times = (
        ["".join(row.itertext()) for row in table.iter("tr")] for table in section.iter("table")
    )
    assert "unknown hint cb_nods: did you mean cb_nodes?" in hints[1]
    assert "not in force" in hints[2]
    assert [
        name in calls[0]
        for name in ("collective writes", "independent writes", "windows", "sieved")
    ] == [True] * 4
    assert [
        name in system[0] for name in ("average", "whole stripes", "read-modify-write", "holes")
    ] == [True] * 4
    assert [name in times[0] for name in ("waiting", "file", "net", "raw")] == [True] * 4
    assert "250 MB/s" in times[1]


@pytest.mark.system
def test_many_files_of_mpiio_do_not_make_the_page_large() -> None:
    row = analyses.rich(1000).mpiio[0]
    rows = tuple(replace(row, path="/" + "ü" * 4000 + str(number)) for number in range(1000))
    hints = tuple(replace(hint, reason="ü" * 4000) for hint in analyses.rich(1000).audit * 100)
    text = html.render(replace(analyses.rich(1000), mpiio=rows, mpiio_total=5000, audit=hints))
    assert len(text.encode()) < 1_000_000
    assert "50 files with most time of 5,000" in text


def test_byte_counts_are_exact() -> None:
    assert 'title="1,024,000,000 B">1.02 GB<' in page("small")


@pytest.mark.system
@pytest.mark.parametrize(
    "analysis",
    [
        analyses.rich(10),
        replace(
            analyses.rich(10),
            timeline=None,
            contention=(),
            sizes=(),
            hints=(),
            phases=(),
            mpiio=(),
            audit=(),
        ),
    ],
)
def test_unknown_facts_have_no_section(analysis: Analysis) -> None:
    sections = {section.get("id") for section in parse_html(html.render(analysis)).iter("section")}
    optional = {
        "over-time": analysis.timeline,
        "contention": analysis.contention,
        "sizes": analysis.sizes,
        "hints": analysis.hints,
    }
    optional |= {"mpiio": analysis.mpiio}
    assert {name for name in optional if name in sections} == {
        name for name, value in optional.items() if value
    }


# ---- colours


def palette(theme: str) -> dict[str, str]:
    light = dict(re.findall(r"--(\w+): (#\w{6})", STYLE.split(":root {")[1].split("}")[0]))
    dark = dict(
        re.findall(r"--(\w+): (#\w{6})", STYLE.split(':root[data-theme="dark"] {')[1].split("}")[0])
    )
    return light if theme == "light" else light | dark


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_the_contrast_of_aa(theme: str) -> None:
    colours = palette(theme)
    for text, ground in itertools.product(("ink", "soft", "link"), ("paper", "raised")):
        assert colour.contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for mark in (
        "compute",
        "communication",
        "waiting",
        "io",
        "write",
        "read",
        "meta",
        "mpi",
        "focus",
    ):
        assert colour.contrast(colours[mark], colours["paper"]) >= 3, mark


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", colour.SEEN_WITH)
def test_colours_of_one_chart_are_distinct_for_colour_blind_readers(theme: str, sight: str) -> None:
    colours = palette(theme)
    for group in (("compute", "communication", "waiting", "io"), ("write", "read", "meta", "mpi")):
        for first, second in itertools.combinations(group, 2):
            assert colour.difference(colours[first], colours[second], sight) >= 14.5, (
                first,
                second,
            )


def test_both_ways_to_dark_are_the_same() -> None:
    blocks = re.findall(r"(--paper: #15181d;.*?color-scheme: dark;)", STYLE, re.DOTALL)
    assert len(blocks) == 2
    assert len({re.sub(r"\s+", " ", block) for block in blocks}) == 1


# ---- the charts' pure functions


@pytest.mark.parametrize(
    ("least", "step"), [(0.9, 1), (1, 1), (1.1, 2), (3, 5), (5.1, 10), (0.03, 0.05), (184 / 8, 50)]
)
def test_steps_of_an_axis_are_round(least: float, step: float) -> None:
    assert round_step(least) == pytest.approx(step)


def test_a_linear_axis_ends_above_its_values() -> None:
    axis, high = linear("MB", 7.3, lambda value: f"{value:g}")
    assert high == 8
    assert [tick.text for tick in axis.ticks] == ["0", "2", "4", "6", "8"]
    assert axis.ticks[-1].at == 100


def test_an_axis_without_values_is_still_one() -> None:
    axis, high = linear("MB", 0, str)
    assert high > 0
    assert len(axis.ticks) >= 2


def test_an_axis_that_ends_with_its_values_has_ticks_inside() -> None:
    axis = span("s", 0, 184.2, lambda value: f"{value:g}")
    assert [tick.text for tick in axis.ticks] == ["0", "50", "100", "150"]
    assert all(0 <= tick.at <= 100 for tick in axis.ticks)


def test_decades_end_above_the_highest_count() -> None:
    axis, power = decades("calls", 2_000_000)
    assert power == 7
    assert [tick.text for tick in axis.ticks] == ["1", "100", "10k", "1M"]


def test_a_small_share_is_seen_and_none_is_not() -> None:
    assert svg.pixel(2, 0) == 0
    assert svg.pixel(2, 0.02) > 0
    assert svg.pixel(0, 1) == svg.LEVELS
    assert svg.pixel(1, 1) == 2 * svg.LEVELS


def test_attributes_and_texts_of_svg_are_escaped() -> None:
    assert (
        svg.element("rect", svg.element("title", "<b>"), class_='a"b', x=0.5)
        == '<rect class="a&#34;b" x="0.5"><title>&lt;b&gt;</title></rect>'
    )


def test_without_ranks_seconds_are_those_of_all_processes():
    analysis = analyses.small()
    row = replace(analysis.functions[0], seconds=8.0, mean=2.0, slowest=3.0, slowest_rank=-1)
    shown = render_table(run.functions([row], many=False)).rows[0]
    assert "8.00 s" in [str(cell.text) for cell in shown]


@pytest.mark.system
def test_a_program_without_mpi_has_processes_and_no_ranks() -> None:
    analysis = analyses.rich()
    shown = html.render(
        replace(analysis, job=replace(analysis.job, ranks=1, processes=2, mpi_library=""))
    )
    assert "<dt>Processes</dt><dd>2</dd>" in shown
    assert "Activity of each process over time" in shown
    assert "mean rank" not in shown and "<dt>Ranks</dt>" not in shown


def test_a_single_slow_call_is_marked_in_the_map_and_named() -> None:
    slow = Outlier("open", "/scratch/out.3", 3, 3, 61.4, 0.06, 0.0004, 48)
    text = html.render(replace(analyses.rich(10), outliers=(slow,)))
    assert "one open of /scratch/out.3 took 0.06 s at 61.4 s on rank 3" in text
    (mark,) = re.findall(r"<rect[^>]*class=\"slow\"[^>]*>", text)
    assert 'y="3"' in mark and 'x="100"' in mark
    assert "slow-calls" not in html.render(analyses.rich(10))


def test_compiled_templates_are_kept_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    first = html.render(analyses.small())
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache/templates").iterdir()}
    assert kept
    assert html.render(analyses.small()) == first
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.parametrize("damage", ["no directory", "no cache", "cut off"])
def test_pages_do_not_need_compiled_templates(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = html.render(analyses.small())
    place = tmp_path / "cache"
    monkeypatch.setenv("PARIO_CACHE", str(place))
    if damage == "no directory":
        place.write_bytes(b"")
    else:
        html.render(analyses.small())
        for path in (place / "templates").iterdir():
            path.write_bytes(path.read_bytes()[:40] if damage == "cut off" else b"")
    assert html.render(analyses.small()) == expected
