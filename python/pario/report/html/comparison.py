"""Two runs side by side as one self-contained HTML file, in the style of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from pario import wording
from pario.analyze.comparison import Comparison, FileChange, FindingChange, Measure, OutputChange
from pario.analyze.model import Split
from pario.report.clean import cleaned
from pario.report.html import page
from pario.report.html.charts import bars, svg
from pario.report.html.table import Column, Table, bytes_text, count_text, path_text, table
from pario.report.html.tables import NAME_LENGTH
from pario.report.words import OUTPUTS, amount, change, of_noise, spread

FILE_ROWS, OUTPUT_ROWS = 300, 300


def render(comparison: Comparison) -> str:
    """The page. Below 1 MB whatever the size of the runs."""
    safe = cleaned(comparison)
    files, outputs = safe.files[:FILE_ROWS], (safe.outputs or ())[:OUTPUT_ROWS]
    context = {
        "title": safe.sentence,
        "run": safe.a.command or safe.a.source,
        "data": page.data({"timeline": None, "contention": {}}),
        "it": safe,
        "sides": (safe.a, safe.b),
        "bar": _bar(max(safe.a.split.wall, safe.b.split.wall)),
        "used": [(field, word) for field, word in bars.PARTS if any(getattr(side.split, field) > 0 for side in (safe.a, safe.b))],
        "measures": _measures(safe),
        "findings": _findings(safe.findings, safe),
        "files": _files(files, safe),
        "outputs": _outputs(outputs, safe),
        "identical": sum(output.state == "identical" for output in safe.outputs or ()),
    }
    return page.render("comparison.html.j2", context)


def _bar(longest: float) -> Callable[[Split, str], Markup]:
    """A split on a scale that both sides share."""

    def bar(split: Split, name: str) -> Markup:
        parts = [(field, getattr(split, field), f"{word}: {wording.seconds(getattr(split, field))}") for field, word in bars.PARTS]
        said = "; ".join(tip for _, value, tip in parts if value > 0)
        return svg.stacked(parts, longest, "bar split", f"{name}: {said}")

    return bar


def _measures(it: Comparison) -> Table:
    columns: list[Column[Measure]] = [
        Column("", lambda row: row.name, css=""),
        Column(it.a.name, lambda row: _amount(row, row.a.median), lambda row: row.a.median),
        Column(it.b.name, lambda row: _amount(row, row.b.median), lambda row: row.b.median),
        Column("change", lambda row: change(row.a.median, row.b.median), lambda row: row.change),
        Column("runs differ", spread, lambda row: max(row.a.spread, row.b.spread), "half the way from the least to the most of one side"),
        Column("", of_noise, css="", tip="whether the difference counts"),
        Column("all runs", _runs, css="", tip="in the order in which they ran"),
    ]
    return table("Figures of the whole run", columns, it.measures, foldable=False)


def _amount(row: Measure, value: float) -> Markup | str:
    exact = wording.exact_size(value) if row.unit == "bytes" else ""
    return Markup('<span title="{}">{}</span>').format(exact, amount(row, value)) if exact else amount(row, value)


def _runs(row: Measure) -> str:
    """The single values, where there is more than one of a side and they are not all the same."""
    if max(len(row.a.values), len(row.b.values)) < 2 or row.noise == "equal":
        return ""
    return " / ".join(", ".join(amount(row, value) for value in sample.values) for sample in (row.a, row.b))


def _findings(rows: Sequence[FindingChange], it: Comparison) -> Table:
    high = max((max(row.seconds_a, row.seconds_b) for row in rows), default=0.0)
    columns: list[Column[FindingChange]] = [
        Column("", lambda row: Markup("<b>{}</b>").format(row.change), css=""),
        Column("cause", lambda row: wording.elided(row.title, NAME_LENGTH), css=""),
        Column("seconds lost", lambda row: _pair(row.seconds_a, row.seconds_b, high, it), lambda row: row.seconds_a, css="wide"),
        Column(it.a.name, lambda row: wording.seconds(row.seconds_a), lambda row: row.seconds_a),
        Column(it.b.name, lambda row: wording.seconds(row.seconds_b), lambda row: row.seconds_b),
    ]
    return table("Findings", columns, rows)


def _files(rows: Sequence[FileChange], it: Comparison) -> Table:
    high = max((max(row.seconds_a, row.seconds_b) for row in rows), default=0.0)
    a, b = it.a.name, it.b.name
    time = "time per rank" if max(it.a.ranks, it.b.ranks) > 1 else "time"
    columns: list[Column[FileChange]] = [
        Column("file", lambda row: path_text(row.path, NAME_LENGTH), css=""),
        Column(time, lambda row: _pair(row.seconds_a, row.seconds_b, high, it), lambda row: row.seconds_a, css="wide"),
        Column(a, lambda row: wording.seconds(row.seconds_a), lambda row: row.seconds_a, "mean of the ranks that use it"),
        Column(b, lambda row: wording.seconds(row.seconds_b), lambda row: row.seconds_b, "mean of the ranks that use it"),
        Column(f"calls, {a}", lambda row: count_text(row.calls_a), lambda row: row.calls_a, "of all ranks"),
        Column(b, lambda row: count_text(row.calls_b), lambda row: row.calls_b, "calls of all ranks"),
        Column(f"bytes, {a}", lambda row: bytes_text(row.bytes_a), lambda row: row.bytes_a, "read and written"),
        Column(b, lambda row: bytes_text(row.bytes_b), lambda row: row.bytes_b, "read and written"),
        Column(f"system writes, {a}", lambda row: count_text(row.system_writes_a), lambda row: row.system_writes_a, "of pario's MPI-IO"),
        Column(f"system writes, {b}", lambda row: count_text(row.system_writes_b), lambda row: row.system_writes_b, "of pario's MPI-IO"),
    ]
    return table("Files by time that changed", columns, rows, id="file-table")


def _pair(a: float, b: float, high: float, it: Comparison) -> Markup:
    """Two bars, one below the other: pale before, full after."""
    return svg.stacked([("io rest", a, f"{it.a.name}: {wording.seconds(a)}")], high) + svg.stacked(
        [("io", b, f"{it.b.name}: {wording.seconds(b)}")], high
    )


def _outputs(rows: Sequence[OutputChange], it: Comparison) -> Table:
    columns: list[Column[OutputChange]] = [
        Column("file", lambda row: path_text(row.path, NAME_LENGTH), css=""),
        Column("", lambda row: OUTPUTS[row.state] if row.state == "identical" else Markup("<b>{}</b>").format(OUTPUTS[row.state]), css=""),
        Column(f"bytes, {it.a.name}", lambda row: bytes_text(row.size_a) if row.size_a >= 0 else "", lambda row: row.size_a),
        Column(it.b.name, lambda row: bytes_text(row.size_b) if row.size_b >= 0 else "", lambda row: row.size_b),
    ]
    return table("Output files", columns, rows)
