"""Checks the includes between the modules under src/ against tools/modules.toml.

A module is a folder ``src/COMPONENT/MODULE``. Other modules may include its public header
``MODULE/MODULE.hpp``, its ``.def`` tables and the headers listed in ``[public_headers]``, and only
if the table has the edge. Each edge must be used. Neither modules, components nor headers form a
cycle.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """A folder of sources and the modules that it may include."""

    name: str
    component: str
    folder: str  # relative to src/
    may_use: list[str]
    public: list[str]  # headers beside MODULE.hpp and the tables

    def public_files(self) -> set[str]:
        """List the files that other modules may include, relative to src/."""
        tables = {path.name for path in (ROOT / "src" / self.folder).glob("*.def")}
        names = {f"{self.name}.hpp", *tables, *self.public}
        return {f"{self.folder}/{name}" for name in names}

    def sources(self) -> list[Path]:
        """List the sources and headers of the module."""
        return sorted((ROOT / "src" / self.folder).glob("*.[ch]pp"))


def read_modules(table: dict[str, dict[str, list[str]]]) -> dict[str, Module]:
    public = table.get("public_headers", {})
    modules = {}
    for component, members in table.items():
        if component == "public_headers":
            continue
        for name, may_use in members.items():
            folder = name if component == name else f"{component}/{name}"
            modules[name] = Module(name, component, folder, may_use, public.get(name, []))
    return modules


def find_problems(modules: dict[str, Module]) -> Iterator[str]:
    yield from find_cycles(modules)
    by_folder = {module.folder: module for module in modules.values()}
    for folder in list_folders():
        if folder not in by_folder:
            yield f"src/{folder}: a folder that tools/modules.toml does not name"
    for module in modules.values():
        used = set()
        for path in module.sources():
            for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
                other = by_folder.get(included.rpartition("/")[0])
                if other is None or other is module:
                    continue
                used.add(other.name)
                if problem := check_include(included, module, other):
                    yield f"{path.relative_to(ROOT)}: includes {included}; {problem}"
        for other_name in module.may_use:
            if other_name not in used:
                yield f"tools/modules.toml: module {module.name} does not use {other_name}"


def find_cycles(modules: dict[str, Module]) -> Iterator[str]:
    graph = {name: set(module.may_use) for name, module in modules.items()}
    components: dict[str, set[str]] = {module.component: set() for module in modules.values()}
    for module in modules.values():
        others = {modules[name].component for name in module.may_use if name in modules}
        components[module.component] |= others - {module.component}
    graphs = {"modules": graph, "components": components, "headers": list_header_edges()}
    for kind, edges in graphs.items():
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            yield f"cycle of {kind}: {' -> '.join(error.args[1])}"


def list_header_edges() -> dict[str, set[str]]:
    """List the headers that each header under src/ includes."""
    source = ROOT / "src"
    headers = {str(path.relative_to(source)): path for path in source.rglob("*.hpp")}
    return {
        name: set(INCLUDE.findall(path.read_text(encoding="utf-8"))) & headers.keys()
        for name, path in headers.items()
    }


def list_folders() -> list[str]:
    """List the folders under src/ that hold sources."""
    source = ROOT / "src"
    return sorted({str(path.parent.relative_to(source)) for path in source.rglob("*.[ch]pp")})


def check_include(included: str, module: Module, other: Module) -> str | None:
    if other.name not in module.may_use:
        return f"module {module.name} may use: {', '.join(module.may_use) or 'no other module'}"
    if included not in other.public_files():
        return f"only public headers ({other.name}.hpp) may be included by other modules"
    return None


def main() -> int:
    table = tomllib.loads((ROOT / "tools" / "modules.toml").read_text(encoding="utf-8"))
    problems = list(find_problems(read_modules(table)))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
