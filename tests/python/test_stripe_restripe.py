"""Files move to other stripes whole, or not at all. Here without stripes: what a copy is made of is
passed in."""

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
    """A new file without stripes."""
    copy.touch(mode=0o600)
    return stripes_of(copy)


def moved(path: Path, **options: Any) -> Any:
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


def others(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


def test_the_copy_is_all_that_the_file_was(path: Path) -> None:
    before, inode = facts(path), path.stat().st_ino
    outcome = moved(path)
    assert outcome.moved and outcome.resumed == 0
    assert facts(path) == before and path.stat().st_ino != inode
    assert others(path) == []


def test_a_link_to_the_file_stays_one(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to("data")
    moved(link)
    assert link.is_symlink() and path.read_bytes() == DATA


def test_holes_stay_holes(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.seek(40 * MIB)
        file.write(b"in the middle")
        file.truncate(100 * MIB)
    blocks, data = path.stat().st_blocks, path.read_bytes()
    moved(path, leg=30 * MIB)
    assert path.read_bytes() == data
    assert path.stat().st_blocks <= max(blocks, 64)


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 8 * MIB + 1])
def test_sizes(size: int, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes((DATA * 3)[:size])
    moved(path, leg=1 << 30, threads=3)
    assert path.read_bytes() == (DATA * 3)[:size]


def test_progress_ends_with_all(path: Path) -> None:
    shown: list[tuple[int, int]] = []
    moved(path, show=lambda done, whole: shown.append((done, whole)))
    assert shown == sorted(shown) and shown[-1] == (len(DATA), len(DATA))


def interrupted(path: Path, at: int) -> None:
    def show(done: int, whole: int) -> None:
        if done >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        moved(path, show=show)


def test_an_interrupted_copy_goes_on(path: Path) -> None:
    before = facts(path)
    interrupted(path, 2 * MIB + 1)
    assert facts(path) == before and others(path) == [".data.restriping", ".data.restriping.state"]
    assert moved(path).resumed == 2 * MIB
    assert facts(path) == before and others(path) == []


def test_it_does_not_go_on_when_the_file_has_changed(path: Path) -> None:
    interrupted(path, 2 * MIB + 1)
    path.write_bytes(DATA[::-1])
    assert moved(path).resumed == 0
    assert path.read_bytes() == DATA[::-1]


def test_it_does_not_go_on_for_other_stripes(path: Path) -> None:
    interrupted(path, 2 * MIB + 1)
    assert restripe(path, Wanted((Part(count=5),)), create=plain).resumed == 0
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("note", ["", "{", "[]", '{"version": 2}', json.dumps({"done": 1 << 40})])
def test_a_note_that_cannot_be_read_is_none(path: Path, note: str) -> None:
    interrupted(path, 2 * MIB + 1)
    Places(path).state.write_text(note)
    assert moved(path).resumed == 0
    assert path.read_bytes() == DATA


def test_what_is_left_can_be_discarded(path: Path) -> None:
    assert not discard(path)
    interrupted(path, 2 * MIB + 1)
    assert discard(path)
    assert others(path) == [] and path.read_bytes() == DATA


def test_a_file_that_somebody_has_open_for_writing_is_left(path: Path) -> None:
    with path.open("r+b"), pytest.raises(ParioError, match="open for writing"):
        moved(path)
    assert others(path) == [] and path.read_bytes() == DATA


def test_who_opens_it_for_writing_meanwhile_is_noticed(path: Path) -> None:
    def opened(done: int, whole: int) -> None:
        with suppress(BlockingIOError):  # others wait until the copy has been given up
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    inode = path.stat().st_ino
    with pytest.raises(ParioError, match="was opened for writing"):
        moved(path, show=opened)
    assert path.stat().st_ino == inode and others(path) == []


def elsewhere(work: Callable[[], object]) -> str:
    """What it raises in a thread, where there are no leases."""
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


def test_without_leases_changes_are_noticed(path: Path) -> None:
    def change(done: int, whole: int) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    assert "was changed" in elsewhere(lambda: moved(path, show=change))
    assert path.read_bytes().startswith(DATA + b"more") and others(path) == []


def test_without_leases_even_a_change_at_the_last_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_and_change(*names: Any) -> None:
        link(*names)
        with path.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(os, "link", link_and_change)
    assert "was changed" in elsewhere(lambda: moved(path))
    assert path.read_bytes() == DATA + b"more" and others(path) == []


def test_two_at_a_time_are_one_too_many(path: Path) -> None:
    said: list[str] = []
    moved(path, show=lambda done, whole: said.append(elsewhere(lambda: moved(path))))
    assert all("another process" in text for text in said) and said
    assert path.read_bytes() == DATA and others(path) == []


def test_hard_links_would_come_apart(path: Path) -> None:
    path.with_name("second").hardlink_to(path)
    with pytest.raises(ParioError, match="2 names"):
        moved(path)
    assert others(path) == ["second"]


def test_directories_have_nothing_to_copy(tmp_path: Path) -> None:
    with pytest.raises(ParioError, match="is no file"):
        moved(tmp_path)


def test_a_copy_that_cannot_be_made_leaves_nothing(path: Path) -> None:
    with pytest.raises(ParioError, match="no stripes that can be set"):
        restripe(path, WANTED)
    assert others(path) == [] and path.read_bytes() == DATA


def test_a_full_disk_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fdatasync", full)
    with pytest.raises(ParioError, match="No space left"):
        moved(path)
    assert others(path) == [] and path.read_bytes() == DATA


CALLS = "open close pwrite ftruncate fdatasync fsync link unlink rename fchown fchmod setxattr utime".split()  # noqa: E501


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Runs it in a child that is gone before its call of that number; False: it had no such
    call."""
    child = os.fork()
    if child == 0:
        left = [number]
        for name in CALLS:
            real = getattr(os, name)

            def counted(*arguments: Any, _real: Any = real, **words: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return _real(*arguments, **words)

            setattr(os, name, counted)
        with suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.system
@pytest.mark.parametrize("again", [False, True], ids=["first", "resumed"])
def test_killed_before_any_of_its_calls_it_loses_nothing(
    path: Path, record_count: Any, again: bool
) -> None:
    before = facts(path)
    for number in range(1000):
        if again:
            interrupted(path, MIB + 1)
        if not killed_at(number, lambda: moved(path, threads=1)):
            break
        left = facts(path)
        assert left[:-1] == before[:-1] and left[-1] in (1, 2)
        moved(path)
        assert facts(path) == before and others(path) == []
    assert number > 20
    record_count("kills", number)
    assert facts(path) == before


CHILD = """
import sys
from tests.python.test_stripe_restripe import moved
from pathlib import Path
print("go", flush=True)
moved(Path(sys.argv[1]))
"""


@pytest.mark.exhaustive
def test_killed_at_random_moments_it_loses_nothing(tmp_path: Path, record_count: Any) -> None:
    record_count("kills", 30)
    path, moments = tmp_path / "data", random.Random()
    path.write_bytes(DATA * 20)
    for _ in range(30):
        root = Path(__file__).parents[2]
        command = [sys.executable, "-c", CHILD, path]
        with start_command(command, stdout=subprocess.PIPE, cwd=root) as child:
            assert child.stdout is not None and child.stdout.readline() == "go\n"
            time.sleep(moments.uniform(0, 0.3))  # any moment will do
        assert path.read_bytes() == DATA * 20
    moved(path)
    assert path.read_bytes() == DATA * 20 and others(path) == []
