"""No room for logs: the program runs as ever, and pario says what is missing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.launch.conftest import PARIO

Disk = Callable[[int], Path]
PROGRAM = ["sh", "-c", "cat /etc/hostname; exit 4"]


def pario_run(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PARIO, "run", *options, "--", *PROGRAM], cwd=place, capture_output=True, text=True, timeout=60)


def test_read_only_working_directory_is_said_before_the_run(small_disk: Disk) -> None:
    place = small_disk(100)
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    done = pario_run(place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "pario run: cannot make the log directory run.pario: Read-only file system; choose another with -o DIR\n"


def test_program_runs_where_the_disk_is_full(small_disk: Disk) -> None:
    place = small_disk(64)
    (place / "fill").write_bytes(bytes(60 * 1024))
    done = pario_run(place)
    assert (done.returncode, done.stdout) == (4, Path("/etc/hostname").read_text())
    assert "no trace: no room in" in done.stderr and "No space left on device" in done.stderr
    assert "nothing was recorded" in done.stderr
    assert not list((place / "run.pario").glob("*.tmp"))


def test_report_is_shown_where_there_is_room_for_logs_but_not_for_html(small_disk: Disk) -> None:
    place = small_disk(64)
    (place / "fill").write_bytes(bytes(60 * 1024))
    done = pario_run(place, "-o", str(place.parent / "logs"), "--html", "report.html")
    assert (done.returncode, done.stdout) == (4, Path("/etc/hostname").read_text())
    assert "exit status 4" in done.stderr
    assert "cannot write the HTML report report.html: No space left on device" in done.stderr
