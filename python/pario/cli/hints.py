"""List the hints that pario's MPI-IO takes: from MPI_Info, PARIO_HINTS, MPICH_MPIIO_HINTS, ROMIO_HINTS and `pario run --hint`."""

from __future__ import annotations

import argparse
import difflib
import textwrap

from pario.errors import ParioError

HELP = "list the hints of pario's MPI-IO"

Row = tuple[str, str, str, str, str, bool]  # key, type, default, aliases, meaning, read at open only
_VALUES = {
    "choice": "automatic, enable or disable",
    "bytes": "size",
    "count": "number",
    "seconds": "seconds",
    "flag": "yes or no",
    "text": "text",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario hints``."""
    parser.add_argument("keys", nargs="*", metavar="KEY", help="only these hints (default: all)")
    parser.add_argument("--markdown", action="store_true", help="as a table in Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Prints the table."""
    from pario._native import file_hints

    rows = _chosen(file_hints(), arguments.keys)
    print(_markdown(rows) if arguments.markdown else "\n".join(map(_entry, rows)))
    return 0


def _chosen(rows: list[Row], keys: list[str]) -> list[Row]:
    names = {name: row for row in rows for name in (row[0], *row[3].split())}
    for key in keys:
        if key not in names:
            meant = difflib.get_close_matches(key, names, n=1)
            raise ParioError(f"no hint is called {key}" + (f"; did you mean {meant[0]}?" if meant else ""))
    return [names[key] for key in keys] or rows


def _entry(row: Row) -> str:
    key, kind, default, aliases, meaning, at_open = row
    facts = f"{_VALUES[kind]}; default {default or 'none'}" + (f"; also {', '.join(aliases.split())}" if aliases else "")
    facts += "; read when the file is opened" if at_open else ""
    return f"{key}\n" + textwrap.fill(f"{meaning} ({facts})", 100, initial_indent="    ", subsequent_indent="    ")


def _markdown(rows: list[Row]) -> str:
    lines = ["| hint | value | default | other names | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{key}` | {_VALUES[kind]} | {default} | {', '.join(aliases.split())} | {meaning} |"
        for key, kind, default, aliases, meaning, _ in rows
    ]
    return "\n".join(lines)
