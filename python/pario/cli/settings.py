"""Settings of I/O: which ones apply to a file and why, and the reference of all there are."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pario.cli.arguments import add_flag, add_settings_file
from pario.cli.key_texts import key_text, keys_in_markdown
from pario.cli.paths import path_text, require_path
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.settings import Applied, Key, SettingsFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario settings``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    explain = actions.add_parser(
        "explain", help="which settings apply to a file, and why", allow_abbrev=False
    )
    explain.add_argument(
        "path",
        type=path_text,
        metavar="FILE",
        help="any path, existing or not, or %%stdin, %%stdout, %%stderr",
    )
    add_settings_file(explain)
    reference = actions.add_parser("reference", help="all settings", allow_abbrev=False)
    reference.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help="run, mpiio, striping, streams, stdio (default: all)",
    )
    add_flag(reference, "--markdown", "as tables in Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Explains, or prints the reference."""
    if arguments.action == "reference":
        print(_reference(arguments.tables, arguments.markdown))
    else:
        _explain(arguments.path, arguments.file)
    return 0


def _explain(path: str, source: Path | None) -> None:
    from pario.settings import explain, load

    if source:
        require_path(source, "a settings file (docs/settings.md)")
    file = load(source) if source else None
    full = path if path.startswith("%") else os.path.abspath(path)  # noqa: PTH100
    rows = explain(full, file, os.environ)
    print(full)
    if rows:
        _print(rows)
    else:
        print("  nothing is set for it: it is read and written as the program does it")
    if any(row.table in ("mpiio", "striping") for row in rows):
        print(f"  {_mpiio(file)}")


def _print(rows: Sequence[Applied]) -> None:
    from pario.cli.console import make_console
    from pario.see.report.table import Column
    from pario.see.report.text_table import align_columns

    columns: list[Column[Applied]] = [
        Column("  table", lambda row: f"  {row.table}"),
        Column("key", lambda row: row.key),
        Column("value", lambda row: row.value),
        Column(
            "",
            lambda row: f"not used: {row.overruled} decides" if row.overruled else "applies",
        ),
        Column("from", lambda row: row.origin),
    ]
    console = make_console(sys.stdout)
    for line in align_columns(columns, rows, sys.maxsize):
        console.print(line, soft_wrap=True)


def _mpiio(file: SettingsFile | None) -> str:
    """A sentence that says whether MPI-IO settings have an effect."""
    from pario.settings import uses_own_mpiio, variables

    value = os.environ.get("PARIO_MPIIO") or (
        variables(file, os.environ).get("PARIO_MPIIO") if file else None
    )
    if uses_own_mpiio({"PARIO_MPIIO": value or ""}):
        return (
            "pario's MPI-IO is on and carries out mpiio; hints that the program gives in MPI_Info"
            " are weaker than these"
        )
    return (
        "pario's MPI-IO is off: mpiio has no effect (pario run --mpiio, or mpiio = true in [run])"
    )


def _reference(tables: Sequence[str], markdown: bool) -> str:
    from pario.settings import TABLES, keys

    for table in tables:
        if table not in TABLES:
            raise ParioError(f"no table is called {table}; expected {', '.join(TABLES)}")
    shown = [(table, [key for key in keys() if key.table == table]) for table in tables or TABLES]
    return "\n\n".join((_markdown if markdown else _text)(table, rows) for table, rows in shown)


def _text(table: str, rows: Sequence[Key]) -> str:
    return "\n".join([_header(table), *map(_entry, rows)])


def _header(table: str) -> str:
    return "[run]" if table == "run" else f"[file.{table}]"


def _entry(key: Key) -> str:
    text = key_text(key, key.values, "; risky" if key.risky else "", " " * 6)
    return f"  {key.name}\n{text}"


def _markdown(table: str, rows: Sequence[Key]) -> str:
    noted = ((key, key.values, " (risky)" if key.risky else "") for key in rows)
    return f"### {_header(table)}\n\n{keys_in_markdown('key', noted)}"
