"""``pario join``: it joins subfiles to one file."""

import os
from pathlib import Path

import pytest

from pario.cli import main
from pario.publishing import part_path
from tests.support.subfiles import write_subfiles

UNIT, FILES = 8, 3
DATA = bytes(range(100))


@pytest.fixture
def subfiled(tmp_path: Path) -> Path:
    """A file as pario's MPI-IO writes it with three subfiles, mode 640."""
    path = tmp_path / "data.bin"
    write_subfiles(path, DATA, UNIT, FILES)
    return path


def test_the_file_has_all_bytes_and_the_subfiles_are_gone(subfiled):
    assert main(["join", str(subfiled)]) == 0
    assert subfiled.read_bytes() == DATA
    assert subfiled.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in subfiled.parent.iterdir()] == ["data.bin"]


def test_nothing_is_shown_without_a_terminal(subfiled, capfd):
    main(["join", str(subfiled)])
    assert capfd.readouterr() == ("", "")


def test_stale_files_of_an_interrupted_join_do_no_harm(subfiled):
    part_path(subfiled).write_bytes(b"half of it")
    assert main(["join", str(subfiled)]) == 0
    assert subfiled.read_bytes() == DATA


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_missing_subfile_is_an_error_and_the_others_stay(subfiled, capsys, lost):
    part = subfiled.with_name("data.bin.subfiles") / str(lost)
    part.unlink()
    assert main(["join", str(subfiled)]) == 2
    assert (
        f"{part}: EIO (Input/output error): has 0 bytes or is missing; the sizes of the other"
        f" subfiles imply at least 32" in capsys.readouterr().err
    )
    assert len(list(part.parent.iterdir())) == FILES
    assert subfiled.stat().st_size == 0


def test_a_subfile_that_was_cut_off_is_an_error_and_a_hole_is_joined(subfiled, capsys):
    part = subfiled.with_name("data.bin.subfiles") / "1"
    os.truncate(part, 20)
    assert main(["join", str(subfiled)]) == 2
    message = capsys.readouterr().err
    assert f"{part}: EIO" in message
    assert "has 20 bytes or is missing" in message
    assert "`truncate -s 32`" in message
    os.truncate(part, 32)
    assert main(["join", str(subfiled)]) == 0
    assert subfiled.read_bytes()[: UNIT * 7] == DATA[: UNIT * 7]


@pytest.mark.parametrize("content", ["", "pario subfiles 1\nfiles 3\n"])
def test_a_damaged_map_is_reported_as_damaged(subfiled, capsys, content):
    directory = subfiled.with_name("data.bin.subfiles")
    (directory / "map").write_text(content)
    assert main(["join", str(subfiled)]) == 2
    assert f"{directory / 'map'}: EBADMSG (Bad message): is damaged" in capsys.readouterr().err
    assert len(list(directory.iterdir())) == 1 + FILES


def test_a_file_without_subfiles_is_an_error_that_names_it(tmp_path, capsys):
    plain = tmp_path / "plain"
    plain.write_bytes(b"x")
    assert main(["join", str(plain)]) == 2
    assert (
        f"{plain}" in (message := capsys.readouterr().err)
        and "does not consist of subfiles" in message
    )
    assert plain.read_bytes() == b"x"


def test_a_missing_file_is_an_error(tmp_path, capsys):
    assert main(["join", str(tmp_path / "nothing")]) == 2
    assert "no such file or directory; expected a file" in capsys.readouterr().err
