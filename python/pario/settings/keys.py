"""The tables of a settings file and their keys, from the library's own tables of hints (src/hints)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

from pario.wording import block

Carrier = Literal["variable", "hint", "stream"]

#: Tables of [[file]], in the order in which they are written; and [run], which is for the whole process.
TABLES: tuple[str, ...] = ("run", "mpiio", "striping", "streams", "stdio")

#: Keys that change what is lost when the machine fails, or what others see of a file meanwhile: proposed, applied only where allowed.
RISKY: tuple[str, ...] = ("ignoreflush", "lazyclose", "handles")

_STRIPING = ("striping_factor", "striping_unit", "start_iodevice", "pario_expected_size", "pario_expected_writers", "pario_growing")
_STDIO = {"stdio": "mode", "stdio_size": "size"}
_WORDS = {
    "choice": "automatic, enable or disable",
    "bytes": "size",
    "count": "number",
    "seconds": "seconds",
    "flag": "true or false",
    "text": "text",
    "mode": "full, line, none or as_is",
}


@dataclass(frozen=True)
class Key:
    """One thing that can be set."""

    table: str
    name: str
    kind: str  # choice, bytes, count, seconds, flag, text, mode
    default: str
    aliases: tuple[str, ...]
    meaning: str
    carrier: Carrier
    carried: str  # name of the variable, the hint or the parameter of a stream
    least: int = 0
    most: int = 0  # 0: the library alone knows the range

    @property
    def values(self) -> str:
        """What it takes, in words, with its range where one is known here."""
        words = _WORDS[self.kind]
        if not self.most or self.kind not in ("bytes", "count"):
            return words
        shown = block if self.kind == "bytes" else str
        return f"{words}, {shown(self.least)} to {shown(self.most)}"


def keys() -> tuple[Key, ...]:
    """All keys of all tables, table by table."""
    return tuple(key for table in TABLES for key in _SOURCES[table]() if key.table == table)


@cache
def names(table: str) -> Mapping[str, Key]:
    """The keys of a table by their names, other names included."""
    return MappingProxyType({name: key for key in _SOURCES[table]() if key.table == table for name in (key.name, *key.aliases)})


@cache
def _hints() -> tuple[Key, ...]:
    """Hints of MPI-IO, stripes among them."""
    from pario._native import file_hints

    return tuple(
        Key("striping" if key in _STRIPING else "mpiio", key, kind, default, tuple(aliases.split()), meaning, "hint", key)
        for key, kind, default, aliases, meaning, _ in file_hints()
    )


@cache
def _streams() -> tuple[Key, ...]:
    """What the buffers of a file do, those of stdio among them."""
    from pario._native import stream_hints

    return tuple(
        Key("stdio" if key in _STDIO else "streams", _STDIO.get(key, key), kind, default, (), meaning, "stream", key, least, most)
        for key, kind, default, least, most, meaning in stream_hints()
    )


def _variable(name: str, kind: str, default: str, variable: str, meaning: str) -> Key:
    return Key("run", name, kind, default, (), meaning, "variable", variable)


#: Rows of src/hints/hints.def that a settings file may set.
_RUN = (
    _variable("mpiio", "flag", "yes where a section sets MPI-IO", "PARIO_MPIIO", "use pario's own MPI-IO in place of the MPI's"),
    _variable("events_limit", "bytes", "256M", "PARIO_TRACE_EVENTS_LIMIT", "compressed events kept per process; 0: counters only"),
    _variable("files_limit", "count", "100000", "PARIO_TRACE_FILES_LIMIT", "files per process with counters of their own"),
    _variable("streams_memory", "bytes", "256M", "PARIO_STREAMS_MEMORY", "limit of the buffers of a process"),
    _variable("streams_programs", "text", "*", "PARIO_STREAMS_PROGRAMS", "globs of programs whose files are buffered"),
    _variable(
        *("arguments", "flag", "yes", "PARIO_TRACE_ARGUMENTS"),
        meaning="keep the arguments of programs in the log, not their names alone",
    ),
    _variable("exclude", "text", "!/dev/shm/*:/dev/*:/proc/*:/sys/*", "PARIO_TRACE_EXCLUDE", "globs of paths that are not traced"),
)


_SOURCES: dict[str, Callable[[], tuple[Key, ...]]] = {
    "run": lambda: _RUN,
    "mpiio": _hints,
    "striping": _hints,
    "streams": _streams,
    "stdio": _streams,
}
