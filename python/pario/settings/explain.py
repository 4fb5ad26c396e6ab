"""For one path: which setting applies, where it comes from, and what overrules it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pario.settings.file import SettingsFile
from pario.settings.globs import means
from pario.settings.keys import names

#: Of MPI-IO hints the later wins, so does the setting file over what stands before it here and not over what stands behind.
_WEAKER, _STRONGER = ("MPICH_MPIIO_HINTS",), ("PARIO_HINTS",)
#: Of streams the first that means the path decides: before the file, and after it.
_BEFORE, _AFTER = ("PARIO_STREAMS",), ("IOBUF_PARAMS",)


@dataclass(frozen=True)
class Applied:
    """One setting that means the path."""

    table: str
    key: str
    value: str
    origin: str  # "pario.toml:12, match = *.h5", "PARIO_HINTS, *.h5"
    overruled: str = ""  # by what; empty: it applies


@dataclass(frozen=True)
class _Source:
    """What one section, or one specification of a variable, says of a path: (table, key, value, origin)."""

    rows: tuple[tuple[str, str, str, str], ...]
    name: str


def explain(path: str, file: SettingsFile | None, environment: Mapping[str, str]) -> tuple[Applied, ...]:
    """All settings that mean the path (absolute, or %stdout and the like), those that apply before those they overrule.

    Hints that the program itself gives in MPI_Info are weaker than all of these, and so is what the library takes where nothing is set.
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
        if means(section.match, path) and section.of(*tables):
            place = f"{file.path if file else ''}:{section.line}"
            rows = [
                (one.key.table, one.key.name, one.text, f'{file.path if file else ""}:{one.line}, match = "{section.match}"')
                for one in section.of(*tables)
            ]
            yield _Source(tuple(rows), place)


def _specifications(path: str, variables: tuple[str, ...], environment: Mapping[str, str], table: str) -> Iterator[_Source]:
    for variable in variables:
        for text in filter(None, environment.get(variable, "").split(",")):
            glob, *parts = text.split(":")
            if means(glob, path):
                rows = [(*_named(table, part), f"{variable}, {glob}") for part in parts if part]
                yield _Source(tuple(rows), f"{variable}, {glob}")


def _named(table: str, part: str) -> tuple[str, str, str]:
    """Table, key and value of key=value; a key alone means yes."""
    name, equals, value = part.partition("=")
    for other in ("striping",) if table == "mpiio" else ("stdio",):
        for key in names(other).values():
            if name in (key.carried, *key.aliases):
                return other, key.name, value
    known = names(table).get(name)
    return table, known.name if known else name, value if equals else "yes"


def _romio(environment: Mapping[str, str]) -> Iterator[_Source]:
    """ROMIO's file of lines "key value", which are for all paths."""
    path = environment.get("ROMIO_HINTS")
    if not path:
        return
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    rows = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    found = [(*_named("mpiio", "=".join(row)), f"ROMIO_HINTS, {path}") for row in rows if len(row) == 2]
    yield _Source(tuple(found), f"ROMIO_HINTS, {path}")


def _by_key(sources: list[_Source]) -> Iterator[Applied]:
    """Per key the last source wins."""
    found: dict[tuple[str, str], list[Applied]] = {}
    for source in sources:
        for row in source.rows:
            found.setdefault(row[:2], []).insert(0, Applied(*row))
    for winner, *others in found.values():
        yield winner
        yield from (replace(other, overruled=winner.origin) for other in others)


def _by_source(sources: list[_Source]) -> Iterator[Applied]:
    """The first source decides for all keys."""
    for number, source in enumerate(sources):
        yield from (Applied(*row, overruled=sources[0].name if number else "") for row in source.rows)
