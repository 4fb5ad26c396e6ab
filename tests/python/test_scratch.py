"""Temporary directories leave no files behind, also after signals and kills."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from pario.scratch import scratch
from tests.support.commands import run_command

#: Sends a signal to itself while the directory is removed; with "twice" also before.
INTERRUPTED = """\
import os, shutil, signal, sys
from pathlib import Path
from pario.scratch import scratch
place, number, when = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
signal.signal(number, signal.SIG_DFL)
remove = shutil.rmtree
def remove_slowly(path, **options):
    os.kill(os.getpid(), number)
    remove(path, **options)
shutil.rmtree = remove_slowly
with scratch(place, "test") as root:
    (root / "file").touch()
    if when == "twice":
        os.kill(os.getpid(), number)
print("went on")
"""

KILLED = """\
import os, signal, sys
from pathlib import Path
from pario.scratch import scratch
with scratch(Path(sys.argv[1]), "test") as root:
    (root / "file").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["once", "twice"])
def test_a_signal_does_not_interrupt_the_removal(
    tmp_path: Path, number: signal.Signals, when: str
) -> None:
    words = [sys.executable, "-c", INTERRUPTED, str(tmp_path), str(int(number)), when]
    done = run_command(words)
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert not [*tmp_path.iterdir()]


@pytest.mark.system
def test_the_directory_of_a_killed_process_is_removed_by_the_next_one(tmp_path: Path) -> None:
    run_command([sys.executable, "-c", KILLED, str(tmp_path)], status=-signal.SIGKILL)
    (left,) = tmp_path.iterdir()
    own = left.name.split(".")[-2]
    other_host = left.with_name(left.name.replace(own, "0" * 16))
    other_host.mkdir()
    with scratch(tmp_path, "test") as root:
        assert not [*root.iterdir()]
    assert [*tmp_path.iterdir()] == [other_host]


def test_the_directory_of_a_living_process_is_kept(tmp_path: Path) -> None:
    with scratch(tmp_path, "test") as first, scratch(tmp_path, "test") as second:
        assert first.exists() and second != first
