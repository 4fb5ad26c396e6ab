"""Progress of long saves and loads, shown on a terminal only."""

import errno
import io
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pario import checkpoint, progress
from pario.checkpoint import Writer, block, container, load, transfer
from pario.checkpoint.geometry import whole
from tests.python.support.threads import run

GRID = np.arange(40.0).reshape(8, 5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_small_arrays(monkeypatch):
    monkeypatch.setattr(container, "LARGE", 0)


def work(place):
    def program(ranks):
        box = checkpoint.divide(GRID.shape, ranks.size, ranks.rank)
        with Writer(ranks, place, durable=False) as ckpt:
            ckpt.save(1, {"T": block(GRID[box.within(whole(GRID.shape))], GRID.shape, box.begin)})
        load(ranks, place).read("T", box.begin, box.shape)

    assert run(2, program) == [None] * 2


def test_one_rank_shows_one_line_and_erases_it(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_LONG", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    work(tmp_path)
    path = tmp_path / "step-00000001.h5"
    saving, loading, rest = sys.stderr.getvalue().split("\r\x1b[K", 1)[1].partition("loading")
    assert saving.startswith(f"saving {path}: 100 %, ") and saving.endswith(" left\r\x1b[K\r\x1b[K")
    assert loading and rest.startswith(f" {path}: 100 %, ") and rest.endswith(" left\r\x1b[K")
    assert (saving + rest).count(str(path)) == 2


@pytest.mark.parametrize("stderr", [Terminal, io.StringIO], ids=["short", "no terminal"])
def test_short_work_and_missing_terminals_show_nothing(tmp_path, monkeypatch, stderr):
    if stderr is io.StringIO:
        monkeypatch.setattr(progress, "_LONG", 0.0)
    else:
        monkeypatch.setattr(progress, "_LONG", 1000.0)
    monkeypatch.setattr(sys, "stderr", stderr())
    work(tmp_path)
    assert sys.stderr.getvalue() == ""


def test_a_large_file_is_flushed_in_steps_that_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "_FLUSHED", 1000)
    shown = []
    with (tmp_path / "file").open("wb") as file:
        file.write(bytes(2500))
        file.flush()
        transfer.flush(file.fileno(), lambda done, whole: shown.append((done, whole)))
    assert shown in (
        [(1000, 2500), (2000, 2500), (2500, 2500)],
        [],
    )  # empty if the file system cannot flush a range


def test_a_pipe_is_flushed_without_steps(monkeypatch):
    monkeypatch.setattr(transfer, "_FLUSHED", 1000)
    read, write = os.pipe()
    assert not transfer._flush_range(write, 0, 1000)
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "No space left"),
        (errno.EIO, "Input"),
        (errno.ESTALE, "Stale"),
        (errno.ENOSYS, None),
    ],
)
def test_an_error_of_the_disk_is_raised(monkeypatch, code, said):
    """The system reports such an error only once."""

    def full(*_):
        transfer.ctypes.set_errno(code)
        return -1

    monkeypatch.setattr(
        transfer.ctypes, "CDLL", lambda *_, **__: SimpleNamespace(sync_file_range=full)
    )
    if said is None:
        assert not transfer._flush_range(0, 0, 1000)
    else:
        with pytest.raises(OSError, match=said):
            transfer._flush_range(0, 0, 1000)
