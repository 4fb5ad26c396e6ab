"""Paths with a scheme, such as s3://bucket/key, are refused by all commands and functions, which
would otherwise make a directory "s3:"."""

import argparse
import dataclasses
import importlib
import inspect
from pathlib import Path

import pytest

from pario.checkpoint import CheckpointError, Writer
from pario.cli import build_parser
from pario.errors import ParioError
from pario.objects import read_head
from pario.paths import local_path

REMOTE = "s3://bucket/key"

#: Text arguments of commands that are not paths. A new argument is either a path or listed here.
NO_PATHS = {
    "run --events-limit",
    "run --files-limit",
    "run --hint",
    "run --allow",
    "run program",
    "advise --allow",
    "advise --mpiexec",
    "settings reference tables",
    "hints keys",
    "stripe set --pool",
    "stripe sweep --mpiexec",
    "stripe restripe --pool",
    "unpack members",
    "ls patterns",
    "merge --dataset",
    "merge --dtype",
    "records head --column",
    "records get --column",
    "records convert --column",
    "checkpoint convert --select",
    "checkpoint prune --metric",
    "checkpoint plot array",
    "bench patterns --mpiexec",
    "bench patterns --pattern",
    "bench s3d --mpiexec",
    "replay --mpiexec",
    "survey --program",
    "survey --rule",
    "survey --user",
    "tune --mpiexec",
    "tune what",  # files or a command; pario.see.tables.read refuses a scheme
}

#: The modules of the Python API whose functions are checked if they have a parameter for a path.
MODULES = [
    "pario.move.archive",
    "pario.move.archive.subdirs",
    "pario.checkpoint",
    "pario.checkpoint.header",
    "pario.checkpoint.examine",
    "pario.checkpoint.merge",
    "pario.checkpoint.reader",
    "pario.checkpoint.store",
    "pario.see.export",
    "pario.move.merge",
    "pario.records",
    "pario.settings",
    "pario.move.staging",
    "pario.move.verified_copy",
    "pario.fix.stripe",
    "pario.fix.stripe.filesystem",
    "pario.fix.stripe.layout",
    "pario.fix.stripe.restripe",
    "pario.see.tables",
]

#: Functions whose paths come from pario itself or from a search for files.
INTERNAL = {
    "pario.checkpoint.store.document",
    "pario.checkpoint.store.Store.file",
    "pario.move.merge.Block.of_npy",
    "pario.move.merge.Block.of_raw",
    "pario.move.staging.in_use",
    "pario.move.verified_copy.copy_verified",
    "pario.move.verified_copy.make_directory",
    "pario.move.verified_copy.state_of",
    "pario.move.archive.subdirs.read_note",
    "pario.fix.stripe.filesystem.mount_of",
    "pario.fix.stripe.restripe.Places",
    "pario.fix.stripe.restripe.State",
}

#: Functions that accept URLs (tests/python/test_objects.py, test_checkpoint_remote.py).
URLS = {
    "pario.checkpoint.Writer",
    "pario.checkpoint.load",
    "pario.checkpoint.load_state_dict",
    "pario.checkpoint.reader.load",
    "pario.records.Dataset",
    "pario.records.Loader",
    "pario.records.Mixture",
}


@pytest.mark.parametrize(
    "path",
    [
        REMOTE,
        "s3:/bucket/key",
        "gs://b",
        "https://host/x",
        "hf://org/model",
        "file:///x",
        "simplecache::s3://b",
        Path(REMOTE),
        "S3://b",
    ],
)
def test_a_scheme_is_refused(path):
    with pytest.raises(ParioError, match=r"expected a local path"):
        local_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "/a/b",
        "./s3",
        "run-12:30:00/x",
        "a:b",
        "step=3:/x",
        "/s3:/bucket",
        "",
        "../s3:/x",
        Path("a:b"),
    ],
)
def test_other_names_are_local_paths(path):
    assert local_path(path) == Path(path)


PARSER = build_parser()


def test_no_directory_is_made_of_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError):
        Writer(None, Path(REMOTE))
    assert list(tmp_path.iterdir()) == []


def arguments_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()):
    """Yields all text arguments of all commands: words of the command, and the argument."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from arguments_of(one, (*words, name))
        elif action.nargs != 0 and action.choices is None:
            yield words, action


def name_of(words, action) -> str:
    return " ".join([*words, (action.option_strings or [action.dest])[-1]])


#: Types of arguments that keep the text as it is.
PASSING = (None, str, Path)
PATHS = [
    (words, action)
    for words, action in arguments_of(PARSER)
    if "path" in getattr(action.type, "__name__", "").lower()
    and "url" not in getattr(action.type, "__name__", "")
]


def test_every_text_argument_is_a_path_or_listed_as_none():
    found = {
        name_of(words, action) for words, action in arguments_of(PARSER) if action.type in PASSING
    }
    assert found == NO_PATHS


@pytest.mark.parametrize(("words", "action"), PATHS, ids=[name_of(*one) for one in PATHS])
def test_every_command_refuses_a_scheme(words, action, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = f"{REMOTE}={REMOTE}" if action.metavar == "DIR=LOCAL" else REMOTE
    with pytest.raises(SystemExit) as ended:
        PARSER.parse_args([*words, *action.option_strings[-1:], text])
    assert ended.value.code == 2
    assert REMOTE in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def functions():
    """Yields functions, methods and constructors of the Python API: full name, signature, and a
    call."""
    for module in map(importlib.import_module, MODULES):
        own = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__
        ]
        for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", inspect.signature(value), value
            elif inspect.isclass(value) and not issubclass(value, Exception):
                yield from methods(f"{module.__name__}.{name}", value)


def methods(name, value):
    if "__init__" in vars(value) and not dataclasses.is_dataclass(value):
        yield name, inspect.signature(value), value
    for one in [
        one for one in vars(value) if not one.startswith("_") and callable(getattr(value, one))
    ]:
        bound = getattr(object.__new__(value), one)
        yield f"{name}.{one}", inspect.signature(bound), bound


def is_path(parameter) -> bool:
    return "Path" in str(parameter.annotation) and "Callable" not in parameter.annotation


#: Each path parameter of each of these functions.
PARAMETERS = {
    f"{name}({one.name})": (call, signature, one.name)
    for name, signature, call in functions()
    for one in signature.parameters.values()
    if is_path(one) and name not in INTERNAL | URLS
}


@pytest.mark.parametrize(("call", "signature", "name"), PARAMETERS.values(), ids=PARAMETERS)
def test_every_function_refuses_a_scheme(call, signature, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {}
    for one in signature.parameters.values():
        text = REMOTE if one.name == name else str(tmp_path / "local")
        if one.name == name or one.default is inspect.Parameter.empty:
            given[one.name] = (
                ([text] if "Sequence" in one.annotation else text) if is_path(one) else None
            )
    with pytest.raises(ParioError, match=r"s3:/?/bucket/key.*expected a local path"):
        call(**given)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_a_read_names_the_file():
    with pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"):
        read_head("/proc/self/mem", 16)  # nothing is mapped at address 0
