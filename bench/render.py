"""Renders docs/benchmarks.md and its plots from the CSV files of bench/results alone.

    python bench/render.py [--results DIRECTORY] [--page FILE]

An area of the page is a row of `areas.AREAS`. Of each file the runs of the last recorded commit
count; a value is the median of its rounds. The program has no figures: a changed CSV changes the
page.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from areas import AREAS, CACHES, Area
from cases import Row, Rows, read_area, read_newest
from markupsafe import Markup
from recording import LOAD_LIMIT

from pario import wording
from pario.see.report import svg

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md"
IMAGES = "images/benchmarks"
_DASH = "–"
_RED = "#c00"
#: Nanoseconds that are shown as milliseconds.
_LONG = 100_000
#: Columns of a line of text.
_PROSE = 100


def anchor(area: Area, row: Row) -> str:
    """Returns the name to which links to a row lead."""
    return re.sub(r"[^a-z0-9]+", "-", f"{area.key} {row.case}".lower()).strip("-")


def _text(area: Area, value: float | None) -> str:
    if value is None:
        return _DASH
    if area.value.startswith("nano"):
        return f"{value:.0f} ns" if value < _LONG else f"{value / 1e6:.3g} ms"
    if area.is_rate:
        return f"{value:,.0f}/s"
    if area.value.endswith("_requests"):
        return f"{value:,.0f} requests"
    return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.2f} s"


def _ratio(value: float | None) -> str:
    """Returns a ratio; one below 1 is red, and bold where colours are not shown."""
    if value is None:
        return _DASH
    text = f"{value:.2f}"
    return text if float(text) >= 1 else f'<b style="color:{_RED}">{text}</b>'


def _cells(area: Area, row: Row) -> str:
    peer = f"{_text(area, row.peer)} ({row.peer_name})" if row.peer_name else _DASH
    share = _DASH if row.share is None else f"{row.share:.2f}"
    return (
        f"{_text(area, row.ours)} | {peer} | {_ratio(row.ratio)} | {_text(area, row.limit)} |"
        f" {share}"
    )


_COLUMNS = "best peer | ratio | limit | share of limit"


def render(results: Path) -> tuple[str, dict[str, str]]:
    """Returns the page and its plots by path."""
    read = [(area, *read_area(area, results)) for area in AREAS]
    recorded = [(area, rows, file, cells) for area, rows, file, cells in read if rows and file]
    lines = ["# Benchmarks", "", *_caveats(_find_loads(recorded))]
    lines += ["## At a glance", "", "The worst case of each area, and the best ratio.", ""]
    lines += [f"| area | worst case | pario | {_COLUMNS} | best ratio |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    lines += [line for area, rows, _, _ in recorded for line in _summarize(area, rows)]
    lines += ["", *_diagnosis(results), ""]
    plots = {}
    for area, rows, _, cells in recorded:
        lines += _section(area, rows, cells)
        if _sort_rows(rows):
            plots[f"{IMAGES}/{area.key}.svg"] = _plot(area, rows)
    lines += _missing(results)
    lines += _reproduction(recorded)
    return "\n".join(lines).rstrip() + "\n", plots


_CAVEATS = (
    "The machines are small virtual ones; their names are in the section on reproduction. Compare"
    " ratios, not absolute values.",
    "Values are medians of rounds in which all ways take turns.",
    "The ratio is the cost of the best peer in costs of pario: above one, pario is better; a ratio"
    " below one is red.",
    "The share of the limit is that of a cost that no way can undercut. Spread: the largest value"
    " of a round in smallest ones.",
    "Peers have their best settings as far as `bench/README.md` names them, and equal answers.",
)


Recorded = Sequence[tuple[Area, Sequence[Row], Path, Rows]]


def _find_runs(area: Area, file: Path, cells: Rows) -> list[dict[str, Any]]:
    """Returns the descriptions of the runs that recorded rows of a file."""
    runs = json.loads((file.parent / "env.json").read_text(encoding="utf-8"))["runs"]
    shown = {row["run"] for row in cells}
    return [run for run in runs if run["benchmark"] == area.name and str(run["run"]) in shown]


def _find_loads(recorded: Recorded) -> dict[str, float]:
    """Returns the highest load at the start of the runs of each area, by its title."""
    return {
        area.title: max(run["load"]["start"] for run in runs)
        for area, _, file, cells in recorded
        if (runs := _find_runs(area, file, cells))
    }


def _caveats(loads: dict[str, float]) -> list[str]:
    lines = ["`python bench/render.py` renders this page from `bench/results`: do not edit it.", ""]
    busy = [f"{title} (up to {load})" for title, load in loads.items() if load > LOAD_LIMIT]
    texts = [*_CAVEATS, "Runs start at a load of one at most"]
    texts[-1] += f", apart from: {', '.join(busy)}." if busy else "."
    for text in texts:
        lines += textwrap.wrap(text, _PROSE, initial_indent="- ", subsequent_indent="  ")
    return [*lines, ""]


def _sort_rows(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows with a ratio, the worst first; if there are none, those with a share."""
    by_ratio = sorted((row for row in rows if row.ratio), key=lambda row: row.ratio or 0.0)
    return by_ratio or sorted((row for row in rows if row.share), key=lambda row: row.share or 0.0)


