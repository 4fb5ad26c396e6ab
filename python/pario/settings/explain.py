"""The settings of one path: which ones apply, their origin, and those that override them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pario.settings.file import SettingsFile
from pario.settings.globs import selects
from pario.settings.keys import names

#: Variables with MPI-IO hints. Later hints win: the settings file over the first list, the second
#: list over the settings file.
_WEAKER, _STRONGER = ("MPICH_MPIIO_HINTS",), ("PARIO_HINTS",)
#: Variables with streams. The first one that selects the path wins: the first list, the settings
#: file, the second list.
_BEFORE, _AFTER = ("PARIO_STREAMS",), ("IOBUF_PARAMS",)


@dataclass(frozen=True)
class Applied:
    """A setting that selects the path."""

    table: str
    key: str
    value: str
    origin: str  # "pario.toml:12, match = *.h5", "PARIO_HINTS, *.h5"
    overruled: str = ""  # the origin of the setting that overrides it; empty: it applies


@dataclass(frozen=True)
class _Source:
    """The settings of a path in one section, or in one specification of a variable: (table, key,
    value, origin)."""

    rows: tuple[tuple[str, str, str, str], ...]
    name: str


def explain(
    path: str, file: SettingsFile | None, environment: Mapping[str, str]
) -> tuple[Applied, ...]:
    """Return all settings that select the path (absolute, or a name such as %stdout), the applied
    ones before those that they override.

    The program's own hints in MPI_Info and the library's defaults are weaker than all of these.
    """
    hints = [
        *_romio(environment),
        *_specifications(path, _WEAKER, environment, "mpiio"),
        *reversed(list(_sections(path, file, ("mpiio", "striping")))),
        *_specifications(path, _STRONGER, environment, "mpiio"),
    ]
    streams = [
        *_specifications(path, _BEFORE, environment, "streams"),
        *_sections(path, file, ("streams", "stdio")),
        *_specifications(path, _AFTER, environment, "streams"),
    ]
    return (*_by_key(hints), *_by_source(streams))


def _sections(path: str, file: SettingsFile | None, tables: tuple[str, ...]) -> Iterator[_Source]:
    for section in file.sections if file else ():
        if selects(section.match, path) and section.of(*tables):
            place = f"{file.path if file else ''}:{section.line}"
            rows = [
                (
                    one.key.table,
                    one.key.name,
                    one.text,
                    f'{file.path if file else ""}:{one.line}, match = "{section.match}"',
                )
                for one in section.of(*tables)
            ]
            yield _Source(tuple(rows), place)


def _specifications(
    path: str, variables: tuple[str, ...], environment: Mapping[str, str], table: str
) -> Iterator[_Source]:
    for variable in variables:
        for text in filter(None, environment.get(variable, "").split(",")):
            glob, *parts = text.split(":")
            if selects(glob, path):
                rows = [(*_resolve(table, part), f"{variable}, {glob}") for part in parts if part]
                yield _Source(tuple(rows), f"{variable}, {glob}")


def _resolve(table: str, part: str) -> tuple[str, str, str]:
    """Return table, key and value of key=value; a key alone means yes."""
    name, equals, value = part.partition("=")
    for other in ("striping",) if table == "mpiio" else ("stdio",):
        for key in names(other).values():
            if name in (key.carried, *key.aliases):
                return other, key.name, value
    known = names(table).get(name)
    return table, known.name if known else name, value if equals else "yes"


def _romio(environment: Mapping[str, str]) -> Iterator[_Source]:
    """Yield the hints of ROMIO's file of lines "key value", which apply to all paths."""
    path = environment.get("ROMIO_HINTS")
    if not path:
        return
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    rows = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    found = [
        (*_resolve("mpiio", "=".join(row)), f"ROMIO_HINTS, {path}") for row in rows if len(row) == 2
    ]
    yield _Source(tuple(found), f"ROMIO_HINTS, {path}")


def _by_key(sources: list[_Source]) -> Iterator[Applied]:
    """Yield the settings; the last source wins per key."""
    found: dict[tuple[str, str], list[Applied]] = {}
    for source in sources:
        for row in source.rows:
            found.setdefault(row[:2], []).insert(0, Applied(*row))
    for winner, *others in found.values():
        yield winner
        yield from (replace(other, overruled=winner.origin) for other in others)


def _by_source(sources: list[_Source]) -> Iterator[Applied]:
    """Yield the settings; the first source wins for all keys."""
    for number, source in enumerate(sources):
        yield from (
            Applied(*row, overruled=sources[0].name if number else "") for row in source.rows
        )
