"""Commands other than plain programs: shell commands, scripts, static and set-user-ID programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.conftest import PARIO
from tests.support.commands import run_command


def pario_run(place: Path, *command: str, input: str = "") -> subprocess.CompletedProcess[str]:
    return run_command([*PARIO, "run", "--", *command], cwd=place, input=input)


@pytest.mark.system
def test_shell_command_is_traced_with_its_children(tmp_path: Path) -> None:
    done = pario_run(
        tmp_path, "bash", "-c", "cat > copy; cat copy copy | wc -l", input="line\n" * 1000
    )
    assert (done.stdout.strip(), done.returncode) == ("2000", 0)
    assert len(list((tmp_path / "run.pario").glob("*.plog"))) >= 3
    assert "HTML report:" in done.stderr


@pytest.mark.system
def test_pario_run_inside_pario_run_has_logs_of_its_own(tmp_path: Path) -> None:
    done = pario_run(tmp_path, *PARIO, "run", "-o", "inner", "--", "cat", "/etc/hostname")
    assert (done.stdout, done.returncode) == (Path("/etc/hostname").read_text(), 0)
    assert done.stderr.count("HTML report:") == 2
    assert len(list((tmp_path / "inner").glob("*.plog"))) == 1


def test_static_program_runs_and_is_reported_as_not_traced(tmp_path: Path) -> None:
    (tmp_path / "hello.c").write_text(
        '#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n'
    )
    built = run_command(["gcc", "-static", "hello.c", "-o", "hello"], cwd=tmp_path)
    if built.returncode:
        pytest.skip("needs gcc and a static C library")
    done = pario_run(tmp_path, "./hello")
    assert (done.stdout, done.returncode) == ("hello\n", 3)
    assert "hello is statically linked" in done.stderr and "nothing was recorded" in done.stderr
    assert " and wrote 6 B" in done.stderr  # by the kernel's counters


@pytest.mark.system
def test_set_user_id_program_is_reported_as_not_traced(tmp_path: Path) -> None:
    shutil.copy("/bin/cat", tmp_path / "mycat")
    (tmp_path / "mycat").chmod(0o4755)
    done = pario_run(tmp_path, "./mycat", input="text")
    assert (done.stdout, done.returncode) == ("text", 0)
    assert "mycat is set-user-ID" in done.stderr


@pytest.mark.system
def test_buffered_bytes_of_a_killed_program_are_in_the_file(tmp_path: Path) -> None:
    script = (
        "import os\nout = open('out.dat', 'wb', 0)\nfor i in range(1000): out.write(b'%9d\\n' %"
        " i)\nos.kill(os.getpid(), 9)"
    )
    environment = os.environ | {"PARIO_STREAMS": "*.dat:size=1M:survive"}
    command = [*PARIO, "run", "--no-report", "--", sys.executable, "-c", script]
    done = run_command(command, cwd=tmp_path, env=environment)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "out.dat").read_bytes() == b"".join(b"%9d\n" % i for i in range(1000))
    assert "10000 bytes that it had buffered" in done.stderr


@pytest.mark.system
def test_workers_of_a_pool_leave_no_note_on_their_end(tmp_path: Path) -> None:
    """Pool.terminate() ends workers by SIGTERM; Process.run() ends by os._exit."""
    (tmp_path / "pool.py").write_text(
        "import multiprocessing\n"
        "def work(number):\n"
        "    with open(f'out.{number}', 'wb') as out: out.write(bytes(100))\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('fork')\n"
        "    with multiprocessing.Pool(2) as pool: pool.map(work, range(8))\n"
        "    one = multiprocessing.Process(target=work, args=(9,))\n"
        "    one.start(); one.join()\n"
    )
    result = pario_run(tmp_path, sys.executable, "pool.py")
    assert "no end is known" not in result.stderr
    assert len(list(tmp_path.glob("out.*"))) == 9