def _summarize(area: Area, rows: Sequence[Row]) -> list[str]:
    """Returns the line of an area at a glance; none for a subject that is not pario."""
    ordered = _sort_rows(rows) if area.subject == "pario" else []
    if not ordered:
        return []
    worst, best = ordered[0], ordered[-1]
    link = f"[{_ratio(best.ratio)}](#{anchor(area, best)})" if best.ratio else _DASH
    place = f"[{worst.case}](#{anchor(area, worst)})"
    return [f"| {area.title} | {place} | {_cells(area, worst)} | {link} |"]


_PEERS = (
    "The programs are those of tests/diagnosis, which pario's rules were made with. pario is right"
    " if its first finding names the problem; a peer, whose messages have no order, if any message"
    " does. Drishti reads logs of Darshan, and dftracer's analyzer traces of dftracer, with its"
    " rules for reads of POSIX applied to all calls. A peer that fails on a program is not right."
)


def _diagnosis(results: Path) -> list[str]:
    own = [row for _, rows in read_newest(results, "diagnosis", "run").values() for row in rows]
    peers = read_newest(results, "peers", "run", each="tool")
    others = [row for _, rows in peers.values() for row in rows]
    rows = [row for row in own if row["tool"] == "pario"] + others
    if not rows:
        return []
    lines = ["| diagnoses | programs named right | healthy programs called healthy |"]
    lines.append("|---|--:|--:|")
    for tool in dict.fromkeys(row["tool"] for row in rows):
        right = _part(row["right"] for row in rows if (row["tool"], row["way"]) == (tool, "bad"))
        ways = [row["healthy"] for row in rows if (row["tool"], row["way"]) == (tool, "repaired")]
        mark = f'<a id="diagnosis-{tool}"></a>'
        lines.append(f"| {mark}{tool} | {right} | {_part(ways)} |")
    if others:
        lines += ["", *textwrap.wrap(_PEERS, _PROSE)]
    return lines


def _part(answers: Iterable[str]) -> str:
    known = list(answers)
    return f"{known.count('yes')} of {len(known)} runs"


def _section(area: Area, rows: Sequence[Row], cells: Rows) -> list[str]:
    case = ", ".join(area.case).replace("_", " ")
    notes = f"{area.caveat} {_describe_caches(area, cells)}"
    lines = [f"## {area.title}", "", *textwrap.wrap(notes, _PROSE), ""]
    lines += [f"| {case} | {area.subject} | {_COLUMNS} | rounds | spread |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f'| <a id="{anchor(area, row)}"></a>{row.case} | {_cells(area, row)} | {row.rounds} |'
        f" {row.spread:.2f} |"
        for row in rows
    ]
    if not _sort_rows(rows):
        return [*lines, ""]
    what = "ratio to the best peer" if any(row.ratio for row in rows) else "share of the limit"
    picture = f"![{area.title}: {what}]({IMAGES}/{area.key}.svg)"
    return [*lines, "", picture, ""]


def _describe_caches(area: Area, cells: Rows) -> str:
    """Returns the state of the caches, which a column has or the runner fixes."""
    if area.name in CACHES:
        return CACHES[area.name]
    emptied = "The page cache is emptied before each measurement."
    states = {"yes": emptied, "no": "The files are in the page cache."}
    return states[cells[-1]["cold"]]


