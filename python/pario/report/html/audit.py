"""The page's table of what became of settings."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pario import wording
from pario.analyze.model import HintRow
from pario.report.html.table import Column, Table, path_text, table
from pario.report.words import troubled

#: Longer names lose their middle: they stand in several tables.
NAME_LENGTH = 200


def hints(rows: Sequence[HintRow]) -> Table:
    """A row per setting, those that are not in force in bold."""
    bad = troubled(rows)
    columns: list[Column[HintRow]] = [
        Column("hint", lambda row: Markup("<code>{}</code>").format(_short(row.key)), css=""),
        Column("requested", lambda row: _short(row.requested), css="", tip="by the program or the environment"),
        Column("applied", lambda row: _short(row.applied), css="", tip="as understood"),
        Column("effective", lambda row: _short(row.effective), css="", tip="in force"),
        Column("outcome", lambda row: Markup("<b>{}</b>").format(row.state) if row in bad else row.state, css=""),
        Column("reason", lambda row: _short(row.reason), css=""),
        Column("files", lambda row: wording.count(row.file_count), lambda row: row.file_count, "for which it was so"),
        Column("first file", lambda row: path_text(row.files[0], NAME_LENGTH) if row.files else "", css=""),
    ]
    return table("Hints", columns, rows)


def _short(text: str) -> str:
    return wording.elided(text, NAME_LENGTH)
