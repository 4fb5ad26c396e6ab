"""List the hints of pario's MPI-IO, which it reads from MPI_Info, PARIO_HINTS, MPICH_MPIIO_HINTS,
ROMIO_HINTS and `pario run --hint`."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pario.cli.arguments import add_flag
from pario.cli.key_texts import key_text, keys_in_markdown
from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.settings import Key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``pario hints``."""
    parser.add_argument("keys", nargs="*", metavar="KEY", help="only these hints (default: all)")
    add_flag(parser, "--markdown", "as a table in Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Prints the table."""
    from pario.settings import keys

    rows = _choose([key for key in keys() if key.carrier == "hint"], arguments.keys)
    if arguments.markdown:
        print(keys_in_markdown("hint", ((row, _values(row), "") for row in rows)))
    else:
        print("\n".join(map(_entry, rows)))
    return 0


def _choose(rows: Sequence[Key], wanted: Sequence[str]) -> Sequence[Key]:
    names = {name: row for row in rows for name in (row.name, *row.aliases)}
    for key in wanted:
        if key not in names:
            meant = difflib.get_close_matches(key, names, n=1)
            raise ParioError(
                f"no hint is called {key}" + (f"; did you mean {meant[0]}?" if meant else "")
            )
    return [names[key] for key in wanted] or rows


def _values(row: Key) -> str:
    """The values of a hint; MPI_Info has no true and false."""
    return "yes or no" if row.kind == "flag" else row.values


def _entry(row: Key) -> str:
    note = "; read when the file is opened" if row.when != "anytime" else ""
    return f"{row.name}\n{key_text(row, _values(row), note, ' ' * 4)}"