def _missing(results: Path) -> list[str]:
    """Returns the areas without results: runners that record, and have no CSV."""
    named = re.compile(r'Recorder\(\s*"(\w+)"')
    runners = {
        name: path.name
        for path in sorted((ROOT / "bench").glob("*.py"))
        for name in named.findall(path.read_text(encoding="utf-8"))
        if path.name != "recording.py"
    }
    absent = [file for name, file in runners.items() if not any(results.glob(f"*/{name}*.csv"))]
    if not absent:
        return []
    lines = ["## Not recorded yet", "", "Runners without a CSV of an idle machine:", ""]
    return [*lines, *(f"- `bench/{file}`" for file in dict.fromkeys(absent)), ""]


def _reproduction(recorded: Recorded) -> list[str]:
    lines = ["## Reproduction", "", "On an idle machine; `make benchmarks` runs them all:", ""]
    seen: set[str] = set()
    for area, _, file, cells in recorded:
        if area.name in seen:
            continue
        seen.add(area.name)
        own = _find_runs(area, file, cells)
        lines += [
            f"- **{area.name}**: `{file.parent.name}`, commit `{cells[-1]['commit']}`",
            "",
            *_facts(own[-1]),
            "    ```text",
            *_wrap_command(own[-1]["command"]),
            "    ```",
            "",
        ]
    return lines


def _facts(run: dict[str, Any]) -> list[str]:
    """Returns the machine of a run, its load and the versions of programs."""
    machine = run["machine"]
    facts = [str(machine[key]) for key in ("processor", "kernel") if machine.get(key)]
    facts += [f"{machine['cores']} cores", f"load {run['load']['start']} to {run['load']['end']}"]
    text = "; ".join([*facts, _list_versions(run["versions"])])
    return [*(f"    {line}" for line in textwrap.wrap(text, _PROSE - 4)), ""]


def _list_versions(versions: dict[str, Any]) -> str:
    single = {name: version for name, version in versions.items() if isinstance(version, str)}
    named = [*(single | versions.get("peers", {})).items()]
    return ", ".join([*(f"{name} {version}" for name, version in named), *versions.get("mpi", [])])


def _wrap_command(command: str) -> list[str]:
    lines = textwrap.wrap(command, _PROSE - 10, break_long_words=False, break_on_hyphens=False)
    return [f"    {line}" + (" \\" if line != lines[-1] else "") for line in lines]


_LEFT, _WIDTH, _ROW, _TOP = 230, 700, 18, 34


def _plot(area: Area, rows: Sequence[Row]) -> str:
    """Returns bars on a logarithmic axis: the ratio to the best peer, else the share of the
    limit."""
    ratios = any(row.ratio for row in rows)
    values = [(row, (row.ratio if ratios else row.share) or 0.0) for row in rows]
    values = [(row, value) for row, value in values if value > 0]
    if not values:
        return svg.document(_WIDTH, _TOP)
    low = min(0.5, *(value for _, value in values))
    high = max(2.0, *(value for _, value in values))

    def across(value: float) -> float:
        part = math.log(value / low) / math.log(high / low)
        return _LEFT + part * (_WIDTH - _LEFT - 60)

    bars: list[Markup] = [svg.rule(f"M{across(1.0):.1f} {_TOP - 8}V{_TOP + _ROW * len(values)}")]
    for number, (row, value) in enumerate(values):
        y = _TOP + number * _ROW
        begin, end = sorted((across(1.0), across(value)))
        colour = "#c7401d" if value < 1 and ratios else "#0b5cad"
        bars += [
            svg.text(_LEFT - 8, y + 12, wording.elide(row.case, 38), text_anchor="end"),
            svg.element("rect", x=begin, y=y + 2, width=max(end - begin, 1.0),
                        height=_ROW - 6, fill=colour),
            svg.text(end + 6, y + 12, f"{value:.2f}"),
        ]  # fmt: skip
    what = "ratio to the best peer" if ratios else "share of the limit"
    title = svg.text(8, 20, f"{area.title}: {what}", font_size=13, font_weight=600)
    return svg.document(_WIDTH, _TOP + _ROW * len(values) + 10, title, *bars)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    page, plots = render(arguments.results)
    arguments.page.write_text(page, encoding="utf-8")
    for path, picture in plots.items():
        target = arguments.page.parent / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
