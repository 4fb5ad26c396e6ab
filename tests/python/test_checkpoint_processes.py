"""A Writer and the child processes of its process."""

import os
import traceback

import numpy as np
import pytest

from pario import checkpoint
from pario.checkpoint import CheckpointError, Writer, load


def run_in_child(program) -> str:
    """Runs a program in a forked child of this process and returns its result."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = program()
        except BaseException:
            said = traceback.format_exc()
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def refusal(call, *arguments) -> str:
    try:
        call(*arguments)
    except CheckpointError as error:
        return str(error)
    return "nothing was raised"


ARRAYS = {"x": np.arange(5)}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("action", ["save", "save_async", "close", "save_state_dict", "result"])
@pytest.mark.system
def test_a_forked_child_cannot_go_on_with_the_writer_of_its_parent(tmp_path, action, staged):
    with Writer(
        None, tmp_path / "ckpt", durable=False, stage=tmp_path / "stage" if staged else None
    ) as writer:
        pending = writer.save_async(1, ARRAYS)
        calls = {
            "save": lambda: refusal(writer.save, 2, ARRAYS),
            "save_async": lambda: refusal(writer.save_async, 2, ARRAYS),
            "save_state_dict": lambda: refusal(checkpoint.save_state_dict, writer, 2, ARRAYS),
            "close": lambda: refusal(writer.close),
            "result": lambda: refusal(pending.result),
        }
        said = run_in_child(calls[action])
        assert f"process {os.getpid()}" in said and "forked" in said
        pending.result()
        writer.save(3, ARRAYS)
    assert load(None, tmp_path / "ckpt").step == 3


def test_a_child_that_lives_on_does_not_keep_the_directory(tmp_path):
    """The child would hold its copy of the lock until it ends."""
    writer = Writer(None, tmp_path, durable=False)
    begin, end = os.pipe()
    started, starts = os.pipe()
    child = os.fork()
    if not child:
        os.write(starts, b"x")  # os.fork() has closed the copy
        os.close(end)
        os.read(begin, 1)
        os._exit(0)
    try:
        os.read(started, 1)
        writer.save(1, ARRAYS)
        writer.close()
        with Writer(None, tmp_path, durable=False) as other:
            other.save(2, ARRAYS)
    finally:
        for descriptor in (begin, end, started, starts):
            os.close(descriptor)
        os.waitpid(child, 0)
    assert load(None, tmp_path).step == 2


def test_a_child_that_ends_leaves_the_directory_to_its_parent(tmp_path):
    with Writer(None, tmp_path, durable=False) as writer:

        def end_with_an_error():
            with pytest.raises(ZeroDivisionError), writer:
                raise ZeroDivisionError
            return refusal(Writer, None, tmp_path)

        assert "another Writer is writing" in run_in_child(end_with_an_error)
        writer.save(1, ARRAYS)


def test_a_child_may_load_and_make_its_own_writer(tmp_path):
    with Writer(None, tmp_path / "a", durable=False) as writer:
        writer.save(1, ARRAYS)

        def program():
            with Writer(None, tmp_path / "b", durable=False) as own:
                own.save(load(None, tmp_path / "a").step + 1, ARRAYS)
            return "well"

        assert run_in_child(program) == "well"
    assert load(None, tmp_path / "b").step == 2
