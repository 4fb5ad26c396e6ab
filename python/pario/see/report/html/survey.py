"""The survey of many runs as one self-contained HTML file, in the style of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pario.see.analyze.survey import Survey
from pario.see.report.clean import make_printable
from pario.see.report.html import page
from pario.see.report.html.table import render_table
from pario.see.report.tables import survey as tables

#: Rows in the page; CSV and JSON have all rows.
RUN_ROWS, DAMAGED_ROWS, TOTAL_ROWS = 500, 50, 100
#: Longer titles, commands and paths are shortened: there are many.
NAME_LENGTH = 200


def render(survey: Survey, places: Sequence[str]) -> str:
    """Return the page, which is below 1 MB for any number of runs; ``places`` are the arguments."""
    good = len(survey.rows) - survey.damaged
    rows = make_printable(survey.rows[: min(RUN_ROWS, good)])
    damaged = make_printable(survey.rows[good : good + DAMAGED_ROWS])
    totals = {
        name: render_table(table(survey, make_printable(rows[:TOTAL_ROWS])))
        for name, table, rows in (
            ("causes", tables.causes, survey.causes),
            ("programs", tables.programs, survey.programs),
            ("users", tables.users, survey.users),
        )
    }
    context = {
        "title": survey.sentence,
        "run": " ".join(make_printable(tuple(places[:3]))) + (" ..." if len(places) > 3 else ""),
        "data": page.data({"timeline": None, "contention": {}}),
        "survey": survey,
        "good": good,
        "runs": render_table(replace(tables.runs(rows), name_length=NAME_LENGTH)),
        "damaged": damaged,
        "notes": tables.notes(survey),
        **totals,
    }
    return page.render("survey.html.j2", context)
