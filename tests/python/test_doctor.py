"""``pario doctor`` explains the installation."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import sys
import tomllib
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.see.launch import environment, installation
from pario.see.launch.installation import Fact, judge_mpi
from tests.support.commands import run_command


def explain(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    main(["doctor", "--json"])
    return {fact["subject"]: fact for fact in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HYDRA build details:\n    Version:    5.0.2\n", "MPICH 5.0.2 (tested)"),
        ("HYDRA build:\n    Version:  3.4.1\n", "MPICH 3.4.1 (not tested in this version)"),
        ("mpiexec (OpenRTE) 4.1.4\n", "Open MPI 4.1.4 (tested)"),
        ("mpiexec (Open MPI) 5.0.11\n", "Open MPI 5.0.11 (tested)"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14 Build", "Intel MPI 2021.14"),
        ("some launcher 1.0", "an MPI that pario's tests do not know"),
    ],
)
def test_the_mpi_is_named_with_its_version(text: str, expected: str) -> None:
    assert judge_mpi(text).startswith(expected)


def test_the_library_of_this_installation_can_be_preloaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = explain(capsys)
    assert facts["library"]["value"].endswith("libpario.so")
    assert facts["preload"]["value"].startswith("works")
    assert facts["module"]["value"].startswith("works (_native")
    assert "the library needs 2." in facts["glibc"]["value"]


def test_a_library_that_cannot_be_preloaded_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library = tmp_path / "libpario.so"
    library.write_bytes(b"GLIBC_2.17 GLIBC_2.99 GLIBC_2.3.4")
    monkeypatch.setattr(environment, "library", lambda: library)
    facts = explain(capsys)
    assert facts["glibc"]["problem"].startswith("needs glibc 2.99")
    assert "cannot be preloaded" in facts["preload"]["problem"]
    assert main(["doctor"]) == 1
    assert "! needs glibc 2.99" in capsys.readouterr().out


def test_a_missing_library_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Path:
        raise ParioError("libpario.so is not installed")

    monkeypatch.setattr(environment, "library", fail)
    assert explain(capsys)["library"]["problem"].startswith("libpario.so is not installed")


@pytest.mark.parametrize("content", [b"", b"<html>404</html>"])
def test_a_library_that_is_none_is_a_problem(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
) -> None:
    library = tmp_path / "libpario.so"
    library.write_bytes(content)
    monkeypatch.setattr(environment, "library", lambda: library)
    assert explain(capsys)["library"]["problem"].startswith("no library")


def copy_package(folder: Path, module: bytes | None) -> Path:
    """Copies the package without its libraries; ``module``: the bytes of its extension module."""
    package = folder / "pario"
    source = Path(installation.__file__).parents[2]
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if module is not None:
        (package / f"_native{EXTENSION_SUFFIXES[0]}").write_bytes(module)
    return package


def run_copy(package: Path, *words: str) -> CompletedProcess[str]:
    """Runs a command of a copy, without any other package (-S)."""
    program = f"import sys; sys.path.insert(0, {str(package.parent)!r})\n"
    program += f"from pario.cli import main; sys.exit(main({list(words)}))"
    return run_command([sys.executable, "-S", "-c", program], env={"PATH": os.defpath})


@pytest.mark.parametrize("module", [None, b"", b"no module"])
@pytest.mark.system
def test_an_extension_module_that_is_missing_or_broken_is_a_problem(
    tmp_path: Path, module: bytes | None
) -> None:
    package = copy_package(tmp_path, module)
    done = run_copy(package, "doctor", "--json")
    assert done.returncode == 1, done.stderr
    facts = {fact["subject"]: fact for fact in json.loads(done.stdout)}
    assert facts["pario"]["value"].endswith(f"imported from {package}")
    assert "install pario again for this Python" in facts["module"]["problem"]
    assert facts["required"]["problem"] == "pip install numpy rich jinja2"


@pytest.mark.system
def test_commands_of_an_incomplete_installation_refer_to_doctor(tmp_path: Path) -> None:
    package = copy_package(tmp_path, None)
    for words in (["run", "--", "true"], ["report", "absent"], ["hints"]):
        done = run_copy(package, *words)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith(f"pario {words[0]}: ")
        assert done.stderr.endswith(" (pario doctor explains it)\n")
        assert done.stderr.count("\n") == 1


def test_the_required_packages_are_the_dependencies(
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    names = [re.match(r"[\w-]+", text)[0] for text in project["project"]["dependencies"]]
    assert list(installation.REQUIRED) == names
    assert "required" not in explain(capsys)


def test_the_origin_is_a_path_without_escapes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {
        "INSTALLER": "pip\n",
        "WHEEL": "Tag: cp312-abi3-manylinux_2_28_x86_64\n",
        "direct_url.json": '{"url": "file:///dist/pario-0.1%2Bgabc.whl"}',
    }
    place = tmp_path / "pario-0.1.dist-info"
    place.mkdir()
    for name, text in files.items():
        (place / name).write_text(text)
    found = metadata.PathDistribution(place)
    monkeypatch.setattr(installation.metadata, "distribution", lambda name: found)
    expected = "wheel cp312-abi3-manylinux_2_28_x86_64 of /dist/pario-0.1+gabc.whl by pip"
    assert installation.describe_origin() == expected


def test_a_limit_of_the_file_size_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1000, 1000))
    facts = list(installation._describe_limits())
    assert facts[1] == Fact(
        "file size",
        "1,000 bytes (ulimit -f)",
        "logs and outputs end there: ulimit -f unlimited",
    )


def test_no_message_recommends_an_extra_of_pario() -> None:
    """Nothing knows how a copy was installed; the name of the missing package is always right."""
    sources = Path(installation.__file__).parents[2].rglob("*.py")
    assert not [str(path) for path in sources if "pario[" in path.read_text(encoding="utf-8")]


def test_the_blocks_of_the_node_are_shown_with_their_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.block").write_bytes(bytes(3_000_000))
    monkeypatch.setenv("PARIO_BLOCK_CACHE", f"{tmp_path}:2G")
    (fact,) = installation._describe_blocks()
    assert fact == Fact("blocks", f"3.00 MB of 2.15 GB of objects in {tmp_path}")
    monkeypatch.setenv("PARIO_BLOCK_CACHE", f"{tmp_path}:20X")
    (fact,) = installation._describe_blocks()
    assert f"PARIO_BLOCK_CACHE {tmp_path}:20X: EINVAL" in fact.problem
    assert "expected DIRECTORY or DIRECTORY:SIZE" in fact.problem
    monkeypatch.delenv("PARIO_BLOCK_CACHE")
    assert not list(installation._describe_blocks())
