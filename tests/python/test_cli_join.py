"""``pario join``: it joins subfiles to one file."""

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
