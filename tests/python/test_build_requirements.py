"""A build that lacks a requirement ends with one sentence that names the remedy."""

from __future__ import annotations

import os
import re
import shutil
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
