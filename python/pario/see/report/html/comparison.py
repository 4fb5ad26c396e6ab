"""Two runs side by side as one self-contained HTML file, in the style of the report."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from pario.see.analyze.comparison import Comparison
from pario.see.analyze.model import Split
from pario.see.report.clean import cleaned
from pario.see.report.html import page
from pario.see.report.html.table import rendered
from pario.see.report.tables import bars
from pario.see.report.tables import comparison as tables

FILE_ROWS, OUTPUT_ROWS = 300, 300


def render(comparison: Comparison) -> str:
    """The page, below 1 MB for runs of any size."""
    safe = cleaned(comparison)
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
            for field, word in bars.PARTS
            if any(getattr(side.split, field) > 0 for side in (safe.a, safe.b))
        ],
        "measures": rendered(tables.measures(safe)),
        "findings": rendered(tables.findings(safe, safe.findings)),
        "files": rendered(tables.files(safe, files)),
        "outputs": rendered(tables.outputs(safe, outputs)),
        "identical": sum(output.state == "identical" for output in safe.outputs or ()),
    }
    return page.render("comparison.html.j2", context)


def _bar(longest: float) -> Callable[[Split, str], Markup]:
    """A split on a scale that both sides share."""

    def bar(split: Split, name: str) -> Markup:
        return page.labelled_bar(bars.split_bar(split, longest), name)

    return bar
