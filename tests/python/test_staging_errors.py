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
def test_a_full_disk_ends_a_transfer(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pario.copying.write_all", fail)
    with pytest.raises(ParioError, match=f"cannot be copied to .*: {os.strerror(number)}"):
        staged.take_in(silent)
    assert files_in(staged.local / "data") == {}
