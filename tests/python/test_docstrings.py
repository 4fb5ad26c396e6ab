"""The examples in the docstrings of the public Python API run, and every public function documents
its result."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module, resources
from pathlib import Path

import pytest

from pario import archive, checkpoint, records

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


#: The methods that programs call themselves. The adapters of PyTorch call others, such as methods
#: that return the same records in another form, and many of Loader and Mixture.
METHODS = [
    pytest.param(method, id=f"{of.__name__}.{name}")
    for of in (archive.Archive, checkpoint.State, checkpoint.Writer, records.Batch, records.Dataset)
    for name, method in vars(of).items()
    if inspect.isfunction(method) and not name.startswith(("_", "with_"))
]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_documents_its_parameters_and_its_result(method):
    documented = inspect.getdoc(method) or ""
    signature = inspect.signature(method)
    needed = ["Parameters"] if len(signature.parameters) > 1 else []
    if signature.return_annotation != "None":
        needed.append("Yields" if "Iterator" in str(signature.return_annotation) else "Returns")
    missing = [name for name in needed if f"{name}\n{'-' * len(name)}\n" not in documented]
    assert missing == []


def test_the_package_is_marked_as_typed() -> None:
    assert resources.files("pario").joinpath("py.typed").is_file()
