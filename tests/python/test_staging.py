"""Staged directories: copied to a node and back, without overwriting newer files."""

import errno
import os
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.move.staging import NOTE, Move, Staged
from pario.move.verified_copy import copy_verified, state_of
from pario.publishing import is_part, part_path
from pario.see.launch.stages import Stage, staging
from tests.support.commands import run_command, start_command
from tests.support.waiting import wait_until


@pytest.fixture
def source(tmp_path: Path) -> Path:
    tree = tmp_path / "shared" / "data"
    (tree / "deep").mkdir(parents=True)
    (tree / "a").write_bytes(b"one")
    (tree / "deep" / "b").write_bytes(os.urandom(20_000_000))
    (tree / "link").symlink_to("a")
    (tree / "deep").chmod(0o750)
    return tree


def stage_in(source: Path, local: Path) -> int:
    return main(["stage", "in", str(source), "--to", str(local)])


def test_staged_files_are_equal(source: Path, tmp_path: Path) -> None:
    assert stage_in(source, tmp_path / "node") == 0
    here = tmp_path / "node" / "data"
    assert (here / "deep" / "b").read_bytes() == (source / "deep" / "b").read_bytes()
    assert (here / "link").readlink() == Path("a")
    assert state_of(here / "a") == state_of(source / "a")
    assert (here / "deep").stat().st_mode & 0o777 == 0o750


def test_the_directory_of_a_killed_process_is_removed(source: Path, tmp_path: Path) -> None:
    left = part_path(tmp_path / "node")
    left.mkdir()
    (left / NOTE).touch()
    assert stage_in(source, tmp_path / "node") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node", "shared"]


