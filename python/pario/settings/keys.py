"""The keys of a settings file: the rows of the library's tables of options and hints
(src/core/hints) that have a place in pario.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import starmap
from types import MappingProxyType
from typing import Literal

from pario.wording import block

Carrier = Literal["variable", "hint", "stream"]

#: Table [run], which is for the whole process, and those of [[file]], in the order of writing.
TABLES: tuple[str, ...] = ("run", "mpiio", "striping", "streams", "stdio")

_WORDS = {
    "choice": "automatic, enable or disable",
    "bytes": "size",
    "count": "number",
    "seconds": "seconds",
    "flag": "true or false",
    "text": "text",
    "mode": "full, line, none or as_is",
}
#: Defaults of pario.toml that differ from the library's.
_DEFAULTS = {"PARIO_MPIIO": "yes where a section sets MPI-IO"}


@dataclass(frozen=True)
class Key:
    """A setting: a row of a table in src/core/hints."""

    table: str
    name: str
    kind: str  # choice, bytes, count, seconds, flag, text, mode
    default: str
    aliases: tuple[str, ...]
    meaning: str
    carrier: Carrier
    carried: str  # name of the variable, the hint or the parameter of a stream
    least: int = 0
    most: int = 0
    when: str = "anytime"  # moment of effect: anytime, at_open, at_creation, striping
    risky: bool = False  # changes the data lost at a crash, or how others see the file meanwhile

    @property
    def values(self) -> str:
        """The allowed values in words, with their range."""
        words = _WORDS[self.kind]
        if not self.most or self.kind not in ("bytes", "count"):
            return words
        shown = block if self.kind == "bytes" else str
        return f"{words}, {shown(self.least)} to {shown(self.most)}"


@cache
def keys() -> tuple[Key, ...]:
    """Return all keys of all tables, table by table."""
    from pario._native import hint_table

    rows = [replace(key, aliases=tuple(key.aliases)) for key in starmap(Key, hint_table())]
    return tuple(
        replace(key, default=_DEFAULTS.get(key.carried, key.default))
        for table in TABLES
        for key in rows
        if key.table == table
    )


@cache
def names(table: str) -> Mapping[str, Key]:
    """Return the keys of a table by name and alias."""
    return MappingProxyType(
        {name: key for key in keys() if key.table == table for name in (key.name, *key.aliases)}
    )


def risky_keys() -> tuple[str, ...]:
    """Return the keys that `pario advise` applies only if the user allows them."""
    return tuple(key.name for key in keys() if key.risky)
