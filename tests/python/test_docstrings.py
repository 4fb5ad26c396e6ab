"""The examples in the docstrings of the public Python API run, and every public function documents
its result."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module, resources
from pathlib import Path

import pytest

from pario import archive, records

EXAMPLES = {"pario.archive": 1, "pario.records": 1, "pario.records.batch": 1}
EXAMPLES |= {"pario.records.dataset": 1, "pario.records.loader": 1, "pario.records.mixture": 1}
PUBLIC = [
    *(getattr(archive, name) for name in archive.__all__),
    *(getattr(records, name) for name in records.__all__),
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_docstrings_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0
    assert result.attempted > EXAMPLES[name]


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_public_members_have_docstrings_that_name_their_parameters(thing: type) -> None:
    members = [thing]
    if inspect.isclass(thing):
        members += [one for name, one in vars(thing).items() if not name.startswith("_")]
    for member in members:
        assert inspect.getdoc(member), member
    documented = inspect.getdoc(thing) or ""
    if "Parameters\n" in documented:
        names = set(inspect.signature(thing).parameters)
        section = documented.partition("Parameters\n----------\n")[2]
        listed = {
            name.strip()
            for line in section.splitlines()
            if line[:1].isalpha()
            for name in line.partition(" : ")[0].split(",")
        }
        assert names <= listed


def test_the_package_is_marked_as_typed() -> None:
    assert resources.files("pario").joinpath("py.typed").is_file()
