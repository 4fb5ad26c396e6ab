"""Staged directories that cannot be used, and transfers that fail or are interrupted."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.move import staging
from pario.move.staging import NOTE, Staged
from pario.move.verified_copy import copy_verified
from pario.progress import silent


@pytest.fixture
def source(tmp_path: Path) -> Path:
    tree = tmp_path / "data"
    tree.mkdir()
    for number in range(5):
        (tree / str(number)).write_bytes(b"%d" % number * 1000)
    return tree


@pytest.fixture
def staged(source: Path, tmp_path: Path) -> Staged:
    one = Staged.make(tmp_path / "node")
    one.add("data", source)
    return one


def files_in(tree: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in tree.iterdir()}


def known_files(staged: Staged) -> list[str]:
    """The files that the note on the disk lists."""
    return sorted(json.loads((staged.local / NOTE).read_text())["known"])


def test_a_directory_without_a_note_is_no_staged_one(tmp_path: Path) -> None:
    with pytest.raises(ParioError, match=f"is no staged directory: it has no {NOTE}"):
        Staged.open(tmp_path)


def test_a_file_is_no_place_for_a_staged_directory(source: Path) -> None:
    with pytest.raises(FileExistsError, match="data/0"):
        Staged.make(source / "0")
    assert (source / "0").read_bytes() == b"0" * 1000


def test_a_name_belongs_to_one_tree(staged: Staged, source: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(ParioError, match=f"node/data belongs to {source}; stage {tmp_path}/other"):
        staged.add("data", tmp_path / "other")
    assert Staged.open(staged.local).roots == {"data": str(source)}


def test_a_tree_that_cannot_be_written_is_staged_only_to_be_read(tmp_path: Path) -> None:
    staged = Staged.make(tmp_path / "node")
    with pytest.raises(ParioError, match=f"cannot write into {tmp_path}/none, .*: No such file"):
        staged.add("data", tmp_path / "none" / "file")
    other = Staged.make(tmp_path / "other")
    other.add("data", tmp_path / "none" / "file", read_only=True)
    assert other.since < 0


def test_a_single_file_is_staged_brought_back_and_removed(source: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    assert main(["stage", "in", str(source / "0"), str(source / "1"), "--to", str(node)]) == 0
    assert (node / "0").read_bytes() == b"0" * 1000
    assert (node / "1").read_bytes() == b"1" * 1000
    (node / "0").write_bytes(b"changed")
    assert main(["stage", "out", str(node), "--remove"]) == 0
    assert (source / "0").read_bytes() == b"changed"
    assert (source / "1").read_bytes() == b"1" * 1000
    assert not node.exists()


@pytest.mark.parametrize(("target", "left"), [("one", 0), ("two", 1)])
def test_links_with_equal_times_are_compared_by_their_targets(
    source: Path, tmp_path: Path, target: str, left: int
) -> None:
    (source / "link").symlink_to("one")
    staged = Staged.make(tmp_path / "node")
    link = staged.add("data", source) / "link"
    staged.take_in(silent)
    link.unlink()
    link.symlink_to(target)
    for path in (link, source / "link"):
        os.utime(path, (1e9, 1e9), follow_symlinks=False)
    outcome = staged.bring_back(silent)
    assert (outcome.copied, len(outcome.left)) == (0, left)
    assert (source / "link").readlink() == Path("one")


def test_files_that_cannot_be_compared_differ(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"")
    assert not staging._same_bytes(tmp_path / "here", tmp_path / "missing")
    assert staging._same_bytes(tmp_path / "here", tmp_path / "here")


def test_large_files_are_copied_by_several_threads(
    staged: Staged, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    copy = staging.copy_verified

    def note_threads(origin: Path, target: Path, count: int, refusal: Callable[[], Any]) -> Any:
        threads.append(count)
        return copy(origin, target, count, refusal)

    monkeypatch.setattr(staging, "copy_verified", note_threads)
    monkeypatch.setattr(staging, "_LARGE", 1001)
    (source / "large").write_bytes(os.urandom(1001))
    assert staged.take_in(silent).copied == 6
    assert threads == [4, 1, 1, 1, 1, 1]
    assert files_in(staged.local / "data") == files_in(source)


def test_the_note_lists_copied_files_before_the_last_one(
    staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_NOTE_EVERY", 2)
    seen: list[int] = []
    staged.take_in(lambda done, whole: seen.append(len(known_files(staged))))
    assert seen == [0, 2, 2, 4, 4]
    assert len(known_files(staged)) == 5


def test_an_interrupted_transfer_is_continued(staged: Staged, source: Path) -> None:
    def interrupt(done: int, whole: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        staged.take_in(interrupt)
    assert len(known_files(staged)) == 1
    again = Staged.open(staged.local)
    outcome = again.take_in(silent)
    assert outcome.copied + outcome.same == 5
    assert not outcome.left
    assert files_in(staged.local / "data") == files_in(source)


@pytest.mark.parametrize("files", [2, 1000])
def test_a_file_whose_name_may_be_lost_is_not_noted(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    monkeypatch.setattr(staging, "_NOTE_EVERY", files)

    def fail(directory: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(directory))

    monkeypatch.setattr(staging, "sync_directory", fail)
    with pytest.raises(ParioError, match="node/data: cannot be synchronised: Input/output error"):
        staged.take_in(silent)
    assert known_files(staged) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_each_file_is_named_for_which_a_disk_lacks_space(
    staged: Staged, source: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pario.copying.write_all", fail)
    left = staged.take_in(silent).left
    assert len(left) == len(files_in(source))
    assert all(text.endswith(f": {os.strerror(number)}") for text in left)
    assert files_in(staged.local / "data") == {}


@pytest.mark.parametrize("large", [1 << 30, 20_000])
def test_a_file_too_big_for_the_disk_stops_no_other(
    staged: Staged, source: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """The files that a larger one has deprived of space are copied after it."""
    (source / "big").write_bytes(bytes(30_000))
    monkeypatch.setattr(staging, "_LARGE", large)
    failed = []

    def copy(path: Path, *arguments: Any) -> Any:
        if path.name == "big" or path not in failed:
            failed.append(path)
            cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise ParioError(f"{path}: no space") from cause
        return copy_verified(path, *arguments)

    monkeypatch.setattr(staging, "copy_verified", copy)
    outcome = staged.take_in(silent)
    assert outcome.left == [f"{source / 'big'}: no space"]
    assert set(files_in(source)) - set(files_in(staged.local / "data")) == {"big"}


def test_an_unreadable_directory_stops_no_other(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    readable = files_in(source)
    (source / "closed").mkdir()
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert main(["stage", "in", str(source), "--to", str(tmp_path / "node")]) == 1
    message = f"left alone: {source / 'closed'}: cannot be read: Permission denied"
    assert message in capsys.readouterr().err
    assert files_in(tmp_path / "node" / "data") == readable
    (tmp_path / "node" / "data" / "closed").mkdir()
    with pytest.raises(ParioError, match="closed: cannot be read"):
        Staged.open(tmp_path / "node").remove()


def test_special_files_are_named_and_not_copied(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(source / "pipe")
    assert main(["stage", "in", str(source), "--to", str(tmp_path / "node")]) == 0
    assert f"not copied: {source / 'pipe'} is a pipe\n" in capsys.readouterr().err
    assert not (tmp_path / "node" / "data" / "pipe").exists()


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_special_file_alone_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "pipe" if kind == "pipe" else Path("/dev/zero")
    assert main(["stage", "in", str(path), "--to", str(tmp_path / "node")]) == 2
    assert f"{path} is a {kind}; expected a file or directory" in capsys.readouterr().err
    assert not (tmp_path / "node").exists()


def test_the_place_of_staged_files_may_lead_out_of_their_origin(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source)
    assert main(["stage", "in", ".", "--to", "../node"]) == 0
    assert files_in(tmp_path / "node" / source.name) == files_in(source)


@pytest.mark.skipif(os.getuid() != 0, reason="only root sets owners")
def test_owners_are_kept(source: Path, tmp_path: Path) -> None:
    program = source / "program"
    program.write_text("1")
    os.chown(program, 12345, 54321)
    program.chmod(0o6755)
    node = tmp_path / "node"
    assert main(["stage", "in", str(source), "--to", str(node)]) == 0
    copy = node / "data" / "program"
    copy.write_text("22")
    copy.chmod(0o6755)
    assert main(["stage", "out", str(node)]) == 0
    for path in (copy, program):
        facts = path.stat()
        assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o7777) == (12345, 54321, 0o6755)
    assert program.read_text() == "22"


@pytest.mark.skipif(os.getuid() != 0, reason="only root sets owners")
def test_no_copy_grants_the_rights_of_another_owner(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchown", refuse)
    for name, owner, group in (("user", 12345, -1), ("group", -1, 54321)):
        (source / name).write_text("1")
        os.chown(source / name, owner, group)
        (source / name).chmod(0o6755)
    assert main(["stage", "in", str(source), "--to", str(tmp_path / "node")]) == 0
    modes = [(tmp_path / "node/data" / name).stat().st_mode & 0o7777 for name in ("user", "group")]
    assert modes == [0o755, 0o4755]
