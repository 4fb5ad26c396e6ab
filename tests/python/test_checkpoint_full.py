"""Full disks: earlier checkpoints stay, and every rank gets the error."""

import errno
import os
import resource
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pario.checkpoint import CheckpointError, Writer, block, load
from tests.python.support.threads import run

LENGTH, MOST = 200_000, 1 << 20  # elements of a rank; they are larger than the limit on file sizes


@contextmanager
def no_large_files():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.system
@pytest.mark.parametrize("again", [False, True], ids=["of new shapes", "of shapes that are known"])
@pytest.mark.parametrize("files", [1, 2, "node"])
@pytest.mark.parametrize("way", ["save", "save_async", "stage"])
def test_the_earlier_checkpoint_stays(tmp_path, way, files, again):
    stage = tmp_path / "stage" if way == "stage" else None

    def program(ranks):
        def save(writer, step, length):
            given = {
                "T": block(
                    np.full(length, step + ranks.rank / 2), (2 * length,), (length * ranks.rank,)
                )
            }
            (
                writer.save_async(step, given).result
                if way != "save"
                else lambda: writer.save(step, given)
            )()

        with Writer(ranks, tmp_path / "ckpt", files=files, stage=stage, durable=False) as writer:
            save(writer, 1, LENGTH if again else 10)
            ranks.agree("", lambda: None)
            if ranks.rank == 0:
                limited.__enter__()
            ranks.agree("", lambda: None)
            told = None
            try:
                save(writer, 2, LENGTH)
            except CheckpointError as error:
                told = str(error)
            ranks.agree("", lambda: None)
            if ranks.rank == 0:
                limited.__exit__(None, None, None)
            ranks.agree("", lambda: None)
            save(writer, 3, 10)
            return told

    limited = no_large_files()
    told = run(2, program)
    assert all("step-00000002" in one for one in told), told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step, length in ((3, 10), (1, LENGTH if again else 10)):
            assert (
                load(None, tmp_path / "ckpt", step=step)["T"].tolist()
                == [step] * length + [step + 0.5] * length
            )
    assert not list(tmp_path.glob("ckpt/*00002*")) and not list(tmp_path.glob("stage/*/step*"))


def test_an_error_on_closing_the_locked_directory_is_ignored(tmp_path, monkeypatch):
    writer = Writer(None, tmp_path, durable=False)
    writer.save(1, {"T": np.arange(3)})
    close = os.close

    failed = []

    def fail_to_close(descriptor):
        is_directory = Path(f"/proc/self/fd/{descriptor}").is_dir()
        close(descriptor)
        if is_directory:
            failed.append(descriptor)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", fail_to_close)
    writer.close()
    monkeypatch.undo()
    assert failed
    with Writer(None, tmp_path, durable=False) as writer:
        writer.save(2, {"T": np.arange(3)})
