"""Closed or full standard streams: programs keep their exit status, and pario reports its errors
where it still can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.plog import ProcessLog
from tests.support.commands import run_command


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``$PARIO`` is the command."""
    command = f"{sys.executable} -m pario"
    return run_command(["sh", "-c", script.replace("$PARIO", command)], cwd=cwd)


@pytest.mark.system
@pytest.mark.parametrize("broken", ["2>/dev/full", "2>&-", ">&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize(("program", "status"), [("exit 5", 5), ("kill -TERM $$", 128 + 15)])
def test_a_run_with_closed_output_ends_like_the_program(
    tmp_path: Path, broken: str, program: str, status: int
) -> None:
    done = shell(f"$PARIO run -- sh -c 'echo ran >ran; {program}' {broken}; exit $?", tmp_path)
    assert (done.returncode, (tmp_path / "ran").read_text()) == (status, "ran\n")
    assert "Traceback" not in done.stderr


def test_a_warning_that_cannot_be_printed_does_not_stop_the_program(tmp_path: Path) -> None:
    run_command(
        ["cc", "-static", "-o", "still", "-xc", "-"],
        input="int main(void) { return 7; }",
        cwd=tmp_path,
        status=0,
    )
    assert shell("$PARIO run -- ./still 2>/dev/full", tmp_path).returncode == 7


def test_a_full_device_under_standard_output_is_reported(tmp_path: Path) -> None:
    ProcessLog(records=[{"path": "/a"}]).write(tmp_path)
    done = shell("$PARIO report . >/dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "pario report: standard output: No space left on device\n",
    )


def test_an_error_of_the_system_names_the_file_and_the_reason(tmp_path: Path) -> None:
    note = tmp_path / "packed" / ".pario-subdirs"
    note.mkdir(parents=True)
    done = shell("$PARIO unpack packed -o out", tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "pario unpack: packed/.pario-subdirs: Is a directory\n",
    )
