"""Closed or full standard streams: programs keep their exit status, and pario reports its errors
where it still can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pario.archive import pack
from tests.python.plog import ProcessLog
from tests.python.support.surveys import write_log
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


def status_without_reader(cwd: Path, *arguments: str) -> tuple[int, str]:
    """The exit status and standard error of a command whose standard output has no reader."""
    unread, output = os.pipe()
    os.close(unread)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pario", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
        )
    finally:
        os.close(output)
    return done.returncode, done.stderr


@pytest.mark.system
@pytest.mark.parametrize("command", ["report", "survey"])
def test_findings_above_the_limit_keep_their_status_without_a_reader(
    tmp_path: Path, command: str
) -> None:
    write_log(tmp_path / "a.darshan", 1, 4.0)
    status, error = status_without_reader(tmp_path, command, "a.darshan", "--fail-above", "10%")
    assert (status, error.count("\n")) == (3, 1), error
    assert error.startswith(f"pario {command}: the findings ")


@pytest.mark.system
def test_different_outputs_keep_their_status_without_a_reader(tmp_path: Path) -> None:
    for name in ("a", "b"):
        program = f"$PARIO run -o {name} --verify out -- sh -c 'echo {name} >out'"
        assert shell(program, tmp_path).returncode == 0
    assert status_without_reader(tmp_path, "compare", "a", "b", "--verify", "*") == (1, "")


@pytest.mark.system
def test_a_long_listing_without_a_reader_still_verifies_the_archive(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number in range(200):
        (files / f"{number:0100d}").touch()
    pack(files, tmp_path / "files.pack")
    (tmp_path / "files.pack" / "00000.tar.zst").unlink()
    status, error = status_without_reader(tmp_path, "ls", "files.pack")
    assert (status, error.count("\n")) == (1, 1), error
    assert "not verified" in error


@pytest.mark.system
def test_damaged_records_keep_their_status_without_a_reader(tmp_path: Path) -> None:
    make = "mkdir lines; seq 3000 >lines/all; $PARIO records pack lines -o lines.prec"
    assert shell(make, tmp_path).returncode == 0
    packed = tmp_path / "lines.prec"
    damaged = bytearray(packed.read_bytes())
    damaged[100] ^= 1
    packed.write_bytes(damaged)
    assert status_without_reader(tmp_path, "records", "verify", *["lines.prec"] * 300) == (1, "")
