"""Checkpoints with wrong clocks, failing disks and unwritable directories."""

import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

from pario.checkpoint import CheckpointError, Writer, block, load, removal
from pario.checkpoint.store import Store
from pario.publishing import is_part
from tests.python.support.threads import run as run_threads
from tests.support.commands import run_command

GRID = np.arange(600 * 1000, dtype="f8").reshape(600, 1000)


def save_steps(path: Path, *steps: int, **options) -> list[Path]:
    with Writer(None, path, durable=False, **options) as writer:
        return [writer.save(step, {"T": np.array(step)}) for step in steps]


def set_future_times(path: Path) -> None:
    for file in [path, *path.rglob("*")]:
        os.utime(file, ns=(4 * 10**18, 4 * 10**18), follow_symlinks=False)


@pytest.mark.parametrize("files", [1, 2])
def test_pruning_keeps_the_new_checkpoint_beside_files_from_the_future(tmp_path, files):
    save_steps(tmp_path, 1, 2, 3, files=files)
    set_future_times(tmp_path)
    (path,) = save_steps(tmp_path, 4, files=files, keep=2)
    assert sorted(found.stem for found in tmp_path.glob("step-*")) == [
        "step-00000003",
        "step-00000004",
    ]
    assert path.exists() and load(None, tmp_path).step == 4


@pytest.mark.parametrize(
    "steps", [(8, 9, 10, 11), (20, 30, 10)], ids=["rising", "after a rollback"]
)
def test_copied_checkpoints_keep_their_order(tmp_path, steps):
    paths = save_steps(tmp_path / "saved", *steps)
    (tmp_path / "copied").mkdir()
    for number, path in enumerate(reversed(paths)):
        copy = shutil.copyfile(path, tmp_path / "copied" / path.name)
        os.utime(copy, ns=(10**18 + number, 10**18 + number))
    assert load(None, tmp_path / "copied").step == steps[-1]


@pytest.mark.parametrize("files", [1, "rank"])
@pytest.mark.parametrize("durable", [False, True])
def test_a_save_waits_for_the_disk_only_if_it_is_durable(tmp_path, monkeypatch, files, durable):
    flushed = []
    with Writer(None, tmp_path, files=files, durable=durable, keep=1) as writer:
        monkeypatch.setattr(
            os, "fsync", lambda file: flushed.append(Path(f"/proc/self/fd/{file}").readlink())
        )
        for step in (1, 1, 2):
            writer.save(step, {"T": GRID})
    names = {path.name for path in flushed}
    if not durable:
        assert not names
    else:
        assert tmp_path.name in names
        assert any(name.startswith(".MANIFEST.") and is_part(name) for name in names)


def test_a_replaced_file_is_deleted_after_the_save(tmp_path, monkeypatch):
    deleted = []
    monkeypatch.setattr(removal, "_delete_all", deleted.append)
    paths = save_steps(tmp_path, 1, 1)
    assert deleted == [[tmp_path / "step-00000001.h5.gone"]]
    assert paths[0].stat().st_nlink == 1 and load(None, tmp_path).step == 1
    with Writer(None, tmp_path):  # as after a killed program
        assert not list(tmp_path.glob("*.gone"))


FULL_DISK = """
import resource, signal, sys
import numpy as np
from pario.checkpoint import CheckpointError, Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
files = sys.argv[2] if sys.argv[2] == "rank" else int(sys.argv[2])
with Writer(None, sys.argv[1], files=files, durable=False) as writer:
    saves = (-1, 1, {"T": 1}), (1024, 2, {"T": 2}), (1024, 3, {"U": np.ones(9)})
    for limit, step, arrays in saves:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))
        try:
            writer.save(step, arrays)
        except CheckpointError as error:
            print(step, "CheckpointError")
"""


@pytest.mark.parametrize("files", ["1", "rank"])
def test_a_write_error_of_the_container_is_an_error(tmp_path, files):
    done = run_command([sys.executable, "-c", FULL_DISK, tmp_path, files])
    assert (done.returncode, done.stdout) == (
        0,
        "2 CheckpointError\n3 CheckpointError\n",
    ), done.stderr
    assert load(None, tmp_path).step == 1
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize("part", [((3, 5), (1, 7)), ((0, 0), (600, 999)), ((2, 0), (300, 1000))])
def test_a_flipped_bit_is_found_by_reading_a_part(tmp_path, part):
    with Writer(None, tmp_path, durable=False) as writer:
        path = writer.save(1, {"T": block(GRID, GRID.shape, (0, 0)), "U": GRID[:2]})
    with h5py.File(path) as file:
        place = file["T"].id.get_offset() + 8 * (3 * 1000 + 7)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x10]))
    with pytest.raises(
        CheckpointError,
        match=r"array 'T': \[0:.*, 0:1000\], saved by rank 0, is not what was saved",
    ):
        load(None, tmp_path).read("T", *part)
    assert load(None, tmp_path, verify=False).read("T", (3, 7), (1, 1)) != GRID[3, 7]
    assert (load(None, tmp_path).read("T", (599, 3), (1, 2)) == GRID[599:, 3:5]).all()


