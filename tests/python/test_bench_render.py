"""The page of benchmarks is that of the recorded results, and of nothing else."""

import ast
import functools
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import recording
import render
from areas import AREAS, CACHES, Area
from cases import read_area

sys.path.pop(0)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    shutil.copytree(render.RESULTS, tmp_path / "results")
    return tmp_path / "results"


def test_every_number_of_the_page_comes_from_a_csv() -> None:
    page, plots = render.render(render.RESULTS)
    assert render.PAGE.read_text() == page, "run python bench/render.py"
    for path, picture in plots.items():
        assert (render.PAGE.parent / path).read_text() == picture, "run python bench/render.py"


def test_without_results_the_page_has_no_figure(tmp_path: Path) -> None:
    page, plots = render.render(tmp_path)
    assert plots == {}
    assert re.findall(r"\d+", page) == []
    assert "`bench/mpiio.py`" in page


@functools.cache
def list_texts() -> tuple[set[str], set[str]]:
    """The strings of the runners, and the beginnings of their formatted strings."""
    whole, beginnings = set[str](), set[str]()
    for path in (render.ROOT / "bench").glob("*.py"):
        if path.name == "areas.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                beginnings.add(str(node.values[0].value))
    return whole, beginnings


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.key)
def test_no_way_has_the_name_of_a_column_of_the_recorder(area: Area) -> None:
    assert {area.ours, *area.peers, area.limit}.isdisjoint(recording.RUN_COLUMNS)


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.key)
def test_the_ways_of_an_area_are_those_of_a_runner(area: Area) -> None:
    whole, beginnings = list_texts()
    ways = {area.name, area.ours, *area.peers, area.limit, *area.labels} - {"", "limit_seconds"}
    ways -= whole
    assert {way for way in ways if not any(map(way.startswith, beginnings))} == set()


def test_a_changed_csv_changes_the_page(results: Path) -> None:
    before, plots = render.render(results)
    table = sorted(results.glob("*/fix.csv"))[-1]
    rows = table.read_text().splitlines()
    column = rows[0].split(",").index("seconds")
    for number, row in enumerate(rows):
        cells = row.split(",")
        if "byte_parser" in cells and "fixed" in cells:
            cells[column] = "9.87"
            rows[number] = ",".join(cells)
    table.write_text("\n".join(rows) + "\n")
    after, changed = render.render(results)
    [line] = [line for line in after.splitlines() if line.startswith('| <a id="fix-byte-parser">')]
    assert "9.87 s" in line
    assert "9.87 s" not in before
    assert re.search(r'<b style="color:#c00">0\.\d\d</b>', line), "a ratio below 1 is red"
    assert changed["images/benchmarks/fix.svg"] != plots["images/benchmarks/fix.svg"]


def test_the_page_names_the_areas_that_were_recorded_on_a_busy_machine(results: Path) -> None:
    [described] = results.glob("*-29-*/env.json")
    facts = json.loads(described.read_text())
    text = "Runs start at a load of one at most, apart from: "
    before = " ".join(render.render(results)[0].split())
    assert "apart from: pario tune (up to " in before
    for run in facts["runs"]:
        run["load"]["start"] = 2.75 if run["benchmark"] == "micro" else 0.5
    described.write_text(json.dumps(facts))
    after = " ".join(render.render(results)[0].split())
    assert f"{text}Single functions (up to 2.75)." in after


def test_each_section_has_the_state_of_the_caches_and_each_run_its_versions() -> None:
    assert {area.name for area in AREAS} - set(CACHES) == {"move", "small_files"}
    page, _ = render.render(render.RESULTS)
    sections = re.findall(r"^## (.*?)\n\n(.*?)\n\n\|", page, re.M | re.S)[1:]
    words = re.compile(r"cache|waits for the disk|kernel keeps")
    assert [title for title, notes in sections if not words.search(notes)] == []
    _, _, reproduction = page.partition("## Reproduction\n")
    assert reproduction.count("; python 3.") == reproduction.count("- **")


def test_a_column_of_cold_runs_describes_the_cache(results: Path) -> None:
    area = next(area for area in AREAS if area.key == "pack")
    _, _, cells = read_area(area, results)
    assert render._describe_caches(area, cells) == "The files are in the page cache."
    cells[-1]["cold"] = "yes"
    assert render._describe_caches(area, cells).startswith("The page cache is emptied")


def test_links_at_a_glance_lead_to_rows() -> None:
    page, _ = render.render(render.RESULTS)
    assert set(re.findall(r"\(#([\w-]+)\)", page)) <= set(re.findall(r'<a id="([\w-]+)">', page))


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)", (render.ROOT / "README.md").read_text())
    assert links
    assert all((render.ROOT / link).exists() for link in links)


def test_claims_of_the_readme_are_those_of_their_rows() -> None:
    readme = (render.ROOT / "README.md").read_text()
    page = render.PAGE.read_text()
    claims = re.findall(
        r"^- (.*?)\(\[row\]\(docs/benchmarks\.md#([\w-]+)\)\)\.$", readme, re.M | re.S
    )
    assert len(claims) == 5
    for claim, place in claims:
        [row] = [line for line in page.splitlines() if f'<a id="{place}">' in line]
        numbers = re.findall(r"\*\*([\d.]+)\*\*", claim)
        assert numbers
        assert all(re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", row) for number in numbers)


def test_more_of_a_rate_is_better(tmp_path: Path) -> None:
    day = tmp_path / "2026-03-04-toy-2c"
    day.mkdir()
    columns = "run,started,commit,state,order,sample_bytes,way,round,samples_per_second"
    speeds = {"pario, direct": 300, "webdataset": 200, "grain, array_record": 600, "fio": 1200}
    rows = [f'1,now,0,cold,random,1000,"{way}",1,{speed}' for way, speed in speeds.items()]
    (day / "loader.csv").write_text("\n".join([columns, *rows]) + "\n")
    area = next(area for area in AREAS if area.key == "loader")
    [row], _, _ = read_area(area, tmp_path)
    assert (row.peer_name, row.peer, row.ratio, row.share) == (
        "grain, array_record",
        600,
        0.5,
        0.25,
    )
    text = "\n".join(render._section(area, [row], []))
    assert "| 300/s | 600/s (grain, array_record) |" in text


def test_each_peer_counts_with_its_newest_run(tmp_path: Path) -> None:
    days = {"2026-01-01-x": "1,a,yes 1,b,no", "2026-01-02-x": "1,a,no 2,c,no 2,c,yes"}
    for day, rows in days.items():
        lines = [f"{row},bad,no" for row in rows.split()]
        (tmp_path / day).mkdir()
        text = "\n".join(["run,tool,right,way,healthy", *lines])
        (tmp_path / day / "peers.csv").write_text(text)
    found = [line.split(" | ")[1] for line in render._diagnosis(tmp_path) if "<a id" in line]
    assert found == ["0 of 1 runs", "0 of 1 runs", "1 of 2 runs"]
