"""Publication never replaces a file that appeared or changed meanwhile, on any file system."""

import errno
import os
from pathlib import Path

import pytest

from pario import publishing
from pario.publishing import identity_of, publish_new, replace_if_unchanged


def cannot_exchange(_source: Path, _target: Path, _flags: int) -> bool:
    return False


def cannot_link(*_words: object, **_named: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.fixture(params=["exchange", "link", "neither"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The operation that the file system supports."""
    if request.param != "exchange":
        monkeypatch.setattr(publishing, "_rename", cannot_exchange)
    if request.param == "neither":
        monkeypatch.setattr(os, "link", cannot_link)
    return str(request.param)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "aside").write_text("ours")
    return tmp_path / "aside", tmp_path / "target"


def names(files: tuple[Path, Path]) -> list[str]:
    return sorted(path.name for path in files[0].parent.iterdir())


@pytest.mark.usefixtures("way")
def test_a_file_is_renamed_to_a_free_name(files: tuple[Path, Path]) -> None:
    publish_new(*files)
    assert names(files) == ["target"]
    assert files[1].read_text() == "ours"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dangling", [False, True])
def test_an_existing_file_is_kept(dangling: bool, files: tuple[Path, Path]) -> None:
    aside, target = files
    if dangling:
        target.symlink_to("nowhere")
    else:
        target.write_text("theirs")
    with pytest.raises(FileExistsError):
        publish_new(aside, target)
    assert not replace_if_unchanged(aside, target, None)
    assert names(files) == ["aside", "target"]
    assert target.is_symlink() if dangling else target.read_text() == "theirs"


@pytest.mark.usefixtures("way")
def test_an_unchanged_file_is_replaced(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.write_text("before")
    assert replace_if_unchanged(aside, target, identity_of(target))
    assert target.read_text() == "ours"
    assert names(files) == ["target"]


@pytest.mark.usefixtures("way")
def test_a_changed_file_is_kept(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    target.write_text("changed since")
    assert not replace_if_unchanged(aside, target, before)
    assert target.read_text() == "changed since"
    assert aside.read_text() == "ours"
    assert names(files) == ["aside", "target"]


@pytest.mark.usefixtures("way")
def test_a_removed_file_is_not_made_again(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    target.unlink()
    assert not replace_if_unchanged(aside, target, before)
    assert names(files) == ["aside"]


@pytest.mark.usefixtures("way")
def test_a_directory_is_not_replaced(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        replace_if_unchanged(aside, target, identity_of(target))
    assert names(files) == ["aside", "target"]


def test_a_file_written_at_the_last_moment_is_put_back(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    monkeypatch.setattr(publishing, "_rename", cannot_exchange)
    rename = Path.rename

    def rename_late(self: Path, to: Path) -> Path:
        if self == aside:
            target.write_text("written at the last moment")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", rename_late)
    assert not replace_if_unchanged(aside, target, before)
    assert target.read_text() == "written at the last moment"
    assert names(files) == ["target"]


def test_a_file_that_replaces_ours_during_the_exchange_back_is_kept(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    target.write_text("changed since")
    rename = publishing._rename
    calls = []

    def with_a_third(source: Path, to: Path, flags: int) -> bool:
        calls.append(flags)
        if len(calls) == 2:
            (aside.with_name("third")).write_text("the newest")
            aside.with_name("third").rename(target)
        return rename(source, to, flags)

    monkeypatch.setattr(publishing, "_rename", with_a_third)
    if not rename(aside, target, 2):
        pytest.skip("names cannot be exchanged here")
    rename(aside, target, 2)
    assert not replace_if_unchanged(aside, target, before)
    assert target.read_text() == "the newest"
