"""Full disks under ``pario run``: the program runs as without pario, which reports the missing
logs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launch.conftest import PARIO
from tests.support.commands import run_command

Disk = Callable[[int], Path]
PROGRAM = ["sh", "-c", "cat /etc/hostname; exit 4"]


def pario_run(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_command([*PARIO, "run", *options, "--", *PROGRAM], cwd=place)


def test_read_only_working_directory_is_reported_before_the_run(small_disk: Disk) -> None:
    place = small_disk(100)
    run_command(["mount", "-o", "remount,ro", str(place)], status=0)
    done = pario_run(place)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "pario run: cannot make the log directory run.pario: Read-only file system; choose"
        " another with -o DIR\n"
    )


def test_program_runs_where_the_disk_is_full(small_disk: Disk) -> None:
    place = small_disk(64)
    (place / "fill").write_bytes(bytes(60 * 1024))
    done = pario_run(place)
    assert (done.returncode, done.stdout) == (4, Path("/etc/hostname").read_text())
    assert "no trace: cannot write to" in done.stderr and "No space left on device" in done.stderr
    assert "nothing was recorded" in done.stderr
    assert not list((place / "run.pario").glob("*.tmp"))


def test_a_limit_of_the_size_of_files_is_named(tmp_path: Path) -> None:
    limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *PARIO, "run", "-o", "log", *PROGRAM]
    done = run_command(limited, cwd=tmp_path)
    assert done.stdout == Path("/etc/hostname").read_text()
    assert f"pario: no trace: cannot write to {tmp_path}/log: File too large\n" in done.stderr


@pytest.mark.system
def test_a_replay_on_a_full_disk_names_the_write_error_and_removes_its_files(
    small_disk: Disk, tmp_path: Path
) -> None:
    record = [
        *PARIO,
        "run",
        "--no-report",
        "-o",
        "log",
        "--",
        "dd",
        "if=/dev/zero",
        "of=out",
        "bs=1k",
        "count=200",
    ]
    run_command(record, cwd=tmp_path, status=0)
    place = small_disk(64)
    done = run_command([*PARIO, "replay", "log", "--on", str(place)], cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert (
        "1 process of the replay failed: write " in done.stderr
        and "ENOSPC" in done.stderr
        and "Traceback" not in done.stderr
    )
    assert not list(place.iterdir())


@pytest.mark.system
def test_a_missing_scratch_directory_on_a_read_only_file_system_is_reported_before_the_run(
    small_disk: Disk, tmp_path: Path
) -> None:
    place = small_disk(64)
    run_command(["mount", "-o", "remount,ro", str(place)], status=0)
    words = [*PARIO, "tune", "--on", str(place), "--", "touch", "was_run"]
    done = run_command(words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        f"pario tune: no scratch directory can be made in {place}: Read-only file system\n",
    )
    assert not (tmp_path / "was_run").exists()


@pytest.mark.system
def test_report_is_shown_if_the_disk_has_space_for_logs_but_not_for_html(small_disk: Disk) -> None:
    place = small_disk(64)
    (place / "fill").write_bytes(bytes(60 * 1024))
    done = pario_run(place, "-o", str(place.parent / "logs"), "--html", "report.html")
    assert (done.returncode, done.stdout) == (4, Path("/etc/hostname").read_text())
    assert "exit status 4" in done.stderr
    assert "cannot write the HTML report report.html: No space left on device" in done.stderr
