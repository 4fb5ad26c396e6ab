"""Renders docs/benchmarks.md and its plots from the CSV files of bench/results alone.

    python bench/render.py [--results DIRECTORY] [--page FILE]

An area of the page is a row of AREAS. Of each file the runs of the last recorded commit count; a
value is the median of its rounds. The program has no figures: a changed CSV changes the page.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup
from recording import LOAD_LIMIT

from pario import wording
from pario.see.report import svg

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md"
IMAGES = "images/benchmarks"
Rows = list[dict[str, str]]
_DASH = "–"
_RED = "#c00"
#: Nanoseconds that are shown as milliseconds.
_LONG = 100_000
#: Columns of a line of text.
_PROSE = 100


@dataclass(frozen=True)
class Area:
    """A part of the page: a file of results, and the meaning of its columns."""

    name: str  # of the CSV file
    key: str  # of the section and its plot
    title: str
    case: tuple[str, ...]  # columns that name a case
    value: str  # column: a cost, or a rate if it is "..._per_second"
    ours: str  # way
    peers: tuple[str, ...] = ()  # ways
    limit: str = ""  # way, or column
    caveat: str = ""
    only: dict[str, str] = field(default_factory=dict)  # cells of rows that count
    labels: dict[str, str] = field(default_factory=dict)  # ways as readers know them
    subject: str = "pario"  # measured; other subjects are not compared at a glance

    @property
    def is_rate(self) -> bool:
        """Whether larger values are better."""
        return self.value.endswith("_per_second")


AREAS = (
    Area("overhead", "counters", "Tracing, counters", ("call",),
         "nanoseconds_per_call", "counters", limit="bare", only={"version": "library"},
         caveat="A traced call; the limit is the same call without tracing."),
    Area("overhead", "events", "Tracing, events", ("call",),
         "nanoseconds_per_call", "events", limit="bare", only={"version": "library"},
         caveat="A traced call; the limit is the same call without tracing."),
    Area("fix", "fix", "pario run --fix", ("program",), "seconds", "fixed",
         ("bad",), "repaired",
         "The limit is the same program repaired by hand.", labels={"bad": "as it is"}),
    Area("tune", "tune", "pario tune", ("program", "place", "booked"), "seconds", "tuned",
         ("original",), "best of the sweep",
         "Five replays in all, for programs on which no rule was developed. The limit is the best"
         " of all combinations of settings; booked: busy time of a lab's busiest target, which does"
         " not depend on the load.",
         labels={"original": "as it is"}),
    Area("mpiio", "mpiio", "MPI-IO", ("pattern", "operation"), "seconds", "pario, MPICH 5",
         ("ROMIO, MPICH 5, hints", "ROMIO, MPICH 5", "OMPIO, parameters", "OMPIO"), "limit_seconds",
         "All ranks on one node; ROMIO with its best hints. The limit is one process that moves"
         " the same bytes in large pieces; several processes may exceed it.",
         labels={"ROMIO, MPICH 5, hints": "ROMIO", "OMPIO, parameters": "OMPIO"}),
    Area("calls", "calls", "Collective calls", ("pattern", "operation"), "seconds",
         "pario, MPICH 5",
         ("ROMIO, MPICH 5, hints", "ROMIO, MPICH 5", "ROMIO, MPICH 5, no buffers"),
         "limit_seconds",
         "One contiguous piece for each rank and call (calls), or the pieces of the ranks in turn"
         " (turns), 2 ranks. The limit is one process that moves the same bytes in large pieces.",
         labels={"ROMIO, MPICH 5, hints": "ROMIO, hints", "ROMIO, MPICH 5": "ROMIO",
                 "ROMIO, MPICH 5, no buffers": "ROMIO without buffers"}),
    Area("calls", "openmpi", "Collective calls, Open MPI", ("pattern", "operation"), "seconds",
         "pario, Open MPI 5",
         ("ROMIO, Open MPI 5, hints", "ROMIO, Open MPI 5, no buffers", "OMPIO, parameters",
          "OMPIO"),
         "limit_seconds", "As above, with the ROMIO of Open MPI and with OMPIO.",
         labels={"ROMIO, Open MPI 5, hints": "ROMIO, hints",
                 "ROMIO, Open MPI 5, no buffers": "ROMIO without buffers",
                 "OMPIO, parameters": "OMPIO"}),
    Area("checkpoint", "checkpoint", "Checkpoints", ("operation", "form", "bytes"), "seconds",
         "files=1", ("h5py",), "raw",
         "The limit is one raw file for each rank. Checksums of pario are on."),
    Area("records", "records", "Shuffles", ("input_bytes", "record_bytes"),
         "seconds", "pario", ("terashuf", "shuf"), "two copies",
         "More data than memory. The limit is two copies of the data, which a shuffle in two"
         " passes needs."),
    Area("hosts", "hosts", "MPI-IO between hosts", ("hosts", "ranks", "pattern", "operation"),
         "seconds", "pario, MPICH 5",
         ("ROMIO, MPICH 5, hints", "ROMIO, MPICH 5", "OMPIO, parameters", "OMPIO"),
         limit="limit_seconds",
         caveat="Network name spaces whose links are slow. The limit is the time in which the links"
         " carry the bytes that must go to another host.",
         labels={"ROMIO, MPICH 5, hints": "ROMIO", "OMPIO, parameters": "OMPIO"}),
    Area("several_arrays", "arrays", "Several arrays", ("edge", "ranks"), "seconds", "merged",
         ("separate",), caveat="Four collective writes, with and without a hint that merges small"
         " ones."),
    Area("checkpoint_rivals", "savers", "Checkpoints, other tools",
         ("operation", "form", "bytes", "durable"), "seconds", "pario.checkpoint",
         ("parallel HDF5 (ROMIO)", "ADIOS2 (PyPI: a file for each process)", "zarr",
          "torch.distributed.checkpoint"), "a file for each process",
         "durable: every way flushes its files to the disk. The limit is one raw file for each"
         " process. Checksums of pario are on.",
         labels={"ADIOS2 (PyPI: a file for each process)": "ADIOS2"}),
    Area("streams", "streams", "Two million small writes", ("place",), "seconds",
         "write of 512 B, buffered", ("write of 512 B",), "64 MiB pieces",
         "The limit is large writes of the same bytes.",
         labels={"write of 512 B": "as it is"}),
    Area("flushes", "flushes", "Flushed lines", ("program", "lines"), "seconds", "buffered",
         ("plain",), caveat="Programs that flush every line, with and without buffers.",
         labels={"plain": "as it is"}),
    Area("move", "pack", "Packing small files", ("files", "file_bytes"), "seconds", "pack",
         ("tar -c",), caveat="Beside tar with one thread of zstd."),
    Area("move", "unpack", "Unpacking small files", ("files", "file_bytes"), "seconds", "unpack",
         ("tar -x",), caveat="Beside tar with one thread of zstd."),
    Area("small_files", "epochs", "Training from small files", ("files", "file_bytes"), "seconds",
         "packed, pario.records.Loader",
         ("files, DataLoader, num_workers=2", "files, DataLoader, num_workers=0",
          "files, pario.records.Loader"),
         caveat="An epoch from packed files beside one from the files themselves."),
    Area("small_opens", "opens", "Slow opens", ("part", "size", "workers"), "seconds", "ahead",
         ("plain",), caveat="A DataLoader on a lab whose opens are slow, with and without"
         " `loader_ahead`.", labels={"plain": "as it is"}),
    Area("mapped", "mapped", "Mapped files", ("place", "stripes", "library"), "seconds",
         "map_ahead", ("as it is",), "dd",
         "Files of 64 MiB in no cache, from targets of 50 MiB/s and 0.5 ms a request (lab) or a"
         " CephFS. The limit is dd with one reader, which reading ahead may exceed."),
    Area("small_opens", "imports", "Imports", ("part", "size"), "most_further_requests", "cached",
         ("plain",), caveat="Metadata requests of a further process that imports numpy from a lab,"
         " with and without `cached_trees`.", labels={"plain": "as it is"}),
    Area("readers", "readers", "Readers of logs", ("log", "events"), "seconds", "pario",
         ("pydarshan",), caveat="Synthetic logs, each read in a new process; imports before the"
         " reading do not count, and the second process in which pario reads Darshan logs does."
         " pydarshan makes tables of pandas."),
    Area("object_stores", "stores", "Records in an object store", ("sample_bytes", "samples"),
         "samples_per_second", "pario, shuffle",
         ("obstore, threads", "one GET per sample", "mosaicml-streaming", "s3torchconnector"),
         caveat="The first epoch in random order, from servers on the same machine that answer"
         " 20 ms late; two cores serve and load. Every record has a request of its own."),
    Area("object_stores", "stores-cached", "Records in a store, block cache",
         ("sample_bytes", "samples"), "samples_per_second", "pario, block cache",
         ("obstore, threads", "one GET per sample", "webdataset", "mosaicml-streaming",
          "s3torchconnector"),
         caveat="The same random order, with `PARIO_BLOCK_CACHE`: the directory holds the whole"
         " file at the end. webdataset shuffles in a buffer and keeps nothing."),
    Area("object_stores", "stores-blocks", "Records in a store, by blocks",
         ("sample_bytes", "samples"), "samples_per_second", "pario, blocks", ("webdataset",),
         caveat="Orders that are less random: pario shuffles 10 blocks of 100 records at a time,"
         " webdataset shards and a buffer."),
    Area("loader", "loader", "Loaders of records", ("state", "order", "sample_bytes"),
         "samples_per_second", "pario, direct",
         ("DataLoader, pread", "webdataset", "array_record, DataLoader", "grain, array_record",
          "mosaicml-streaming"), "fio",
         "Two workers for each of the others. The limit is fio past the page cache at depth 8,"
         " which a warm page cache exceeds; webdataset shuffles in a buffer."),
    Area("stripes", "stripes", "Stripe counts", ("place", "access"), "seconds", "advised",
         ("1 stripe",), "best of the sweep",
         "`pario stripe advise` on a lab with slow targets. The limit is the best count of a"
         " sweep."),
    Area("replay", "replay", "Replays", ("program", "scale"), "seconds", "replay",
         limit="the program",
         caveat="Seconds of I/O of a replay; the limit is the program itself: a share near one is a"
         " faithful replay."),
    Area("patterns", "patterns", "Patterns", ("place", "operation", "pattern"), "seconds",
         "pario bench", limit="limit_seconds",
         caveat="The patterns of `pario bench patterns` with the MPI's own MPI-IO: the reason to"
         " change one. The limit is the best pattern of the place and the operation.",
         subject="the pattern"),
    Area("micro", "micro", "Single functions", ("program", "benchmark"), "nanoseconds", "pario",
         caveat="Functions of the tracer, and copies of patterns; they have no peers."),
)  # fmt: skip


_KEPT = "Nothing empties the page cache: files that were just written are read from it."
_WRITTEN = "No way waits for the disk: writes end in the page cache."
_LAB = "The lab keeps nothing in the page cache."
#: The state of the caches by the name of a file of results. A column `cold` has it, too.
CACHES = {
    **dict.fromkeys(("overhead", "fix", "mpiio", "calls", "hosts", "checkpoint", "readers",
                     "checkpoint_rivals", "replay"), _KEPT),
    **dict.fromkeys(("several_arrays", "streams", "flushes"), _WRITTEN),
    "tune": _LAB,
    "stripes": _LAB,
    "patterns": f"{_LAB} Nothing empties that of other places.",
    "records": "The limit of the memory includes the page cache, which the copies bypass.",
    "small_opens": "The kernel keeps names for a second, and bytes that were read.",
    "mapped": "Caches are emptied before each measurement.",
    "object_stores": "Each measurement is a process of its own, which begins without a cache.",
    "loader": "Cold: nothing of the file is in the page cache at the start; warm: all of it.",
    "micro": "Memory alone: no cache of files is used.",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A case of an area with its values; None: not recorded."""

    case: str
    ours: float
    peer: float | None
    peer_name: str
    limit: float | None
    rounds: int
    spread: float  # the largest value of a round in smallest ones

    rate: bool = False  # values, of which larger ones are better

    @property
    def ratio(self) -> float | None:
        """The cost of the best peer in costs of pario: above one, pario is better."""
        return self._compare(self.peer)

    @property
    def share(self) -> float | None:
        """The share of the limit that pario reaches."""
        return self._compare(self.limit)

    def _compare(self, other: float | None) -> float | None:
        if not other or not self.ours:
            return None
        return self.ours / other if self.rate else other / self.ours


