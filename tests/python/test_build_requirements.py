"""A build that lacks a requirement ends with one sentence that names the remedy."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
CMAKE = shutil.which("cmake")
pytestmark = pytest.mark.skipif(CMAKE is None, reason="cmake is not installed")


def configure(*options: str, **variables: str) -> str:
    """Runs CMake, which must fail; returns the lines of pario's message as one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    done = run_command([str(CMAKE), *options], env=kept | variables)
    assert done.returncode != 0
    found = re.search(r"^  (pario: .*?)\n\n", done.stderr, re.DOTALL | re.MULTILINE)
    assert found, done.stderr
    return re.sub(r"\s+", " ", found[1]).partition(" Call Stack")[0]


def test_without_a_compiler_the_remedy_is_a_compiler_or_a_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    message = configure("-S", str(ROOT), "-B", str(tmp_path / "build"), PATH=str(folder))
    assert message.startswith("pario: there is no C++ compiler: install g++ 11 or later")
    assert message.endswith("or install a wheel, which needs no compiler (docs/install.md)")


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"CC": "gcc", "CXX": "g++ -pthread"}, "compiler g++, which CXX names"),  # as pip sets them
        ({"CC": "gcc -pthread"}, "compiler gcc, which CC names"),
        ({"CXX": "/absent/c++"}, "compiler /absent/c++, which CXX names"),
        ({"CC": "", "CXX": ""}, "C++ compiler"),
    ],
)
def test_without_the_compiler_that_a_variable_names_the_remedy_is_the_same(
    tmp_path: Path, variables: dict[str, str], named: str
) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    words = ("-S", str(ROOT), "-B", str(tmp_path / "build"))
    message = configure(*words, PATH=str(folder), **variables)
    assert message.startswith(f"pario: there is no {named}: install g++ 11 or later")
    assert message.endswith("or install a wheel, which needs no compiler (docs/install.md)")


@pytest.mark.parametrize(("compiler", "version"), [("GNU", "9.4.0"), ("Clang", "14.0.6")])
def test_an_old_compiler_is_named_with_its_version(compiler: str, version: str) -> None:
    message = configure(
        *(f"-DID={compiler}", f"-DVERSION={version}", "-DPYTHON=TRUE"),
        *("-P", str(ROOT / "cmake/requirements.cmake")),
    )
    assert message.startswith(f"pario: {compiler} {version} is too old for C++20: install g++ 11")


def test_without_headers_of_python_the_remedy_is_their_package() -> None:
    message = configure(
        *("-DID=GNU", "-DVERSION=12.2.0", "-DPYTHON=FALSE"),
        *("-P", str(ROOT / "cmake/requirements.cmake")),
    )
    assert "there is no Python 3.11 or later with headers" in message
    assert "apt-get install python3-dev" in message


@pytest.mark.parametrize("version", [(3, 8), (3, 10)])
def test_an_old_python_is_named_by_the_build_with_a_newer_one(version: tuple[int, int]) -> None:
    """pip imports the backend after it has installed the requirements, of which none but pip itself
    is for an old Python."""
    program = f"import sys; sys.version_info = {version}; import pario_backend"
    done = run_command([sys.executable, "-c", program], cwd=ROOT / "tools/backend")
    assert done.returncode == 1
    assert done.stderr == (
        f"pario needs Python 3.11 or later, this is 3.{version[1]}: run pip of a newer one, for"
        " example python3.11 -m pip install .\n"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["build-system"]["requires"]
    assert [one for one in needed if "; python_version >= '3.11'" not in one] == ["pip"]


def test_the_backend_has_the_hooks_of_scikit_build_core() -> None:
    backend = pytest.importorskip("scikit_build_core.build", reason="it is not installed")
    program = "import pario_backend; print(*sorted(vars(pario_backend)))"
    done = run_command([sys.executable, "-c", program], cwd=ROOT / "tools/backend", status=0)
    assert set(backend.__all__) <= set(done.stdout.split())


@pytest.mark.parametrize("variable", ["PEP517_BACKEND_PATH", "_PYPROJECT_HOOKS_BACKEND_PATH"])
def test_other_builds_inside_a_build_use_their_own_backends(variable: str) -> None:
    pytest.importorskip("scikit_build_core", reason="it is not installed")
    program = f"import os, pario_backend; print({variable!r} in os.environ)"
    done = run_command(
        [sys.executable, "-c", program],
        cwd=ROOT / "tools/backend",
        env=os.environ | {variable: str(ROOT / "tools/backend")},
        status=0,
    )
    assert done.stdout == "False\n"


def test_the_set_up_names_an_old_python(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.1 || exit 1\n'
    )
    (tmp_path / "python3").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", ROOT / "tools/setup.sh", tmp_path / "venv", "build"]
    done = run_command(command, cwd=ROOT, env=environment)
    assert done.returncode == 1
    assert "setup: Python 3.9.1 is too old for pario, which needs 3.11 or later" in done.stderr
    assert not (tmp_path / "venv").exists()