def test_a_new_directory_is_on_the_disk(tmp_path, monkeypatch):
    flushed: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    Writer(None, tmp_path / "run" / "ckpt").close()
    assert {str(tmp_path), str(tmp_path / "run")} <= set(flushed)


def test_a_directory_that_cannot_be_flushed_keeps_the_older_checkpoint(tmp_path, monkeypatch):
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    with Writer(None, tmp_path, keep=1) as writer:
        writer.save(1, {"T": 1})
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(CheckpointError, match="Input/output error"):
            writer.save(2, {"T": 2})
        monkeypatch.undo()
        assert load(None, tmp_path, step=1)["T"] == 1
        writer.save(3, {"T": 3})
    assert [path.name for path in tmp_path.glob("step*")] == ["step-00000003.h5"]


class FaultyCall:
    """Fails call number ``number`` of some functions of ``os`` with a disk error."""

    def __init__(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._left, self._lock = number, threading.Lock()
        self.error = (errno.ENOSPC, errno.EIO, errno.EDQUOT)[number % 3]
        for name in ("pwrite", "pwritev", "ftruncate", "fsync"):
            monkeypatch.setattr(os, name, partial(self._call, getattr(os, name)))

    def _call(self, function: Callable[..., object], *arguments: object) -> object:
        with self._lock:
            self._left -= 1
            fails = self._left == 0
        if fails:
            raise OSError(self.error, os.strerror(self.error))
        return function(*arguments)

    @property
    def was_made(self) -> bool:
        """True if that call was made."""
        return self._left <= 0


@pytest.mark.parametrize("files", [1, pytest.param("rank", marks=pytest.mark.system)])
@pytest.mark.system
def test_any_failing_call_is_an_error_on_every_rank(tmp_path, files):
    """Fails each call of saves with new and with reused layouts; the older checkpoints stay."""

    def save(ranks, step):
        array = np.full((50, 1000), step, "f8")
        arrays = {
            "T": block(array[25 * ranks.rank :][:25], array.shape, (25 * ranks.rank, 0)),
            "n": step,
        }
        with Writer(ranks, tmp_path, files=files, keep=2) as writer:
            for number in (step, step + 1):
                writer.save(number, arrays)

    run_threads(2, lambda ranks: save(ranks, 1))
    step, number, made = 3, 0, True
    while made:
        number += 1
        complete = [found.key for found in Store(tmp_path).complete()]
        with pytest.MonkeyPatch.context() as patched:
            call = FaultyCall(number, patched)
            errors = run_threads(2, lambda ranks, step=step: save(ranks, step))
            made = call.was_made
        if made:
            assert all(isinstance(error, CheckpointError) for error in errors), (number, errors)
            assert all(os.strerror(call.error) in str(error) for error in errors), (number, errors)
            assert (
                complete[-1] in [found.key for found in Store(tmp_path).complete()]
                or load(None, tmp_path).step == step + 1
            )
            assert not [path.name for path in tmp_path.iterdir() if ".part" in path.name]
        step += 2
        state = load(None, tmp_path)
        assert (state["T"] == state["n"]).all() and not state.skipped
    assert number > 10


def test_a_leftover_that_cannot_be_removed_is_an_error_that_names_it(tmp_path, monkeypatch):
    save_steps(tmp_path, 1)
    leftover = tmp_path / ".MANIFEST.part"
    leftover.touch()

    def fail(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr("pario.checkpoint.manifest.remove", fail)
    with pytest.raises(CheckpointError, match=r"/\.MANIFEST\.part: Input/output error"):
        Writer(None, tmp_path)


def test_an_error_of_unlocking_the_directory_is_no_error_of_one_rank(tmp_path, monkeypatch):
    close, closing = os.close, []

    def close_badly(descriptor):
        is_directory = Path(f"/proc/self/fd/{descriptor}").is_dir()
        close(descriptor)
        if is_directory and closing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def save(ranks):
        writer = Writer(ranks, tmp_path, durable=False)
        writer.save(1, {"T": np.array(1)})
        closing.extend([1] if ranks.rank == 0 else [])  # only rank 0 locks the directory
        writer.close()
        return "saved"

    monkeypatch.setattr(os, "close", close_badly)
    assert run_threads(2, save) == ["saved"] * 2
    closing.clear()
    save_steps(tmp_path, 2)  # the directory is unlocked
