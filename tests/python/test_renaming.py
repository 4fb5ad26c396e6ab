"""Names are taken without overwriting what somebody else has put there, whatever the file system can do."""

import errno
import os
from pathlib import Path

import pytest

from pario import renaming
from pario.renaming import identity_of, take_free_name, take_name


def cannot(_source: Path, _target: Path, _flags: int) -> bool:
    return False


def cannot_link(*_words: object, **_named: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.fixture(params=["exchange", "link", "neither"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the file system can."""
    if request.param != "exchange":
        monkeypatch.setattr(renaming, "_rename", cannot)
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
def test_a_free_name_is_taken(files: tuple[Path, Path]) -> None:
    take_free_name(*files)
    assert names(files) == ["target"]
    assert files[1].read_text() == "ours"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dangling", [False, True])
def test_a_name_that_is_not_free_is_not_taken(dangling: bool, files: tuple[Path, Path]) -> None:
    aside, target = files
    if dangling:
        target.symlink_to("nowhere")
    else:
        target.write_text("theirs")
    with pytest.raises(FileExistsError):
        take_free_name(aside, target)
    assert not take_name(aside, target, None, aside.with_name("spare"))
    assert names(files) == ["aside", "target"]
    assert target.is_symlink() if dangling else target.read_text() == "theirs"


@pytest.mark.usefixtures("way")
def test_what_is_as_it_was_is_replaced(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.write_text("before")
    assert take_name(aside, target, identity_of(target), aside.with_name("spare"))
    assert target.read_text() == "ours"
    assert set(names(files)) <= {"aside", "target"}


@pytest.mark.usefixtures("way")
def test_what_was_changed_stays(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    target.write_text("changed since")
    assert not take_name(aside, target, before, aside.with_name("spare"))
    assert target.read_text() == "changed since"
    assert aside.read_text() == "ours"
    assert names(files) == ["aside", "target"]


@pytest.mark.usefixtures("way")
def test_what_went_away_is_not_made_again(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    target.unlink()
    assert not take_name(aside, target, before, aside.with_name("spare"))
    assert names(files) == ["aside"]


@pytest.mark.usefixtures("way")
def test_a_directory_is_not_replaced(files: tuple[Path, Path]) -> None:
    aside, target = files
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        take_name(aside, target, identity_of(target), aside.with_name("spare"))
    assert names(files) == ["aside", "target"]


def test_what_is_written_at_the_last_moment_is_put_back(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    monkeypatch.setattr(renaming, "_rename", cannot)
    rename = Path.rename

    def rename_late(self: Path, to: Path) -> Path:
        if self == aside:
            target.write_text("written at the last moment")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", rename_late)
    assert not take_name(aside, target, before, aside.with_name("spare"))
    assert target.read_text() == "written at the last moment"
    assert names(files) == ["target"]


def test_what_replaces_ours_while_names_are_exchanged_back_stays(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    aside, target = files
    target.write_text("before")
    before = identity_of(target)
    target.write_text("changed since")
    rename = renaming._rename
    calls = []

    def with_a_third(source: Path, to: Path, flags: int) -> bool:
        calls.append(flags)
        if len(calls) == 2:
            (aside.with_name("third")).write_text("the newest")
            aside.with_name("third").rename(target)
        return rename(source, to, flags)

    monkeypatch.setattr(renaming, "_rename", with_a_third)
    if not rename(aside, target, 2):
        pytest.skip("names cannot be exchanged here")
    rename(aside, target, 2)
    assert not take_name(aside, target, before, aside.with_name("spare"))
    assert target.read_text() == "the newest"
