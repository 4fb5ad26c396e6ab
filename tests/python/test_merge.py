"""``pario merge``: one file made of the files of all processes."""

import errno
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.move.merge import concatenate
from pario.publishing import part_path
from tests.support.commands import run_command


def run(*arguments: object) -> int:
    return main(["merge", *map(str, arguments)])


def test_parts_are_put_behind_each_other_by_rank(tmp_path: Path) -> None:
    parts = [os.urandom(size) for size in (100_000, 0, 9_000_001, *range(1, 10))]
    for rank, data in enumerate(parts):
        (tmp_path / f"out.{rank}.bin").write_bytes(data)
    assert run(tmp_path / "out.{rank}.bin", "-o", tmp_path / "whole") == 0
    assert (tmp_path / "whole").read_bytes() == b"".join(parts)


def test_holes_stay_holes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(64 << 20)
            file.seek(32 << 20)
            file.write(b"here")
    assert run(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "whole") == 0
    assert (tmp_path / "whole").stat().st_size == 128 << 20
    assert (tmp_path / "whole").stat().st_blocks * 512 < 8 << 20


def test_a_missing_rank_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p0").touch()
    (tmp_path / "p2").touch()
    assert run(tmp_path / "p{rank}", "-o", tmp_path / "whole") == 2
    assert "no file of rank 1" in capsys.readouterr().err
    assert not (tmp_path / "whole").exists()


def test_an_existing_output_stays(tmp_path: Path) -> None:
    (tmp_path / "p0").touch()
    (tmp_path / "whole").write_text("precious")
    assert run(tmp_path / "p{rank}", "-o", tmp_path / "whole") == 2
    assert (tmp_path / "whole").read_text() == "precious"


def test_an_output_may_have_the_longest_name(tmp_path: Path) -> None:
    (tmp_path / "p0").write_text("1")
    assert run(tmp_path / "p{rank}", "-o", tmp_path / ("w" * 255)) == 0
    assert (tmp_path / ("w" * 255)).read_text() == "1"


def test_two_files_of_one_rank_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p0").touch()
    (tmp_path / "p00").touch()
    assert run(tmp_path / "p{rank}", "-o", tmp_path / "whole") == 2
    assert "both of rank 0" in capsys.readouterr().err


def test_an_output_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    (tmp_path / "p0").write_text("1")
    (tmp_path / "whole").symlink_to("nothing")
    assert run(tmp_path / "p{rank}", "-o", tmp_path / "whole") == 2
    assert (tmp_path / "whole").is_symlink()
    with pytest.raises(ParioError, match="exists already"):
        concatenate(
            [tmp_path / "p0"],
            tmp_path / "other",
            1,
            lambda done, whole: (tmp_path / "other").write_text("precious"),
        )
    assert (tmp_path / "other").read_text() == "precious"


def test_of_two_processes_that_make_one_file_the_first_does(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).write_text(name)
    second: list[int] = []

    def show(_done: int, _whole: int) -> None:
        if not second:
            second.append(
                concatenate(
                    [tmp_path / "theirs"],
                    tmp_path / "whole",
                    1,
                    lambda done, whole: second.append(done),
                )
            )

    with pytest.raises(ParioError, match="exists already"):
        concatenate([tmp_path / "mine"], tmp_path / "whole", 1, show)
    assert (tmp_path / "whole").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "theirs", "whole"]


def test_the_stale_files_of_a_killed_merge_are_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    part_path(tmp_path / "whole").write_text("half")
    concatenate([tmp_path / "mine"], tmp_path / "whole", 1, lambda done, whole: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "whole"]


def test_a_full_disk_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("h5py")

    def full(_descriptor: int, _offset: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    np.save(tmp_path / "u.0.npy", np.ones((2, 2)))
    assert run(tmp_path / "u.{rank}.npy", "--grid", "1x1", "-o", tmp_path / "u.h5") == 2
    assert "u.h5: No space left" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["u.0.npy"]


LIMITED = """
import resource, signal, sys
from pario.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, -1))
sys.exit(main(["merge", *sys.argv[1:]]))
"""


def test_a_write_error_of_hdf5_metadata_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    np.save(tmp_path / "u.0.npy", np.ones((2, 2)))
    names = [tmp_path / "u.{rank}.npy", "--grid", "1x1", "-o", tmp_path / "u.h5"]
    done = run_command([sys.executable, "-c", LIMITED, *names])
    assert done.returncode == 2 and "u.h5: File too large" in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["u.0.npy"]


def write_blocks(tmp_path: Path, array: np.ndarray, cuts: list[list[int]], fortran: bool) -> None:
    """Writes each block to a file, ranks in row-major order; the rows of blocks have different
    lengths."""
    rows = np.split(array, cuts[0], axis=0)
    blocks = [block for row in rows for block in np.split(row, cuts[1], axis=1)]
    for rank, block in enumerate(blocks):
        np.save(
            tmp_path / f"out.{rank}.npy",
            np.asfortranarray(block) if fortran else np.ascontiguousarray(block),
        )


@pytest.mark.parametrize("fortran", [False, True])
def test_blocks_of_an_array_become_a_dataset(tmp_path: Path, fortran: bool) -> None:
    h5py = pytest.importorskip("h5py")
    array = np.random.default_rng(1).random((7, 11, 3))
    array[0, 0, 0] = np.nan
    write_blocks(tmp_path, array, [[4], [2, 6]], fortran)
    assert (
        run(
            tmp_path / "out.{rank}.npy",
            "--grid",
            "2x3x1",
            "--dataset",
            "group/u",
            "-o",
            tmp_path / "out.h5",
        )
        == 0
    )
    with h5py.File(tmp_path / "out.h5") as file:
        np.testing.assert_array_equal(file["group/u"][()], array)


def test_raw_blocks_in_the_order_of_fortran(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    array = np.arange(4 * 6, dtype="<f4").reshape(4, 6)
    for rank, (x, y) in enumerate((x, y) for y in range(2) for x in range(2)):
        (tmp_path / f"b{rank:03d}").write_bytes(
            array[2 * x : 2 * x + 2, 3 * y : 3 * y + 3].tobytes("F")
        )
    options = ["--grid", "2x2", "--fortran-grid", "--block", "2x3", "--dtype", "<f4", "--fortran"]
    assert run(tmp_path / "b{rank}", *options, "-o", tmp_path / "out.h5") == 0
    with h5py.File(tmp_path / "out.h5") as file:
        np.testing.assert_array_equal(file["data"][()], array)


def test_a_block_that_does_not_fit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, shape in enumerate([(2, 3), (2, 3), (2, 3), (2, 4)]):
        np.save(tmp_path / f"b{rank}.npy", np.zeros(shape))
    assert run(tmp_path / "b{rank}.npy", "--grid", "2x2", "-o", tmp_path / "out.h5") == 2
    assert "b3.npy holds (2, 4)" in capsys.readouterr().err
    assert not (tmp_path / "out.h5").exists()
