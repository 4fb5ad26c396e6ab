"""Copies of files by several threads: holes, compared checksums, and files that change."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pario import copying
from pario.copying import Copier, compare, copy_range, extents_with_data
from pario.errors import ParioError
from pario.move.verified_copy import copy_verified

DATA = os.urandom(3000)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of several pieces."""
    monkeypatch.setattr(copying, "PIECE", 1000)
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return path


def test_several_threads_copy_a_file_and_its_times(source: Path, tmp_path: Path) -> None:
    os.utime(source, (1e9, 1e9))
    assert copy_verified(source, tmp_path / "copy", 3) == (3000, 10**18)
    assert (tmp_path / "copy").read_bytes() == DATA
    assert (tmp_path / "copy").stat().st_mtime == 1e9


@pytest.mark.parametrize("threads", [1, 3])
def test_a_copy_with_other_bytes_on_the_disk_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    def damage(descriptor: int) -> None:
        os.pwrite(descriptor, bytes([DATA[1500] ^ 1]), 1500)

    monkeypatch.setattr(copying, "drop_from_cache", damage)
    with pytest.raises(ParioError, match="source: the bytes from 1000 to 2000 of the copy are not"):
        copy_verified(source, tmp_path / "copy", threads)
    assert sorted(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_file_that_becomes_shorter_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    lseek = os.lseek

    def shorten_source(descriptor: int, offset: int, whence: int) -> int:
        os.truncate(source, 2500)
        return 3000 if whence == os.SEEK_HOLE else lseek(descriptor, offset, whence)

    monkeypatch.setattr(os, "lseek", shorten_source)
    with pytest.raises(ParioError, match="source: it became shorter while it was copied"):
        copy_verified(source, tmp_path / "copy", threads)
    assert sorted(tmp_path.iterdir()) == [source]


def test_a_file_that_changes_while_it_is_copied_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "drop_from_cache", lambda _: os.utime(source, (1e9, 1e9)))
    with pytest.raises(ParioError, match="source: it was changed while it was copied"):
        copy_verified(source, tmp_path / "copy", 1)
    assert sorted(tmp_path.iterdir()) == [source]


def test_a_refused_copy_of_a_link_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(ParioError, match=r"link: .*/copy is newer"):
        copy_verified(tmp_path / "link", tmp_path / "copy", 1, lambda: "is newer")
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize("unknown", [(os.SEEK_DATA, os.SEEK_HOLE), (os.SEEK_HOLE,)])
def test_a_file_system_that_reports_no_holes_has_data_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: tuple[int, ...]
) -> None:
    def seek(descriptor: int, offset: int, whence: int) -> int:
        if whence in unknown:
            raise OSError(errno.EINVAL, "Invalid argument")
        return offset

    with (tmp_path / "file").open("wb") as file:
        file.truncate(3000)
        assert list(extents_with_data(file.fileno(), 100, 2000)) == []
        monkeypatch.setattr(os, "lseek", seek)
        assert list(extents_with_data(file.fileno(), 100, 2000)) == [(100, 2000)]


def test_zeros_become_holes_where_no_holes_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "GRAIN", 4096)
    content = b"a" * 4096 + bytes(8192) + b"b" * 100
    (tmp_path / "source").write_bytes(content)
    with (tmp_path / "source").open("rb") as source, (tmp_path / "copy").open("w+b") as copy:
        with Copier(source.fileno(), copy.fileno(), 2, look_for_zeros=True) as copier:
            copier.copy(0, len(content), lambda _: None)
        assert list(extents_with_data(copy.fileno(), 0, len(content))) == [
            (0, 4096),
            (12288, len(content)),
        ]
    assert (tmp_path / "copy").read_bytes() == content


def test_a_range_is_copied_where_the_kernel_copies_no_ranges(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    with source.open("rb") as read, (tmp_path / "copy").open("w+b") as copy:
        copy_range(read.fileno(), copy.fileno(), 500, 2700, 100)
        assert compare(read.fileno(), copy.fileno(), 500, 2700, 100)
        os.pwrite(copy.fileno(), bytes([DATA[2600] ^ 1]), 2700)
        assert not compare(read.fileno(), copy.fileno(), 500, 2700, 100)
    assert (tmp_path / "copy").read_bytes()[600:2700] == DATA[500:2600]
