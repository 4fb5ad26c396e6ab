"""Messages of ``pario report`` about unusable logs and targets: one line, exit status 2."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command

PARIO = [sys.executable, "-m", "pario"]
_VERSION_AT = 6  # in a block's header


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a small program under ``pario run`` and returns its log directory."""
    place = tmp_path_factory.mktemp("run")
    run_command(
        [*PARIO, "run", "--no-report", "-o", "run.pario", "--", "cat", "/etc/hostname"],
        cwd=place,
        status=0,
    )
    return place / "run.pario"


def log_of(run: Path) -> bytes:
    return next(run.glob("*.plog")).read_bytes()


def report(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command([*PARIO, "report", *arguments], cwd=place)


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("pario report: ")
    assert all(word in done.stderr for word in words), done.stderr


@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.plog", lambda log: log[:3000], "process died while it started"),
        (
            "newer.plog",
            lambda log: log[:_VERSION_AT] + b"\x09" + log[_VERSION_AT + 1 :],
            "format version 9; expected",
        ),
        ("empty.plog", lambda log: b"", "an empty file"),
        ("zeros.plog", lambda log: bytes(5000), "begins with 00000000"),
        ("strace.out", lambda log: b"openat(AT_FDCWD) = 3\n" * 100, "expected a Darshan log"),
        ("old.darshan", lambda log: b"\x1f\x8b" + bytes(500), "perhaps a log of Darshan 2"),
    ],
)
def test_file_that_is_no_usable_log_is_refused(
    run: Path, tmp_path: Path, name: str, content: object, words: str
) -> None:
    (tmp_path / name).write_bytes(content(log_of(run)))  # type: ignore[operator]
    assert_refused(report(tmp_path, name), name, words)


@pytest.mark.system
def test_log_that_lost_its_end_is_reported_with_a_message(run: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.plog").write_bytes(log_of(run)[:300_000])
    assert report(tmp_path, "cut.plog").returncode == 0


@pytest.mark.system
def test_missing_file_and_empty_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_refused(report(tmp_path, "none.pario"), "none.pario: no such file or directory")
    assert_refused(report(tmp_path, "empty"), "empty: a directory without logs")


@pytest.mark.system
def test_logs_of_two_tools_or_two_runs_are_refused(run: Path, tmp_path: Path) -> None:
    other = next(Path(str(pytest.importorskip("darshan").__file__)).parent.rglob("*.darshan"))
    assert_refused(report(tmp_path, str(run), str(other)), str(other.name), "another tool")
    run_command(
        [*PARIO, "run", "--no-report", "-o", "second", "--", "cat", "/dev/null"],
        cwd=tmp_path,
        status=0,
    )
    assert_refused(report(tmp_path, str(run), "second"), "another run")


@pytest.mark.system
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv"
)
def test_log_of_another_user_is_refused(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "private.plog"
    path.write_bytes(log_of(run))
    path.chmod(0o600)
    for folder in (
        folder
        for folder in [tmp_path, *tmp_path.parents]
        if folder.name.startswith(("test_", "popen-", "pytest-"))
    ):
        folder.chmod(0o755)
    words = ["setpriv", "--reuid=65534", "--clear-groups", *PARIO, "report", str(path)]
    assert_refused(run_command(words, cwd="/"), "private.plog: permission denied")


@pytest.mark.system
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("none/report.html", "No such file or directory"),
        ("/dev/full", "No space left on device"),
        (".", "Is a directory"),
    ],
)
def test_an_html_write_error_is_printed_after_the_report(
    run: Path, tmp_path: Path, target: str, reason: str
) -> None:
    done = report(tmp_path, str(run), "--html", target)
    assert_refused(done, "cannot write the HTML report", target, reason)
    assert "cat /etc/hostname" in done.stdout


@pytest.mark.parametrize("command", ["report RUN", "compare RUN RUN", "survey RUN"])
@pytest.mark.system
def test_a_reader_that_has_enough_is_no_error(run: Path, command: str) -> None:
    """As of ``pario report ... | head``: the status 1 is that of --fail-above."""
    unread, output = os.pipe()
    os.close(unread)
    words = command.replace("RUN", str(run)).split()
    try:
        done = subprocess.run([*PARIO, *words], stdout=output, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(output)
    assert (done.returncode, done.stderr) == (0, "")
