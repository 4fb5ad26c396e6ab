"""Pytest plugin: `--starts-processes` selects tests that may start processes, threads, servers.

The rule, applied at collection: a test is selected if its own module, or the module of a fixture
that it uses, starts processes. A module starts processes (or threads, or servers) if its source

- imports one of the modules in STARTERS (anywhere, also in a function),
- calls one of the functions of `os` in OS_CALLS,
- imports a module of `pario` that does one of these itself, or
- imports a module of `tests` that starts processes.

The rule errs on the side of selection: a module that imports `subprocess` for one of its tests
selects all of them.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

STARTERS = frozenset(
    "subprocess multiprocessing threading concurrent socket pty asyncio selenium".split()
)
OS_CALLS = frozenset({"fork", "forkpty", "posix_spawn", "posix_spawnp", "popen", "system"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("general").addoption(
        "--starts-processes",
        action="store_true",
        help="only tests whose modules or fixtures start processes, threads or servers",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.starts_processes:
        return
    others = [item for item in items if not starts_processes(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if starts_processes(item)]


def starts_processes(item: pytest.Item) -> bool:
    return any(module_starts(path) for path in _list_sources(item))


def _list_sources(item: pytest.Item) -> Iterator[Path]:
    """Returns the source files of a test and of its fixtures, without those of packages."""
    yield item.path
    fixtures = getattr(item, "_fixtureinfo", None)
    for definitions in fixtures.name2fixturedefs.values() if fixtures else ():
        for definition in definitions:
            code = getattr(definition.func, "__code__", None)  # a class has none
            path = Path(code.co_filename) if code else item.path
            if path.is_relative_to(item.config.rootpath / "tests"):
                yield path


@cache
def module_starts(path: Path) -> bool:
    """True if a module of the tests starts processes, itself or by the modules it imports."""
    return any(_starts_itself(each) for each in _iterate_reachable(path))


def _iterate_reachable(path: Path) -> Iterator[Path]:
    """A module and the modules of the tests that it imports, also indirectly.

    Modules of pario that these import directly come with them.
    """
    seen, waiting = set(), [path]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        for name in _list_imports(current):
            package = name.partition(".")[0]
            source = _find_source(name) if package in ("tests", "pario") else None
            if source and package == "tests":
                waiting.append(source)
            elif source:
                yield source


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _list_imports(path: Path) -> frozenset[str]:
    """Returns the names of the imported modules; `from a import b` gives both `a` and `a.b`."""
    names = set()
    for node in ast.walk(_parse(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


@cache
def _starts_itself(path: Path) -> bool:
    if any(name.partition(".")[0] in STARTERS for name in _list_imports(path)):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in OS_CALLS
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        for node in ast.walk(_parse(path))
    )


@cache
def _find_source(name: str) -> Path | None:
    """Returns the source file of a module of Python code; None for a class, function or binary
    module."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # `name` is no module, but something in one
        return None
    origin = spec.origin if spec else None
    return Path(origin) if origin and origin.endswith(".py") else None
