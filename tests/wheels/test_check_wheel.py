"""The checks of wheels that need no wheel."""

from __future__ import annotations

import re
import shutil
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest
from tools import build_wheels
from tools.check_wheel import GLIBC, find_defects, find_library_defects
from tools.interpreters import find_interpreters, has_headers

from tests.library import need_library
from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
pytest.importorskip("elftools", reason="pyelftools is not installed")


def compile_library(folder: Path, source: str, *options: str) -> bytes:
    """A shared library made of C."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (folder / "a.c").write_text(source)
    command = ["cc", "-shared", "-fPIC", "-nodefaultlibs", folder / "a.c", *options, "-lc"]
    run_command([*command, "-o", folder / "a.so"], status=0)
    return (folder / "a.so").read_bytes()


def test_a_library_that_needs_an_old_glibc_has_no_defects(tmp_path: Path) -> None:
    library = compile_library(
        tmp_path, '#include <unistd.h>\nint write_one(void) { return write(1, "", 1); }'
    )
    assert list(find_library_defects(library)) == []


def test_symbols_that_are_newer_than_the_promised_glibc_are_defects(tmp_path: Path) -> None:
    source = "unsigned arc4random(void);\nunsigned draw(void) { return arc4random(); }"
    assert list(find_library_defects(compile_library(tmp_path, source))) == [
        "needs arc4random of GLIBC_2.36; expected: 2.28 or older"
    ]


def test_undefined_symbols_without_a_version_are_defects_unless_weak(tmp_path: Path) -> None:
    source = """
        int absent(void);
        int may_be_absent(void) __attribute__((weak));
        int ask(void) { return absent() + (may_be_absent ? may_be_absent() : 0); }
    """
    assert list(find_library_defects(compile_library(tmp_path, source))) == [
        "needs absent, which glibc 2.28 lacks"
    ]


def test_visible_symbols_of_the_runtime_and_libraries_of_the_host_are_defects(
    tmp_path: Path,
) -> None:
    source = "int ZSTD_compress(void) { return 0; }\nint open(void) { return 0; }"
    library = compile_library(tmp_path, source, "-Wl,--no-as-needed", "-lgcc_s")
    assert list(find_library_defects(library)) == [
        "needs libgcc_s.so.1, which is no part of glibc",
        "defines ZSTD_compress; expected: a hidden symbol",
    ]


@pytest.mark.parametrize("name", ["libpario.so", "libpario-audit.so"])
def test_libraries_define_no_symbols_of_their_runtime(name: str) -> None:
    defects = find_library_defects(need_library().with_name(name).read_bytes())
    assert [text for text in defects if text.startswith("defines ")] == []


def test_a_wheel_needs_its_libraries_and_a_small_size(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pario/libpario.so.txt", bytes(7_000_000))
    assert sorted(find_defects(wheel)) == [
        "7.00 MB; at most 6 MB",
        "pario/_native: missing",
        "pario/libpario: missing",
    ]


def test_the_kinds_of_wheels_cover_the_pythons_that_pario_supports() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lowest = re.search(r'requires-python = ">=3\.(\d+)"', project)
    stable = re.search(r'wheel.py-api = "cp3(\d+)"', project)
    assert lowest and stable
    kinds = [kind for kind in build_wheels.KINDS if not kind.suffix]
    assert kinds[0].first == (3, int(lowest[1]))
    assert kinds[-1].first == (3, int(stable[1]))
    for before, after in pairwise(kinds):
        assert (before.last[0], before.last[1] + 1) == after.first


def test_a_wheel_replaces_the_earlier_ones_of_its_kind(tmp_path: Path) -> None:
    kinds = ("cp311-cp311-manylinux_2_28_x86_64", "cp312-abi3-manylinux_2_28_x86_64")
    output = tmp_path / "dist"
    output.mkdir()
    for version in ("0.1.dev9+gabc", "0.1.dev10+gdef"):
        for kind in kinds:
            wheel = tmp_path / f"pario-{version}-{kind}.whl"
            wheel.touch()
            build_wheels.keep_latest(wheel, output)
    expected = {f"pario-0.1.dev10+gdef-{kind}.whl" for kind in kinds}
    assert {path.name for path in output.iterdir()} == expected


def test_the_promised_glibc_is_the_one_of_the_documentation() -> None:
    assert f"glibc {GLIBC}" in (ROOT / "docs/install.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("suffix", "versions"), [("", {(3, 14)}), ("t", {(3, 13), (3, 14)})], ids=["", "t"]
)
def test_interpreters_with_and_without_a_global_lock_are_two_kinds(
    suffix: str, versions: set[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"python3.13t": "3 13 t", "python3.14": "3 14  ", "python3.14t": "3 14 t"}
    for name, answer in {**answers, "python3.15t": "3 15  "}.items():
        lines = "\n".join([*answer.split(" ")[:3], str(tmp_path)])
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{lines}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    found = find_interpreters(suffix)
    assert set(found) == versions
    assert found[3, 14] == tmp_path / f"python3.14{suffix}"
    assert not has_headers(found[3, 14])
    (tmp_path / "Python.h").touch()
    assert has_headers(found[3, 14])
