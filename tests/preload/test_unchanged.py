"""Ordinary programs print, write and return the same with and without the library."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Trace
from tests.support.commands import run_command

SCRIPTS = sorted((Path(__file__).parent / "programs").glob("*.sh"))
PATH = "/usr/local/bin:/usr/bin:/bin"
PIDS = re.compile(rb"(line \d+: *)\d+( )")


def prepare(folder: Path) -> None:
    (folder / "in").mkdir(parents=True)
    (folder / "in/numbers").write_text("".join(f"{i * 7919 % 10007}\n" for i in range(10000)))
    (folder / "in/words").write_text("the quick brown fox\njumps over\nthe lazy dog\n" * 3)


def outcome(script: Path, folder: Path, environment: dict[str, str]) -> tuple[object, ...]:
    """Returns the output, the status and the files of a script."""
    prepare(folder)
    environment = {**environment, "LC_ALL": "C", "HOME": str(folder), "PATH": PATH}
    done = run_command(["bash", script], cwd=folder, env=environment, text=False)
    files = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return (
        done.returncode,
        done.stdout,
        PIDS.sub(rb"\1PID\2", done.stderr.replace(str(folder).encode(), b".")),
        files,
    )


@pytest.mark.system
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_program_is_unchanged(script: Path, library: Path, tmp_path: Path) -> None:
    needed = re.match(r"# needs: (\w+)", script.read_text())
    if needed and shutil.which(needed[1], path=PATH) is None:
        pytest.skip(f"needs {needed[1]}")
    (tmp_path / "logs").mkdir()
    bare = outcome(script, tmp_path / "bare", dict(os.environ))
    tracing = {"PARIO_TRACE_DIR": str(tmp_path / "logs"), "LD_PRELOAD": str(library)}
    traced = outcome(script, tmp_path / "traced", os.environ | tracing)
    assert traced == bare
    assert list((tmp_path / "logs").iterdir())


def test_the_library_does_nothing_without_a_directory(library: Path, tmp_path: Path) -> None:
    script = Path(__file__).parent / "programs/copies.sh"
    bare = {key: value for key, value in os.environ.items() if key != "PARIO_TRACE_DIR"}
    assert outcome(script, tmp_path / "off", bare | {"LD_PRELOAD": str(library)}) == outcome(
        script, tmp_path / "bare", bare
    )


def test_other_preloaded_libraries_go_on_working(trace: Trace, library: Path, work: Path) -> None:
    folder = Path("/usr/lib/x86_64-linux-gnu")
    others = [
        path for path in (folder / "libjemalloc.so.2", folder / "libeatmydata.so") if path.exists()
    ]
    if not others:
        pytest.skip("needs jemalloc or eatmydata")
    for order in ([library, *others], [*others, library]):
        run = trace(
            "sort",
            "-n",
            "-o",
            "sorted",
            stdin="3\n1\n2\n",
            env={"LD_PRELOAD": ":".join(map(str, order))},
        )
        assert run.status == 0
        assert (work / "sorted").read_text() == "1\n2\n3\n"
        assert run.counts(work / "sorted", "stdio")["bytes_written"] == 6


def test_a_tool_built_as_darshan_is_counts_the_same_beside_pario(
    trace: Trace, build: Compile, library: Path, work: Path
) -> None:
    tool = build("tool.c", "-O1", "-shared", "-fPIC")
    for order in ([library, tool], [tool, library]):
        log = work / "tool.log"
        log.unlink(missing_ok=True)
        preloaded = {"LD_PRELOAD": ":".join(map(str, order)), "TOOL_LOG": str(log)}
        run = trace(build("stdio.c"), "blocks", env=preloaded)
        assert run.status == 0
        assert log.read_text() == "0 writes of 0 bytes, 0 closes, 100 items\n"
        assert run.counts(work / "blocks", "stdio")["bytes_written"] == 1039
        run = trace(build("ends.c"), "return", 7, env=preloaded)
        assert run.status == 7
        assert log.read_text() == "1000 writes of 10000 bytes, 0 closes, 0 items\n"
        assert run.counts(work / "ends")["writes"] == 1000
