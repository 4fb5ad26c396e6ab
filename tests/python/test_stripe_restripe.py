"""Files move to other stripes completely or not at all. These tests have no stripes: the function
that creates the copy is passed in."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pario.errors import ParioError
from pario.fix.stripe.layout import Part, Stripes, Wanted, stripes_of
from pario.fix.stripe.restripe import Places, discard, restripe
from tests.support.commands import start_command

MIB = 1 << 20
WANTED = Wanted((Part(count=4),))
TIMES = (10**18 + 5, 10**18 + 123_456_789)
DATA = random.Random(1).randbytes(3 * MIB + 12345)


def plain(copy: Path, wanted: Wanted) -> Stripes:
    """Creates a new file without stripes."""
    copy.touch(mode=0o600)
    return stripes_of(copy)


def move(path: Path, **options: Any) -> Any:
    return restripe(path, WANTED, create=plain, **({"leg": MIB} | options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "data"
    file.write_bytes(DATA)
    file.chmod(0o4640)
    with suppress(OSError):
        os.setxattr(file, "user.note", b"kept")
    os.utime(file, ns=TIMES)
    return file


def facts(path: Path) -> tuple[object, ...]:
    told = path.stat()
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return (
        path.read_bytes(),
        stat.S_IMODE(told.st_mode),
        told.st_uid,
        told.st_gid,
        told.st_mtime_ns,
        attributes,
        told.st_nlink,
    )


def other_files(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


def test_the_copy_equals_the_file(path: Path) -> None:
    before, inode = facts(path), path.stat().st_ino
    outcome = move(path)
    assert outcome.moved and outcome.resumed == 0
    assert facts(path) == before and path.stat().st_ino != inode
    assert other_files(path) == []


def test_a_link_to_the_file_stays_one(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to("data")
    move(link)
    assert link.is_symlink() and path.read_bytes() == DATA


def test_holes_stay_holes(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.seek(40 * MIB)
        file.write(b"in the middle")
        file.truncate(100 * MIB)
    blocks, data = path.stat().st_blocks, path.read_bytes()
    move(path, leg=30 * MIB)
    assert path.read_bytes() == data
    assert path.stat().st_blocks <= max(blocks, 64)


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 8 * MIB + 1])
def test_sizes(size: int, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes((DATA * 3)[:size])
    move(path, leg=1 << 30, threads=3)
    assert path.read_bytes() == (DATA * 3)[:size]


def test_progress_ends_with_all(path: Path) -> None:
    shown: list[tuple[int, int]] = []
    move(path, show=lambda done, whole: shown.append((done, whole)))
    assert shown == sorted(shown) and shown[-1] == (len(DATA), len(DATA))


def interrupt_move(path: Path, at: int) -> None:
    def show(done: int, whole: int) -> None:
        if done >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(path, show=show)


def test_an_interrupted_copy_is_continued(path: Path) -> None:
    before = facts(path)
    interrupt_move(path, 2 * MIB + 1)
    assert facts(path) == before and other_files(path) == [
        ".data.restriping",
        ".data.restriping.state",
    ]
    assert move(path).resumed == 2 * MIB
    assert facts(path) == before and other_files(path) == []


def test_an_interrupted_copy_restarts_if_the_file_has_changed(path: Path) -> None:
    interrupt_move(path, 2 * MIB + 1)
    path.write_bytes(DATA[::-1])
    assert move(path).resumed == 0
    assert path.read_bytes() == DATA[::-1]


def test_an_interrupted_copy_restarts_for_other_stripes(path: Path) -> None:
    interrupt_move(path, 2 * MIB + 1)
    assert restripe(path, Wanted((Part(count=5),)), create=plain).resumed == 0
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("note", ["", "{", "[]", '{"version": 2}', json.dumps({"done": 1 << 40})])
def test_an_unreadable_note_is_ignored(path: Path, note: str) -> None:
    interrupt_move(path, 2 * MIB + 1)
    Places(path).state.write_text(note)
    assert move(path).resumed == 0
    assert path.read_bytes() == DATA


def test_an_interrupted_copy_can_be_discarded(path: Path) -> None:
    assert not discard(path)
    interrupt_move(path, 2 * MIB + 1)
    assert discard(path)
    assert other_files(path) == [] and path.read_bytes() == DATA


def test_a_file_open_for_writing_is_left_alone(path: Path) -> None:
    with path.open("r+b"), pytest.raises(ParioError, match="open for writing"):
        move(path)
    assert other_files(path) == [] and path.read_bytes() == DATA


def test_an_open_for_writing_during_the_copy_is_detected(path: Path) -> None:
    def open_for_writing(done: int, whole: int) -> None:
        with suppress(BlockingIOError):  # other opens block until the copy is abandoned
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    inode = path.stat().st_ino
    with pytest.raises(ParioError, match="was opened for writing"):
        move(path, show=open_for_writing)
    assert path.stat().st_ino == inode and other_files(path) == []


def error_in_thread(work: Callable[[], object]) -> str:
    """Returns the error that ``work`` raises in a thread, where leases do not exist."""
    raised: list[str] = []

    def body() -> None:
        try:
            work()
        except ParioError as error:
            raised.append(str(error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return raised[0] if raised else ""


def test_without_leases_changes_are_detected(path: Path) -> None:
    def change(done: int, whole: int) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    assert "was changed" in error_in_thread(lambda: move(path, show=change))
    assert path.read_bytes().startswith(DATA + b"more") and other_files(path) == []


def test_without_leases_even_a_change_at_the_last_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_and_change(*names: Any) -> None:
        link(*names)
        with path.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(os, "link", link_and_change)
    assert "was changed" in error_in_thread(lambda: move(path))
    assert path.read_bytes() == DATA + b"more" and other_files(path) == []


def test_two_at_a_time_are_one_too_many(path: Path) -> None:
    said: list[str] = []
    move(path, show=lambda done, whole: said.append(error_in_thread(lambda: move(path))))
    assert all("another process" in text for text in said) and said
    assert path.read_bytes() == DATA and other_files(path) == []


def test_hard_links_would_come_apart(path: Path) -> None:
    path.with_name("second").hardlink_to(path)
    with pytest.raises(ParioError, match="2 names"):
        move(path)
    assert other_files(path) == ["second"]


def test_directories_have_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(ParioError, match="is no file"):
        move(tmp_path)


def test_a_failed_copy_leaves_no_file(path: Path) -> None:
    with pytest.raises(ParioError, match="no stripes that can be set"):
        restripe(path, WANTED)
    assert other_files(path) == [] and path.read_bytes() == DATA


def test_a_full_disk_leaves_no_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(ParioError, match="No space left"):
        move(path)
    assert other_files(path) == [] and path.read_bytes() == DATA


CALLS = (
    "open close pwrite ftruncate fdatasync fsync link unlink rename fchown fchmod setxattr utime"
).split()


def kill_at_call(number: int, work: Callable[[], object]) -> bool:
    """Runs ``work`` in a child that is killed before the given call of CALLS; False if it made
    fewer."""
    child = os.fork()
    if child == 0:
        left = [number]
        for name in CALLS:
            real = getattr(os, name)

            def count_call(*arguments: Any, _real: Any = real, **words: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return _real(*arguments, **words)

            setattr(os, name, count_call)
        with suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.system
@pytest.mark.parametrize("again", [False, True], ids=["first", "resumed"])
def test_a_kill_before_any_call_loses_no_data(path: Path, record_count: Any, again: bool) -> None:
    before = facts(path)
    for number in range(1000):
        if again:
            interrupt_move(path, MIB + 1)
        if not kill_at_call(number, lambda: move(path, threads=1)):
            break
        left = facts(path)
        assert left[:-1] == before[:-1] and left[-1] in (1, 2)
        move(path)
        assert facts(path) == before and other_files(path) == []
    assert number > 20
    record_count("kills", number)
    assert facts(path) == before


CHILD = """
import sys
from tests.python.test_stripe_restripe import move
from pathlib import Path
print("go", flush=True)
move(Path(sys.argv[1]))
"""


@pytest.mark.exhaustive
def test_a_kill_at_any_moment_loses_no_data(tmp_path: Path, record_count: Any) -> None:
    record_count("kills", 30)
    path, moments = tmp_path / "data", random.Random()
    path.write_bytes(DATA * 20)
    for _ in range(30):
        root = Path(__file__).parents[2]
        command = [sys.executable, "-c", CHILD, path]
        with start_command(command, stdout=subprocess.PIPE, cwd=root) as child:
            assert child.stdout is not None and child.stdout.readline() == "go\n"
            time.sleep(moments.uniform(0, 0.3))  # the kill may come at any moment
        assert path.read_bytes() == DATA * 20
    move(path)
    assert path.read_bytes() == DATA * 20 and other_files(path) == []
