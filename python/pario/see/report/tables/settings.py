"""The tables of hints and settings: requested values, and values in force."""

from __future__ import annotations

from collections.abc import Sequence

from pario import wording
from pario.see.analyze.model import HintRow
from pario.see.report.table import CODE, COUNT, HTML_ONLY, PATH, Column, Table
from pario.see.report.words import hints_without_effect

#: HTML shortens longer names in the middle, because they occur in several tables.
NAME_LENGTH = 200


def settings(rows: Sequence[HintRow], title: str, note: str = "hints") -> Table[HintRow]:
    """Return a row per setting of pario; settings that are not in force are in bold."""
    bad = hints_without_effect(rows)
    columns: tuple[Column[HintRow], ...] = (
        Column("Hint", lambda row: row.key, CODE, flexible=True),
        Column("requested", lambda row: row.requested, note="by the program or the environment"),
        Column("applied", lambda row: row.applied, note="as understood"),
        Column("effective", lambda row: row.effective, note="in force"),
        Column("outcome", lambda row: row.state, strong=lambda row: row in bad),
        Column("reason", lambda row: row.reason, below=True),
        Column(
            "files",
            lambda row: row.file_count,
            COUNT,
            "with this outcome",
            text=lambda row: wording.count(row.file_count) if row.file_count > 1 else "",
        ),
        Column(
            "first file",
            lambda row: row.files[0] if row.files else "",
            PATH,
            least_width=HTML_ONLY,
        ),
    )
    return Table(title, columns, rows, note, noun="hint", name_length=NAME_LENGTH)


Hint = tuple[str, str, str, str]  # file, key, requested, effective


def library_hints(rows: Sequence[Hint]) -> Table[Hint]:
    """Return the requested and effective hints of the MPI library; differing values are in bold."""
    columns: tuple[Column[Hint], ...] = (
        Column("file", lambda row: row[0], PATH),
        Column("hint", lambda row: row[1], CODE),
        Column("requested", lambda row: row[2]),
        Column(
            "in force", lambda row: row[3], strong=lambda row: bool(row[2]) and row[2] != row[3]
        ),
    )
    return Table("MPI-IO hints", columns, rows, noun="hint")
