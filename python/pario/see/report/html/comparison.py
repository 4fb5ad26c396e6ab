"""The comparison of two runs as one self-contained HTML file, in the style of the report."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from pario.see.analyze.comparison import Comparison
from pario.see.analyze.model import Split
from pario.see.report.clean import make_printable
from pario.see.report.html import page
from pario.see.report.html.table import render_table
from pario.see.report.tables import bars
from pario.see.report.tables import comparison as tables
from pario.see.report.words import split_parts

FILE_ROWS, OUTPUT_ROWS = 300, 300


def render(comparison: Comparison) -> str:
    """Return the page, which is below 1 MB for runs of any size."""
    safe = make_printable(comparison)
    files, outputs = safe.files[:FILE_ROWS], (safe.outputs or ())[:OUTPUT_ROWS]
    context = {
        "title": safe.sentence,
        "run": safe.a.command or safe.a.source,
        "data": page.data({"timeline": None, "contention": {}}),
        "it": safe,
        "sides": (safe.a, safe.b),
        "bar": _bar(max(safe.a.split.wall, safe.b.split.wall)),
        "used": [
            (field, word)
            for field, word in split_parts(safe.a.split)
            if any(getattr(side.split, field) > 0 for side in (safe.a, safe.b))
        ],
        "measures": render_table(tables.measures(safe)),
        "findings": render_table(tables.findings(safe, safe.findings)),
        "files": render_table(tables.files(safe, files)),
        "outputs": render_table(tables.outputs(safe, outputs)),
        "identical": sum(output.state == "identical" for output in safe.outputs or ()),
    }
    return page.render("comparison.html.j2", context)


def _bar(longest: float) -> Callable[[Split, str], Markup]:
    """Return a function that draws a split on a scale common to both sides."""

    def bar(split: Split, name: str) -> Markup:
        return page.labelled_bar(bars.split_bar(split, longest), name)

    return bar