def read_area(area: Area, results: Path) -> tuple[list[Row], Path | None, Rows]:
    """Return the cases of an area, its file and its rows; none if nothing is recorded."""
    file, rows = read_newest(results, area.name, "commit")
    cases = dict.fromkeys(tuple(row[column] for column in area.case) for row in rows)
    found = [_read_case(area, rows, case) for case in cases]
    return [row for row in found if row], file, rows


def read_newest(results: Path, name: str, column: str) -> tuple[Path | None, Rows]:
    """Return the newest file of a benchmark, and its rows with the last value of a column."""
    files = sorted(results.glob(f"*/{name}.csv"))
    if not files:
        return None, []
    with files[-1].open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    return files[-1], [row for row in rows if row[column] == rows[-1][column]]


def _read_case(area: Area, rows: Rows, case: tuple[str, ...]) -> Row | None:
    own = [row for row in rows if tuple(row[column] for column in area.case) == case]
    others = (area.limit, *area.peers)
    own = [
        row
        for row in own
        if row["way"] in others or all(row[key] == cell for key, cell in area.only.items())
    ]
    ours = _values(own, area.ours, area.value)
    if not ours:
        return None
    peers = {way: _median(_values(own, way, area.value)) for way in area.peers}
    known = {way: value for way, value in peers.items() if value is not None}
    best = (max if area.is_rate else min)(known, key=lambda way: known[way], default="")
    limit = (
        _median(_values(own, area.ours, area.limit))
        if area.limit in rows[0]
        else _median(_values(own, area.limit, area.value))
    )
    return Row(
        case=_name(area, case),
        ours=statistics.median(ours),
        peer=known.get(best),
        peer_name=area.labels.get(best, best),
        limit=limit,
        rounds=len(ours),
        spread=max(ours) / (min(ours) or 1.0),
        rate=area.is_rate,
    )


