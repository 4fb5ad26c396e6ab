"""With the setting, programs see the bytes of files whose subfiles are not joined."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Trace
from tests.support.commands import run_command
from tests.support.subfiles import write_subfiles

UNIT, FILES = 4096, 3
DATA = "".join(f"{number:>7}\n" for number in range(10_123))
WAYS = ["read", "pread", "mmap", "sendfile", "inherited", "fopen", "freopen"]


@pytest.fixture(autouse=True)
def show_subfiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARIO_SUBFILES", "yes")


@pytest.fixture
def subfiled(tmp_path: Path) -> Path:
    """A file as pario's MPI-IO writes it with three subfiles."""
    path = tmp_path / "data.txt"
    write_subfiles(path, DATA.encode(), UNIT, FILES)
    return path


@pytest.mark.parametrize("way", WAYS)
def test_a_program_reads_all_bytes(
    way: str, subfiled: Path, trace: Trace, build: Compile, work: Path
) -> None:
    run = trace(build("joined.c"), subfiled, way, wrap="> out")
    assert run.stderr == f"stat {len(DATA)}\nend {len(DATA)}\n"
    assert run.status == 0
    assert (work / "out").read_text() == DATA


def test_the_file_and_its_directory_stay_as_they_are(
    subfiled: Path, trace: Trace, build: Compile
) -> None:
    before = sorted(subfiled.parent.rglob("*"))
    trace(build("joined.c"), subfiled, "read")
    after = [path for path in sorted(subfiled.parent.rglob("*")) if "log" not in str(path)]
    assert [path for path in after if "work" not in str(path)] == [
        path for path in before if "work" not in str(path)
    ]
    assert subfiled.stat().st_size == 0


def test_ordinary_programs_copy_the_file(subfiled: Path, trace: Trace, work: Path) -> None:
    (work / "link").symlink_to(subfiled)
    for command in (["cp", "link", "copy"], ["sh", "-c", "cat < link > copy"]):
        run = trace(*command)
        assert (run.status, run.stderr) == (0, "")
        assert (work / "copy").read_text() == DATA
        (work / "copy").unlink()
    assert trace("stat", "-L", "-c", "%s", "link").stdout == f"{len(DATA)}\n"
    assert trace("sh", "-c", "test -s link").status == 0


def test_python_sees_the_size_and_the_bytes(subfiled: Path, trace: Trace) -> None:
    script = (
        "import os, sys; path = sys.argv[1];"
        "text = open(path).read(); print(len(text), os.path.getsize(path), text[-8:].strip())"
    )
    run = trace(sys.executable, "-c", script, subfiled)
    assert run.stdout.split() == [str(len(DATA)), str(len(DATA)), "10122"]


@pytest.mark.system
def test_forks_while_another_thread_asks_for_facts_end(
    subfiled: Path, trace: Trace, build: Compile
) -> None:
    run = trace(build("unnamed.c"), subfiled)
    assert (run.status, run.stderr) == (0, "")


def test_a_file_that_is_opened_to_write_is_not_served(subfiled: Path, trace: Trace) -> None:
    script = "import os, sys; print(os.fstat(os.open(sys.argv[1], os.O_RDWR)).st_size)"
    assert trace(sys.executable, "-c", script, subfiled).stdout == "0\n"


def test_an_empty_file_without_subfiles_stays_empty(trace: Trace, work: Path) -> None:
    (work / "empty").touch()
    assert trace("cat", "empty").stdout == ""
    assert trace("stat", "-c", "%s", "empty").stdout == "0\n"


def test_without_the_setting_the_file_is_empty(
    subfiled: Path, trace: Trace, build: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PARIO_SUBFILES")
    run = trace(build("joined.c"), subfiled, "read", env={"PARIO_MPIIO": "yes"})
    assert (run.stdout, run.stderr) == ("", "stat 0\nend 0\n")


def test_a_program_without_a_log_reads_all_bytes(subfiled: Path, library: Path) -> None:
    done = run_command(["cat", subfiled], env=os.environ | {"LD_PRELOAD": str(library)})
    assert done.stdout == DATA


def test_no_copy_is_an_error_of_the_opening(subfiled: Path, trace: Trace) -> None:
    part = subfiled.with_name("data.txt.subfiles") / "1"
    part.unlink()
    part.mkdir()
    run = trace("cat", subfiled)
    assert (run.status, run.stdout) == (1, "")
    assert "directory" in run.stderr
