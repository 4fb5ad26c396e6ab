"""``pario merge``: one file made of the files of all processes."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.move.merge import Block, Mosaic, assemble, concatenate
from pario.publishing import is_part, part_path
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


def test_a_part_that_is_a_pipe_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert run(tmp_path / "pipe", tmp_path / "pipe", "-o", tmp_path / "whole") == 2
    assert f"{tmp_path / 'pipe'} is a pipe; expected a regular file" in capsys.readouterr().err
    assert not (tmp_path / "whole").exists()


def test_a_part_with_bytes_but_without_a_size_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*["/proc/self/status"] * 2, "-o", tmp_path / "whole") == 2
    assert "/proc/self/status has bytes, but its size is 0" in capsys.readouterr().err
    assert not (tmp_path / "whole").exists()


@pytest.mark.parametrize(("name", "reason"), [("only", "a single part"), ("no", "no such file")])
def test_one_part_without_a_rank_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    (tmp_path / "only").touch()
    assert run(tmp_path / name, "-o", tmp_path / "whole") == 2
    assert f"{name}: {reason}; expected two or more parts, or {{rank}}" in capsys.readouterr().err


def test_a_block_that_was_cut_off_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in range(2):
        np.save(tmp_path / f"u.{rank}.npy", np.arange(100.0))
    os.truncate(tmp_path / "u.1.npy", 500)
    assert run(tmp_path / "u.{rank}.npy", "--grid", "2", "-o", tmp_path / "u.h5") == 2
    assert "u.1.npy: cut off: it has 500 bytes; expected more" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("names", "options", "reason"),
    [
        (["b0.npy", "b1.npy"], ["--grid", "3x1"], "a grid of 3x1 has 3 blocks; there are 2 files"),
        (["b0.npy", "b1.npy"], ["--grid", "2"], "b0.npy has 2 axes; the grid has 1"),
        (["b0.npy", "no.npy"], ["--grid", "2x1"], "no.npy: "),
        (
            ["raw{rank}"],
            ["--grid", "1x1", "--block", "2x3", "--dtype", "<f4"],
            "raw0 has 23 bytes; a block of (2, 3) float32 has 24",
        ),
    ],
)
def test_blocks_that_do_not_make_an_array_are_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    options: list[str],
    reason: str,
) -> None:
    for name in ("b0.npy", "b1.npy"):
        np.save(tmp_path / name, np.zeros((2, 3)))
    (tmp_path / "no.npy").write_bytes(b"no array")
    (tmp_path / "raw0").write_bytes(bytes(23))
    paths = [tmp_path / name for name in names]
    assert run(*paths, *options, "-o", tmp_path / "out.h5") == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out.h5").exists()


def test_blocks_without_elements_become_an_empty_dataset(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for rank in range(2):
        np.save(tmp_path / f"b{rank}.npy", np.zeros((0, 3), "i4"))
    assert run(tmp_path / "b{rank}.npy", "--grid", "2x1", "-o", tmp_path / "out.h5") == 0
    with h5py.File(tmp_path / "out.h5") as file:
        assert (file["data"].shape, file["data"].dtype) == ((0, 3), np.dtype("i4"))


def test_a_missing_h5py_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "b0.npy", np.zeros((2, 3)))
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert run(tmp_path / "b{rank}.npy", "--grid", "1x1", "-o", tmp_path / "out.h5") == 2
    assert "pip install h5py" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["b0.npy"]


def damage_after(calls: int, path: Path, content: bytes) -> Callable[[int, int], None]:
    """Shows progress; at this call, it changes the last of these bytes in the new file beside a
    path."""
    seen: list[int] = []

    def show(done: int, whole: int) -> None:
        seen.append(done)
        if len(seen) == calls:
            [part] = [one for one in path.parent.iterdir() if is_part(one.name)]
            with part.open("r+b") as file:
                file.seek(part.read_bytes().rindex(content))
                file.write(b"X")

    return show


def test_an_output_with_other_bytes_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"-" * 1000)
    with pytest.raises(ParioError, match=r"b: the output differs from it between 0 and 1000"):
        concatenate(
            [tmp_path / "a", tmp_path / "b"],
            tmp_path / "out",
            1,
            damage_after(2, tmp_path / "out", b"-"),
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_dataset_with_other_bytes_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "b0.npy"
    np.save(path, np.full((50, 3), np.nan))
    mosaic = Mosaic.of([Block.of_npy(path)], (1, 1), fortran=False)
    with pytest.raises(ParioError, match=r"b0\.npy: the output differs from it"):
        show = damage_after(1, tmp_path / "out", np.float64(np.nan).tobytes())
        assemble(mosaic, tmp_path / "out", "data", 1, show)
    assert [path.name for path in tmp_path.iterdir()] == ["b0.npy"]


def test_a_part_that_grows_meanwhile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(ParioError, match="a was changed while it was merged"):
        concatenate([path], tmp_path / "out", 1, lambda done, whole: path.open("ab").write(b"+"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_arrays_of_strings_are_refused(tmp_path, capsys):
    for rank in range(2):
        np.save(tmp_path / f"{rank}.npy", np.array(["a", "b"]))
    parts = tmp_path / "{rank}.npy"
    assert main(["merge", str(parts), "--grid", "2", "-o", str(tmp_path / "whole.h5")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "0.npy: elements of type <U1; expected numbers, bytes or structures of them" in said
    assert not (tmp_path / "whole.h5").exists()