def _values(rows: Rows, way: str, column: str) -> list[float]:
    return [float(row[column]) for row in rows if row["way"] == way and row[column]]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _name(area: Area, case: tuple[str, ...]) -> str:
    cells = zip(area.case, case, strict=True)
    return ", ".join(
        wording.size(float(cell)) if "bytes" in column else cell for column, cell in cells
    )


def anchor(area: Area, row: Row) -> str:
    """Return the name to which links to a row lead."""
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
    """Return a ratio; one below 1 is red, and bold where colours are not shown."""
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
    """Return the page and its plots by path."""
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
    """Return the descriptions of the runs that recorded rows of a file."""
    runs = json.loads((file.parent / "env.json").read_text(encoding="utf-8"))["runs"]
    shown = {row["run"] for row in cells}
    return [run for run in runs if run["benchmark"] == area.name and str(run["run"]) in shown]


def _find_loads(recorded: Recorded) -> dict[str, float]:
    """Return the highest load at the start of the runs of each area, by its title."""
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
    """Return the rows with a ratio, the worst first; if there are none, those with a share."""
    by_ratio = sorted((row for row in rows if row.ratio), key=lambda row: row.ratio or 0.0)
    return by_ratio or sorted((row for row in rows if row.share), key=lambda row: row.share or 0.0)


