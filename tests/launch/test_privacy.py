"""Logs are readable by their user only and hold no more of a command than the user allows."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from tests.launch.conftest import PARIO
from tests.library import need_library
from tests.support.commands import run_command

SECRET = "password-4711"
SCRIPT = f"cat /dev/null; : {SECRET}"
#: An upper limit of the bytes that the tracer's memory may add to a core dump.
FEW_BYTES = 2 << 20


def run_pario(
    place: Path, *words: str, env: dict[str, str] | None = None, umask: int = 0o022
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | (env or {})
    return run_command([*PARIO, "run", *words], status=0, cwd=place, env=environment, umask=umask)


def modes_of(root: Path) -> dict[str, int]:
    """Returns the permissions of a directory and of all files below it, by names without their
    digits."""
    paths = [root, *root.rglob("*")]
    return {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in paths}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o177])
def test_only_the_user_may_read_the_logs(tmp_path: Path, umask: int) -> None:
    run_pario(tmp_path, "--no-report", "--", "true", umask=umask)
    modes = {".pario": 0o700, ".plog": 0o600, ".json": 0o600}
    assert modes_of(tmp_path / "run.pario") == modes


def test_directories_above_the_logs_are_as_usual(tmp_path: Path) -> None:
    run_pario(tmp_path, "--no-report", "-o", "logs/here", "--", "true", umask=0o022)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("logs", "logs/here")]
    assert modes == [0o755, 0o700]


def test_a_host_without_the_launchers_directory_makes_its_own(tmp_path: Path) -> None:
    logs = tmp_path / "new" / "run.pario"
    traced = {"LD_PRELOAD": str(need_library()), "PARIO_TRACE_DIR": str(logs)}
    run_command(["true"], status=0, env=os.environ | traced, umask=0)
    assert modes_of(logs) == {".pario": 0o700, ".plog": 0o600}


@pytest.mark.parametrize("way", ["option", "variable", "settings"])
@pytest.mark.system
def test_arguments_are_left_out_everywhere(tmp_path: Path, way: str) -> None:
    (tmp_path / "pario.toml").write_text("[run]\narguments = false\n")
    options = {"option": ["--no-arguments"], "variable": [], "settings": ["--with", "pario.toml"]}
    env = {"PARIO_TRACE_ARGUMENTS": "no"} if way == "variable" else {}
    words = [*options[way], "--json", "--html", "page.html", "--", "sh", "-c", SCRIPT]
    done = run_pario(tmp_path, *words, env=env)
    assert json.loads(done.stderr)["job"]["command"] == "sh"
    assert SECRET not in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {".plog", ".json", ".html"} <= {path.suffix for path in files}
    for path in files:
        assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.system
def test_arguments_are_kept_by_default(tmp_path: Path) -> None:
    done = run_pario(tmp_path, "--json", "--", "sh", "-c", SCRIPT)
    assert SECRET in json.loads(done.stderr)["job"]["command"]
    assert any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*.plog"))


def dumped_bytes(smaps: str) -> int:
    """Returns the bytes of private writable memory that a core dump holds."""
    total = 0
    for mapping in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", smaps)[1:]:
        permissions = mapping.split()[1]
        flags = re.search(r"(?m)^VmFlags: (.*)$", mapping)
        size = re.search(r"(?m)^Size: +(\d+) kB$", mapping)
        assert flags and size
        if permissions.startswith("rw") and "dd" not in flags[1].split():
            total += int(size[1]) << 10
    return total


def test_core_dumps_do_not_hold_the_tracers_memory(tmp_path: Path) -> None:
    look = ["cat", "/proc/self/smaps"]
    alone = run_command(look, status=0).stdout
    traced = run_pario(tmp_path, "--no-report", "--", *look).stdout
    assert "libpario.so" in traced
    assert dumped_bytes(traced) - dumped_bytes(alone) < FEW_BYTES
