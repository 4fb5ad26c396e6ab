"""The parser of ``pario.toml``. It is strict: anything that it does not understand is an error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pario.paths import local_path
from pario.settings.errors import SettingsError
from pario.settings.globs import SEPARATORS
from pario.settings.keys import TABLES, Key, names
from pario.settings.lines import Place, line_of

FILE_TABLES = TABLES[1:]


@dataclass(frozen=True)
class Setting:
    """A key and its value as text for the library."""

    key: Key
    text: str
    line: int


@dataclass(frozen=True)
class Section:
    """A [[file]] section: the settings of the files that a pattern selects."""

    match: str
    line: int
    settings: tuple[Setting, ...]

    def of(self, *tables: str) -> tuple[Setting, ...]:
        """Return the settings of some tables."""
        return tuple(setting for setting in self.settings if setting.key.table in tables)


@dataclass(frozen=True)
class SettingsFile:
    """A valid settings file."""

    path: Path
    run: tuple[Setting, ...]
    sections: tuple[Section, ...]


def merge_settings(strong: SettingsFile | None, weak: SettingsFile) -> SettingsFile:
    """Merge two files; the settings of the first win."""
    if strong is None:
        return weak
    own_keys = {setting.key for setting in strong.run}
    run = (*strong.run, *(setting for setting in weak.run if setting.key not in own_keys))
    return SettingsFile(strong.path, run, strong.sections + weak.sections)


def load(path: str | os.PathLike[str]) -> SettingsFile:
    """Read a settings file. Raises SettingsError with file, line, key, the allowed values and a
    suggestion."""
    import tomllib

    path = local_path(path)
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(path, 0, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise SettingsError(path, 0, f"byte {error.start} is no UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(path, 0, str(error)) from error
    return _Reader(path, text).read(document)


class _Reader:
    """The reader of one file, which knows the line of each key."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def read(self, document: Mapping[str, Any]) -> SettingsFile:
        for name in document:
            if name not in ("run", "file"):
                raise self._error(
                    (name,),
                    f"unknown table {name}{_suggest(name, ('run', 'file'))}; expected [run] and"
                    " [[file]]",
                )
        run = document.get("run", {})
        files = document.get("file", [])
        if not isinstance(run, dict):
            raise self._error(("run",), "run is a value; expected a table: [run]")
        if not isinstance(files, list) or not all(isinstance(section, dict) for section in files):
            raise self._error(
                ("file",), "file is not a list of tables; expected [[file]] with two brackets"
            )
        sections = tuple(
            self._section(section, ("file", number)) for number, section in enumerate(files)
        )
        return SettingsFile(self._path, tuple(self._table("run", run, ("run",))), sections)

    def _section(self, section: Mapping[str, Any], place: Place) -> Section:
        expected = ("match", *FILE_TABLES)
        for name in section:
            if name not in expected:
                raise self._error(
                    (*place, name),
                    f"unknown key {name}{_suggest_table(name, expected)}; expected"
                    f" {_format_list(expected)}",
                )
        match = self._match(section, place)
        settings = [
            one
            for table in FILE_TABLES
            if table in section
            for one in self._settings(table, section[table], (*place, table))
        ]
        return Section(match, self._line(place), tuple(settings))

    def _match(self, section: Mapping[str, Any], place: Place) -> str:
        match = section.get("match")
        if match is None:
            raise self._error(
                place, '[[file]] without match; expected match = "PATTERN" (* for any characters)'
            )
        if not isinstance(match, str) or not match.strip():
            raise self._error(
                (*place, "match"), f"match = {match!r}; expected a pattern for file names"
            )
        self._check_text("match", match, (*place, "match"))
        return match

    def _settings(self, table: str, content: Any, place: Place) -> Iterator[Setting]:
        if not isinstance(content, dict):
            raise self._error(
                place, f"{table} is a value; expected a table: [file.{table}] below its [[file]]"
            )
        return self._table(table, content, place)

    def _table(self, table: str, content: Mapping[str, Any], place: Place) -> Iterator[Setting]:
        known = names(table)
        for name, value in content.items():
            here = (*place, name)
            if name not in known:
                raise self._error(here, f"unknown key {name} in {table}{_suggest_key(name, table)}")
            yield self._setting(known[name], value, here)

    def _setting(self, key: Key, value: Any, place: Place) -> Setting:
        text = _text(key, value)
        if text is None:
            raise self._error(place, f"{key.name} = {_format_value(value)}; expected {key.values}")
        if key.carrier != "variable":
            self._check_text(key.name, text, place)
        if complaint := _complaint(key, text):
            raise self._error(place, complaint)
        return Setting(key, text, self._line(place))

    def _check_text(self, name: str, text: str, place: Place) -> None:
        """Raise an error if a variable cannot carry a text."""
        for separator in SEPARATORS:
            if separator in text:
                raise self._error(
                    place,
                    f"{name} = {text!r} has a {separator!r}, which separates settings; a ? stands"
                    " for any character",
                )
        if text != text.strip():
            raise self._error(place, f"{name} = {text!r} begins or ends with a blank")

    def _line(self, place: Place) -> int:
        return line_of(self._text, place)

    def _error(self, place: Place, text: str) -> SettingsError:
        return SettingsError(self._path, self._line(place), text)


def _text(key: Key, value: Any) -> str | None:
    """Return the value as text for the library; None if the key does not allow its type."""
    if key.kind == "flag":
        return ("yes" if value else "no") if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value) if key.kind in ("bytes", "count", "seconds") else None
    if isinstance(value, float):
        return str(value) if key.kind == "seconds" else None
    return value if isinstance(value, str) and key.kind not in ("count", "seconds") else None


def _complaint(key: Key, text: str) -> str:
    """Return the complaint of the library; empty if the value is valid."""
    from pario import _native

    if key.carrier == "hint":
        problem = _native.check_file_hint(key.carried, text)
        return problem if not problem or key.name in problem else f"{key.name} = {text}: {problem}"
    if key.carrier == "stream":
        problem = "; ".join(_native.check_stream_specifications("", f"*:{key.carried}={text}"))
        return f"{key.name} = {text}; expected {key.values}" if problem else ""
    return "; ".join(_native.check_variables([f"{key.carried}={text}"])).replace(
        key.carried, key.name
    )


def _format_value(value: Any) -> str:
    return (
        {True: "true", False: "false"}.get(value, repr(value))
        if isinstance(value, bool)
        else repr(value)
    )


def _format_list(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"


def _suggest(name: str, known: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _suggest_table(name: str, expected: tuple[str, ...]) -> str:
    """Suggest the table of a key that was written one level too high."""
    table = next((table for table in FILE_TABLES if name in names(table)), "")
    return f"; did you mean {table} = {{ {name} = ... }}?" if table else _suggest(name, expected)


def _suggest_key(name: str, table: str) -> str:
    """Suggest the nearest name in the table, or the table that has the name."""
    other = next((other for other in TABLES if name in names(other)), "")
    if other:
        return f"; it belongs to {other}"
    return (
        _suggest(name, names(table))
        or f"; expected one of {', '.join(sorted(key.name for key in set(names(table).values())))}"
    )
