"""The files and functions that docs/architecture.md names exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
_FILE = re.compile(r"[\w./-]+\.(?:cpp|hpp|py|def|case|md|toml|sh|yml)")
#: Of the system or of MPI, or said of several modules.
_FOREIGN = {"write", "pwrite", "MPI_File_write_at_all", "PARIO_WRAP"}


def code_in(text: str) -> list[str]:
    """The texts between backticks."""
    return re.findall(r"`([^`]+)`", text)


def section(title: str) -> str:
    """The text below a heading of the second level."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def resolve(name: str, folder: str) -> str:
    """The path of a file; a name without a folder lies in that of the path before it, or it is at
    the top."""
    return name if "/" in name or (ROOT / name).exists() else f"{folder}/{name}"


def steps() -> Iterator[tuple[str, str]]:
    """The numbered steps of all walks."""
    for walk in section("Four walks").split("\n### ")[1:]:
        title = walk.split("\n")[0]
        numbered = walk.split("\nReturns:")[0]
        for step in re.split(r"\n(?=\d+\. )", numbered)[1:]:
            yield f"{title}, {step.split('.')[0]}", step


def files_in(text: str, folder: str = "") -> list[str]:
    """The paths of the files that a text names."""
    found = []
    for code in code_in(text):
        if not _FILE.fullmatch(code):
            continue
        found.append(resolve(code, folder))
        folder = found[-1].rpartition("/")[0]
    return found


def functions_in(text: str) -> list[str]:
    """The last names of the functions that a text names with parentheses."""
    names = []
    for code in code_in(text):
        head = code.split("(")[0]
        if not _FILE.fullmatch(code) and "(" in code:
            names.append(re.split(r"::|\.", head)[-1])
    return [name for name in names if name and name not in _FOREIGN]


def test_the_walks_have_steps():
    assert len(list(steps())) >= 40


@pytest.mark.parametrize(("name", "step"), [pytest.param(*step, id=step[0]) for step in steps()])
def test_a_step_names_files_that_define_or_call_its_functions(name, step):
    files = files_in(step)
    assert files, name
    texts = "\n".join((ROOT / file).read_text() for file in files)
    missing = [
        function for function in functions_in(step) if not re.search(rf"\b{function}\b", texts)
    ]
    assert missing == []


def rows() -> Iterator[str]:
    """The places in the tables of changes."""
    for line in section("Places of changes").splitlines():
        if line.startswith("|") and not line.startswith(("|---", "| change")):
            yield line.strip("|").split("|")[-1]


def test_the_places_of_changes_exist():
    folder, missing = "", []
    for row in rows():
        for code in code_in(row):
            if "/" in code or _FILE.fullmatch(code):
                path = resolve(code, folder)
                folder = path.rpartition("/")[0]
                if not (ROOT / path).exists():
                    missing.append(path)
    assert missing == []


def test_the_glossary_has_40_to_60_terms_each_once():
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    terms = [term for term in rows if term != "term"]
    assert 40 <= len(terms) <= 60
    assert len(set(terms)) == len(terms)


def modules_of_components() -> Iterator[tuple[Path, set[str]]]:
    """The folder of each component, and its modules."""
    for name in ("core", "parallel", "observe", "layers", "data", "instruments"):
        folder = ROOT / "src" / name
        yield folder, {path.parent.name for path in folder.glob("*/*.hpp")}
    for name in ("see", "fix", "prove", "move", "checkpoint", "records"):
        folder = ROOT / "python/pario" / name
        files = {path.stem for path in folder.glob("*.py")}
        packages = {path.parent.name for path in folder.glob("*/__init__.py")}
        yield folder, (files | packages) - {"__init__", "errors"}


@pytest.mark.parametrize(
    ("folder", "modules"),
    [pytest.param(*each, id=each[0].name) for each in modules_of_components()],
)
def test_the_readme_of_a_component_names_its_modules(folder, modules):
    named = re.findall(r"`(\w+)`|\*\*(\w+)\*\*", (folder / "README.md").read_text())
    assert modules - {name for pair in named for name in pair} == set()