def _summarize(area: Area, rows: Sequence[Row]) -> list[str]:
    """Return the line of an area at a glance; none for a subject that is not pario."""
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
    own, others = read_newest(results, "diagnosis", "run")[1], _read_peers(results)
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


def _read_peers(results: Path) -> Rows:
    """Return the rows of each peer's newest run."""
    newest: dict[str, tuple[tuple[Path, str], Rows]] = {}
    for path in sorted(results.glob("*/peers.csv")):
        with path.open(newline="", encoding="utf-8") as text:
            for row in csv.DictReader(text):
                run = path, row["run"]
                if newest.get(row["tool"], (None, []))[0] != run:
                    newest[row["tool"]] = run, []
                newest[row["tool"]][1].append(row)
    return [row for _, rows in newest.values() for row in rows]


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
    """Return the state of the caches, which a column has or the runner fixes."""
    if area.name in CACHES:
        return CACHES[area.name]
    emptied = "The page cache is emptied before each measurement."
    states = {"yes": emptied, "no": "The files are in the page cache."}
    return states[cells[-1]["cold"]]


def _missing(results: Path) -> list[str]:
    """Return the areas without results: runners that record, and have no CSV."""
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
    """Return the machine of a run, its load and the versions of programs."""
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
    """Return bars on a logarithmic axis: the ratio to the best peer, else the share of the
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