def test_a_link_is_staged_under_its_own_name(source: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(source)
    assert stage_in(tmp_path / "current", tmp_path / "node") == 0
    (tmp_path / "node" / "current" / "a").write_bytes(b"changed")
    assert main(["stage", "out", str(tmp_path / "node")]) == 0
    assert (source / "a").read_bytes() == b"changed"


@pytest.mark.system
@pytest.mark.parametrize("given", [".", "deep/.."])
def test_a_directory_without_a_name_is_staged_under_its_real_one(
    given: str, source: Path, tmp_path: Path
) -> None:
    assert stage_in(source / given, tmp_path / "node") == 0
    assert (tmp_path / "node" / "data" / "a").exists()


@pytest.mark.system
def test_only_changes_are_brought_back(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_in(source, tmp_path / "node")
    here = tmp_path / "node" / "data"
    (here / "new").write_bytes(b"two")
    (here / "empty").mkdir()
    (here / "a").write_bytes(b"changed")
    capsys.readouterr()
    assert main(["stage", "out", str(tmp_path / "node")]) == 0
    assert "2 files (10 B) copied, 2 were there" in capsys.readouterr().err
    assert (source / "new").read_bytes() == b"two"
    assert (source / "a").read_bytes() == b"changed"
    assert (source / "empty").is_dir()


def test_newer_files_are_left_alone_at_both_ends(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_in(source, tmp_path / "node")
    here = tmp_path / "node" / "data"
    (here / "a").write_bytes(b"mine")
    (source / "a").write_bytes(b"somebody's")
    assert main(["stage", "out", str(tmp_path / "node")]) == 1
    assert (source / "a").read_bytes() == b"somebody's"
    assert stage_in(source, tmp_path / "node") == 1
    assert (here / "a").read_bytes() == b"mine"
    assert "was changed here since it was staged" in capsys.readouterr().err


def test_a_killed_transfer_is_continued(source: Path, tmp_path: Path) -> None:
    stage_in(source, tmp_path / "node")
    staged = Staged.open(tmp_path / "node")
    (staged.local / "data" / "a").write_bytes(b"changed")
    (staged.local / "data" / "c").write_bytes(b"new")
    copy_verified(staged.local / "data" / "a", source / "a", 1)  # and was killed afterwards
    outcome = staged.bring_back(lambda done, whole: None)
    assert (outcome.copied, outcome.left) == (1, [])
    assert (source / "c").read_bytes() == b"new"


@pytest.mark.system
def test_copies_of_a_killed_transfer_are_not_taken_for_changed(
    source: Path, tmp_path: Path
) -> None:
    node = tmp_path / "node"
    Staged.make(node).add(source.name, source)
    copy_verified(source / "a", node / "data" / "a", 1)  # and was killed afterwards
    assert stage_in(source, node) == 0
    assert (node / "data" / "deep" / "b").exists()


KILLED = """
import os, signal, sys
from pario import copying
from pario.move import verified_copy
from pario.cli import main
copy_piece = copying.copy_piece
copied = []
def killed(source, target, begin, end):
    copied.append(copy_piece(source, target, begin, (begin + end) // 2))
    if len(copied) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return copy_piece(source, target, begin, end)
verified_copy.copy_piece = killed
sys.exit(main(sys.argv[1:]))
"""


def test_a_process_killed_between_two_writes_leaves_no_half_file(tmp_path: Path) -> None:
    source, node = tmp_path / "out", tmp_path / "node"
    source.mkdir()
    assert stage_in(source, node) == 0
    for number in range(8):
        (node / "out" / str(number)).write_bytes(bytes([number]) * 100_000)
    command = [sys.executable, "-c", KILLED, "stage", "out", str(node)]
    assert run_command(command).returncode == -signal.SIGKILL
    found = {path.name for path in source.iterdir() if not is_part(path.name)}
    assert all((source / name).read_bytes() == bytes([int(name)]) * 100_000 for name in found)
    assert len(found) < 8
    assert main(["stage", "out", str(node)]) == 0
    assert {path.name: path.read_bytes() for path in source.iterdir()} == {
        str(number): bytes([number]) * 100_000 for number in range(8)
    }


def wait_for_clock_of_files(path: Path) -> None:
    """Waits until a changed file gets a later time than the last change of ``path``."""
    probe = path.with_name("probe")

    def is_later() -> bool:
        probe.touch()
        return probe.stat().st_ctime_ns > path.stat().st_ctime_ns

    wait_until(is_later, "a later time of files")
    probe.unlink()


def test_bytes_decide_where_times_are_the_same(tmp_path: Path) -> None:
    out, node = tmp_path / "out", tmp_path / "node"
    out.mkdir()
    node.mkdir()
    (out / "result").write_bytes(b"old")
    os.utime(out / "result", (1e9, 1e9))
    wait_for_clock_of_files(out / "result")
    with staging([f"{out}={node}"]):
        here = Stage.parse(f"{out}={node}").local / "files" / "result"
        here.write_bytes(b"new")
        os.utime(here, (1e9, 1e9))
    assert (out / "result").read_bytes() == b"new"


def test_an_older_file_of_another_process_is_left_alone(tmp_path: Path) -> None:
    out, node = tmp_path / "out", tmp_path / "node"
    out.mkdir()
    node.mkdir()
    (tmp_path / "theirs").write_bytes(b"theirs")
    os.utime(tmp_path / "theirs", (1e9, 1e9))
    with pytest.raises(ParioError, match="was changed there"), staging([f"{out}={node}"]):
        (Stage.parse(f"{out}={node}").local / "files" / "result").write_bytes(b"ours")
        (tmp_path / "theirs").rename(out / "result")
    assert (out / "result").read_bytes() == b"theirs"


def test_file_systems_with_times_in_seconds_work(source: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    stage_in(source, node)
    for number in range(2):
        (node / "data" / "a").write_bytes(b"changed %d" % number)
        assert main(["stage", "out", str(node)]) == 0
        assert (source / "a").read_bytes() == b"changed %d" % number
        seconds = (source / "a").stat().st_mtime_ns // 10**9
        os.utime(source / "a", (seconds, seconds))


def test_names_that_begin_alike_are_copied_apart(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("\u4e00" * 84, *("x" * 250 + str(number) for number in range(20))):
        (source / name).write_text(name)
    assert stage_in(source, tmp_path / "node") == 0
    for path in (tmp_path / "node" / "source").iterdir():
        assert path.read_text() == path.name


def test_one_file_that_cannot_be_copied_stops_no_other(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_in(source, tmp_path / "node")
    here = tmp_path / "node" / "data"
    (here / "in the way").write_bytes(b"1")
    (here / "new").write_bytes(b"2")
    (source / "in the way").mkdir()
    os.utime(source / "in the way", (1e9, 1e9))
    assert main(["stage", "out", str(tmp_path / "node")]) == 1
    assert "in the way" in capsys.readouterr().err
    assert (source / "new").read_bytes() == b"2"


def test_only_staged_files_are_removed(source: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    stage_in(source, node)
    (node / "something else").write_text("1")
    (node / "data" / "x.pario-part").write_text("2")
    (node / "data" / "deep").chmod(0o500)
    assert main(["stage", "out", str(node), "--remove"]) == 0
    assert [path.name for path in node.iterdir()] == ["something else"]
    assert (source / "x.pario-part").read_text() == "2"
    for made in (True, False):
        shutil.rmtree(node)
        if not made:
            node.mkdir()  # such as $TMPDIR, which a program needs afterwards
        stage_in(source, node)
        assert main(["stage", "out", str(node), "--remove"]) == 0
        assert not node.exists() if made else not list(node.iterdir())
        node.mkdir(exist_ok=True)


def test_files_that_change_while_they_are_brought_back_stay(source: Path, tmp_path: Path) -> None:
    stage_in(source, tmp_path / "node")
    staged = Staged.open(tmp_path / "node")
    (staged.local / "data" / "a").write_bytes(b"still written")
    with pytest.raises(ParioError, match="still being changed"):
        staged.remove()
    assert (staged.local / "data" / "a").exists()


def test_a_file_that_changes_there_during_the_copy_is_left_alone(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    with pytest.raises(ParioError, match="was changed there"):
        copy_verified(source / "a", tmp_path / "theirs", 1, lambda: "was changed there")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shared", "theirs"]


@pytest.mark.parametrize("there_before", [False, True])
def test_of_two_nodes_that_bring_a_file_back_at_once_the_second_leaves_it(
    there_before: bool, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    if there_before:
        (out / "a").write_text("old")
    nodes = [tmp_path / "one", tmp_path / "two"]
    for node in nodes:
        assert stage_in(out, node) == 0
        (node / "out" / "a").write_text(f"of {node.name}")
    first, second = (Staged.open(node) for node in nodes)
    asked = []

    def between(_done: int, _whole: int) -> None:
        pass

    may_go = second._may_go

    def after_the_last_look(move: Move) -> str | None:
        reason = may_go(move)
        asked.append(reason)
        if len(asked) == 2:  # before the copy is published
            assert first.bring_back(between).left == []
        return reason

    second._may_go = after_the_last_look  # type: ignore[method-assign]
    outcome = second.bring_back(between)
    assert asked == [None, None]
    assert len(outcome.left) == 1
    assert "was changed there while it was copied" in outcome.left[0]
    assert {path.name: path.read_text() for path in out.iterdir()} == {"a": "of one"}


def test_no_file_is_written_through_a_link_that_replaced_a_directory(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage_in(source, tmp_path / "node")
    (tmp_path / "node" / "data" / "deep" / "new").write_text("1")
    (tmp_path / "node" / "data" / "deep" / "directory").mkdir()
    (tmp_path / "node" / "data" / "a").write_text("changed")
    (tmp_path / "elsewhere").mkdir()
    (source / "deep").rename(tmp_path / "away")
    (source / "deep").symlink_to(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["stage", "out", str(tmp_path / "node")]) == 1
    assert "which is a link there" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (source / "a").read_text() == "changed"


def test_a_tree_of_another_user_is_staged(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "touch", refuse)
    assert stage_in(source, tmp_path / "node") == 0
    (tmp_path / "node" / "data" / "new").write_bytes(b"1")
    (source / "new").write_bytes(b"2")  # at an unknown time
    assert main(["stage", "out", str(tmp_path / "node")]) == 1
    assert (source / "new").read_bytes() == b"2"


def test_directories_that_may_not_be_written_are_staged(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "file").write_text("1")
    (source / "deep").chmod(0o555)
    assert stage_in(source, tmp_path / "node") == 0
    assert (tmp_path / "node" / "source" / "deep").stat().st_mode & 0o777 == 0o755


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ParioError, match="nothing"):
        copy_verified(tmp_path / "nothing", tmp_path / "target", 1)
    assert list(tmp_path.iterdir()) == []


def test_the_last_user_of_a_node_brings_back(tmp_path: Path) -> None:
    out, node = tmp_path / "out", tmp_path / "node"
    out.mkdir()
    node.mkdir()
    text = f"{out}/*={node}"
    local = Stage.parse(text).local / "files"
    with staging([text]) as first:
        with staging([text]) as second:
            assert first == second == {"PARIO_STAGE": f"{out}={local}"}
            (local / "of_both").write_bytes(b"1")
        assert not (out / "of_both").exists()
    assert (out / "of_both").read_bytes() == b"1"
    assert list(node.iterdir()) == []


#: Uses the stage of the words again and again, with a file of its own each time.
USER = """
import sys
from pario.see.launch.stages import Stage, staging
text, name = sys.argv[1:]
for number in range(40):
    with staging([text]):
        (Stage.parse(text).local / "files" / f"{name}.{number}").touch()
"""


@pytest.mark.system
def test_users_that_come_and_go_leave_nothing_on_the_node(tmp_path: Path) -> None:
    out, node = tmp_path / "out", tmp_path / "node"
    out.mkdir()
    node.mkdir()
    words = [sys.executable, "-c", USER, f"{out}={node}"]
    with ExitStack() as stack:
        users = [stack.enter_context(start_command([*words, str(n)])) for n in range(4)]
        assert [user.wait_for_end() for user in users] == [0] * len(users)
    assert len(list(out.iterdir())) == len(users) * 40
    assert list(node.iterdir()) == []


def test_a_note_that_the_last_user_removes_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = Staged.make(tmp_path / "node")
    exists = Path.exists

    def see_and_remove(path: Path, **options: Any) -> bool:
        found = exists(path, **options)
        if path.name == NOTE:
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "exists", see_and_remove)
    assert Staged.make(staged.local).roots == {}


def test_a_file_that_changed_meanwhile_is_kept_on_the_node(tmp_path: Path) -> None:
    out, node = tmp_path / "out", tmp_path / "node"
    out.mkdir()
    node.mkdir()
    (out / "result").write_bytes(b"old")
    past = time.time() - 100
    os.utime(out / "result", (past, past))
    text = f"{out}={node}"
    local = Stage.parse(text).local
    with pytest.raises(ParioError, match="was changed there"), staging([text]):
        (local / "files" / "result").write_bytes(b"ours")
        (out / "result").write_bytes(b"theirs")
    assert (out / "result").read_bytes() == b"theirs"
    assert (local / "files" / "result").read_bytes() == b"ours"


@pytest.mark.parametrize(
    "text",
    ["out", "=x", "out=", "o*t=/tmp", "out=$NO_SUCH_VARIABLE", "missing/deep=/tmp", "file=/tmp"],
)
def test_unsuitable_directories_are_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ParioError, match="--stage"):
        Stage.parse(text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


def test_a_directory_that_is_missing_is_made(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    text = f"{tmp_path / 'new'}/*={tmp_path / 'node'}"
    with staging([text]):
        (Stage.parse(text).local / "files" / "result").write_bytes(b"ours")
    assert (tmp_path / "new" / "result").read_bytes() == b"ours"
    assert list((tmp_path / "node").iterdir()) == []


def test_progress_is_shown_while_files_are_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[int, int] | str] = []

    class Seen:
        def __init__(self, path: str) -> None:
            shown.append(path)

        def show(self, done: int, whole: int) -> None:
            shown.append((done, whole))

        def clear(self) -> None:
            shown.append("gone")

    monkeypatch.setattr("pario.see.launch.stages.RateLine", Seen)
    (tmp_path / "node").mkdir()
    text = f"{tmp_path / 'out'}={tmp_path / 'node'}"
    with staging([text]):
        (Stage.parse(text).local / "files" / "result").write_bytes(b"1234")
        assert shown == []
    assert shown == [f"to {tmp_path / 'out'}", (4, 4), "gone"]


def test_a_stale_clock_probe_of_a_killed_run_is_removed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(source.rglob("*"))
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", lambda *_, **__: None)
        killed.setattr(os, "getpid", lambda: 1)
        Staged.make(tmp_path / "first").add("data", source)
    assert sorted(source.rglob("*")) != before
    assert stage_in(source, tmp_path / "node") == 0
    assert sorted(source.rglob("*")) == before
    assert not list((tmp_path / "node" / "data").rglob(".*"))


def test_a_note_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "read_text", fail)
    with pytest.raises(ParioError, match=f"{NOTE}: Input/output error"):
        Staged.open(tmp_path)
