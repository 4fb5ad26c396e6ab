"""Checkpoints that are staged on the nodes and drained from there."""

import json
import shutil
import threading
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pario.checkpoint.writer
from pario import checkpoint
from pario.checkpoint import (
    CheckpointError,
    Writer,
    block,
    container,
    draining,
    load,
    plan,
    removal,
    saving,
    stage,
)
from pario.checkpoint.geometry import whole
from pario.checkpoint.header import read_header
from tests.python.support.threads import run
from tests.support.waiting import PATIENCE, wait_until

WHOLE = (12, 7)
HERE = threading.local()


@pytest.fixture(autouse=True)
def _node_names(monkeypatch):
    """Names the nodes of the ranks, as many as :func:`writer` is given."""
    HERE.name = "node0"
    for module in (draining, pario.checkpoint.writer):
        monkeypatch.setattr(module, "node_name", lambda: HERE.name)


def writer(ranks, place, nodes=1, **options) -> Writer:
    HERE.name = f"node{ranks.rank % nodes}" if ranks else "node0"
    return Writer(ranks, place / "ckpt", stage=place / HERE.name, durable=False, **options)


def field_at(number: int) -> np.ndarray:
    return np.arange(84.0).reshape(WHOLE) + number


def part(ranks, number: int) -> checkpoint.arrays.Saved:
    box = checkpoint.divide(WHOLE, ranks.size, ranks.rank)
    return block(field_at(number)[box.within(whole(WHOLE))], WHOLE, box.begin)


def list_staged(place) -> list[str]:
    return sorted(path.name for path in place.glob("node*/*/step*"))


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
@pytest.mark.parametrize(
    ("large", "files"),
    [(0, 1), (container.LARGE, 1), (0, 2), (0, "node"), (0, "rank"), (container.LARGE, "rank")],
)
def test_staged_checkpoints_are_drained(tmp_path, monkeypatch, nodes, threads, large, files):
    monkeypatch.setattr(container, "LARGE", large)

    def program(ranks):
        with writer(ranks, tmp_path, nodes, files=files) as ckpt:
            for number in range(3):
                path = ckpt.save(
                    number,
                    {"T": part(ranks, number), "rank": checkpoint.per_rank(ranks.rank)},
                    {"time": number},
                )
            last = ckpt.save_async(3, {"T": part(ranks, 3), "step": 3})
            return path, last.result()

    names = [
        tmp_path / "ckpt" / f"step-0000000{number}{'.h5' if files == 1 else ''}"
        for number in (2, 3)
    ]
    assert run(3, program, threads=threads) == [tuple(names)] * 3
    for number in range(4):
        assert (load(None, tmp_path / "ckpt", step=number)["T"] == field_at(number)).all()
    assert load(None, names[0])["rank"].tolist() == [0, 1, 2] and load(None, names[0]).attrs == {
        "time": 2
    }
    parts = {1: 0, 2: 2, "node": nodes, "rank": 3}[files]
    assert len(list(names[1].glob("part*"))) == parts
    assert list_staged(tmp_path) == []


@pytest.mark.parametrize("nodes", [1, 2])
def test_compressed_checkpoints_are_drained(tmp_path, monkeypatch, nodes):
    monkeypatch.setattr(container, "LARGE", 0)

    def program(ranks):
        with writer(ranks, tmp_path, nodes, compress="zstd") as ckpt:
            for number in range(3):
                ckpt.save(number, {"T": part(ranks, number)})

    assert run(3, program) == [None] * 3
    for number in range(3):
        state = load(None, tmp_path / "ckpt", step=number)
        assert (state["T"] == field_at(number)).all()
        assert read_header(state.path).entries["T"].frames is not None
    assert list_staged(tmp_path) == []


def test_a_save_ends_when_it_is_staged_and_waits_while_the_stage_is_full(tmp_path, monkeypatch):
    opened, drain = threading.Event(), stage.Stage.drain

    def late(*arguments, **options):
        assert opened.wait(PATIENCE)
        drain(*arguments, **options)

    with writer(None, tmp_path) as ckpt:
        ckpt.save(0, {"T": field_at(0)})
    size = (tmp_path / "ckpt" / "step-00000000.h5").stat().st_size
    monkeypatch.setattr(stage.Stage, "drain", late)
    with writer(None, tmp_path, stage_bytes=2 * size) as ckpt:
        for number in (1, 2):
            ckpt.save(number, {"T": field_at(number)})
        assert list_staged(tmp_path) == [
            f"step-0000000{number}.{end}" for number in (1, 2) for end in ("h5", "json")
        ]
        third = threading.Thread(target=ckpt.save, args=(3, {"T": field_at(3)}))
        third.start()
        third.join(0.2)
        assert third.is_alive() and not list(tmp_path.glob("ckpt/step-0000000[123].h5"))
        opened.set()
        third.join(PATIENCE)
        assert not third.is_alive()
    assert (load(None, tmp_path / "ckpt")["T"] == field_at(3)).all()


def fail_to_drain(*_, **options):
    raise OSError(28, "No space left on device", "there")


def leave_staged(place, nodes, monkeypatch, *steps, **options):
    """Saves steps that cannot be drained, so that Writers leave them in the stages."""

    def program(ranks):
        ckpt = writer(ranks, place, nodes, **options)
        for step in steps:
            with pytest.raises((CheckpointError, OSError), match="No space left on device"):
                ckpt.save_async(step, {"T": part(ranks, step)}).result()
        ckpt.close()

    with monkeypatch.context() as patched:
        patched.setattr(stage.Stage, "drain", fail_to_drain)
        assert run(nodes, program) == [None] * nodes
    assert not list(place.glob("ckpt/*.part"))


@pytest.mark.parametrize("nodes", [1, 2])
def test_leftovers_are_drained_by_the_next_writer(tmp_path, monkeypatch, nodes):
    leave_staged(tmp_path, nodes, monkeypatch, 1, 2)
    with pytest.warns(UserWarning) as told:
        run(nodes + 1, lambda ranks: writer(ranks, tmp_path, nodes).close())
    assert [str(one.message).split(": ")[1] for one in told] == [
        f"step {step} was left in the stage; it is drained" for step in (1, 2)
    ]
    for number in (1, 2):
        assert (load(None, tmp_path / "ckpt", step=number)["T"] == field_at(number)).all()
    assert load(None, tmp_path / "ckpt").step == 2 and list_staged(tmp_path) == []


def open_writer_on(*names, place, **options):
    """Makes and closes a Writer on nodes of these names."""

    def program(ranks):
        HERE.name = names[ranks.rank]
        Writer(ranks, place / "ckpt", stage=place / HERE.name, durable=False, **options).close()

    assert run(len(names), program) == [None] * len(names)


def test_leftovers_are_drained_if_the_first_node_is_new(tmp_path, monkeypatch):
    """The staged checkpoint is newer than those that existed when it was staged, so it is kept."""
    with Writer(None, tmp_path / "ckpt", durable=False) as ckpt:
        early = ckpt.save(1, {"T": 1})
    leave_staged(tmp_path, 1, monkeypatch, 2)
    with pytest.warns(UserWarning, match="step 2 was left in the stage; it is drained"):
        open_writer_on("node7", "node0", place=tmp_path, keep=1)
    assert (load(None, tmp_path / "ckpt")["T"] == field_at(2)).all() and not early.exists()
    assert list_staged(tmp_path) == []


def test_leftovers_of_another_save_of_the_step_are_ignored(tmp_path, monkeypatch):
    """The first save ran on two nodes; one of them has had no Writer since."""
    leave_staged(tmp_path, 2, monkeypatch, 5)
    with pytest.warns(UserWarning, match="1 of 2 nodes are not here"):
        open_writer_on("node0", place=tmp_path)
    leave_staged(tmp_path, 1, monkeypatch, 5)
    drained, drain = [], stage.Stage.drain

    def noting(self, step, target, **options):
        drained.append(self.store.directory.parent.name)
        drain(self, step, target, **options)

    monkeypatch.setattr(stage.Stage, "drain", noting)
    with pytest.warns(UserWarning, match="it is drained"):
        open_writer_on("node0", "node1", place=tmp_path)
    assert drained == ["node0"] and list_staged(tmp_path) == []
    assert (load(None, tmp_path / "ckpt")["T"] == field_at(5)).all()


def test_leftovers_are_found_by_another_name_of_the_directory(tmp_path, monkeypatch):
    leave_staged(tmp_path, 1, monkeypatch, 1)
    (tmp_path / "link").symlink_to(tmp_path / "ckpt")
    with pytest.warns(UserWarning, match="step 1 was left in the stage; it is drained"):
        Writer(None, tmp_path / "link", stage=tmp_path / "node0", durable=False).close()
    assert load(None, tmp_path / "ckpt").step == 1


def test_two_saves_of_a_step_are_distinguished(tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(
        stage.Stage, "remove", lambda self, step: kept.append(self.read_note(step).save)
    )
    with writer(None, tmp_path) as ckpt:
        for number in range(2):
            ckpt.save(1, {"T": number})
    assert len(set(kept)) == 2


def test_each_node_needs_space_for_its_own_part(tmp_path, monkeypatch):
    asked = []
    for module in (plan, saving):
        monkeypatch.setattr(module, "check_space", lambda path, needed: asked.append(needed))

    def program(ranks):
        with writer(ranks, tmp_path, 2) as ckpt:
            for number in range(2):
                ckpt.save(number, {"T": part(ranks, number)})

    assert run(2, program) == [None, None]
    assert (
        all(0 < needed - field_at(0).nbytes // 2 < 1 << 17 for needed in asked) and len(asked) == 2
    )


def test_a_save_that_cannot_be_noted_takes_no_space(tmp_path, monkeypatch):
    def program(ranks):
        with writer(ranks, tmp_path, 2) as ckpt:
            if ranks.rank:
                monkeypatch.setattr(
                    ckpt._draining._stage, "_note", lambda _: tmp_path / "none" / "note"
                )
            ckpt.save(1, {"T": part(ranks, 1)})

    assert all("No such file" in str(one) for one in run(2, program))
    assert list_staged(tmp_path) == []


def test_a_writer_that_cannot_be_made_claims_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no directory")
    HERE.name = "node0"
    with pytest.raises(CheckpointError, match="expected a directory"):
        Writer(None, tmp_path / "ckpt", stage=tmp_path / "file")
    leave_staged(tmp_path, 1, monkeypatch, 1)
    with monkeypatch.context() as patched, pytest.warns(UserWarning, match="it is drained"):
        patched.setattr(stage.Stage, "drain", fail_to_drain)
        with pytest.raises(OSError, match="No space left"):
            writer(None, tmp_path)
    with pytest.warns(UserWarning, match="it is drained"):
        writer(None, tmp_path).close()
    assert load(None, tmp_path / "ckpt").step == 1


def test_incomplete_leftovers_are_named_and_removed(tmp_path, monkeypatch):
    leave_staged(tmp_path, 2, monkeypatch, 1)
    for path in tmp_path.glob("node1/*/*"):
        path.unlink()
    with pytest.warns(
        UserWarning,
        match="step 1 was left in the stage, and 1 of 2 nodes are not here; it is removed",
    ):
        run(2, lambda ranks: writer(ranks, tmp_path, 2).close())
    assert list_staged(tmp_path) == [] and not list(tmp_path.glob("ckpt/*"))


def test_leftovers_older_than_the_newest_are_named_and_removed(tmp_path, monkeypatch):
    leave_staged(tmp_path, 1, monkeypatch, 1)
    with Writer(None, tmp_path / "ckpt", durable=False) as ckpt:
        ckpt.save(2, {"T": 1})
    with pytest.warns(
        UserWarning,
        match="step 1 was left in the stage, and a newer one was saved since; it is removed",
    ):
        writer(None, tmp_path).close()
    assert list_staged(tmp_path) == [] and load(None, tmp_path / "ckpt").step == 2


def test_a_checkpoint_drained_late_is_older_than_one_staged_later(tmp_path, monkeypatch):
    """The order of saving counts, not the order of draining: the newer one is drained, not
    removed."""
    drain = stage.Stage.drain

    def slow(self, step, target, **options):
        wait_until(self.store.path(2).exists, "both steps are staged")
        if step == 2:
            raise OSError(28, "No space left on device", "there")
        drain(self, step, target, **options)

    with monkeypatch.context() as patched:
        patched.setattr(stage.Stage, "drain", slow)
        ckpt = writer(None, tmp_path)
        first, second = (ckpt.save_async(step, {"T": field_at(step)}) for step in (1, 2))
        first.result()
        with pytest.raises(OSError, match="No space left"):
            second.result()
        ckpt.close()
    assert load(None, tmp_path / "ckpt").step == 1
    with pytest.warns(UserWarning, match="step 2 was left in the stage; it is drained"):
        writer(None, tmp_path).close()
    assert load(None, tmp_path / "ckpt").step == 2


def test_a_drained_leftover_is_removed(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(stage.Stage, "remove", lambda *_: None)
        with writer(None, tmp_path) as ckpt:
            ckpt.save(1, {"T": 1})
    assert list_staged(tmp_path) == ["step-00000001.h5", "step-00000001.json"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer(None, tmp_path).close()
    assert list_staged(tmp_path) == []


def test_a_half_removed_leftover_is_removed(tmp_path, monkeypatch):
    unlinked, unlink = [], Path.unlink

    def fail_second_unlink(self, **options):
        if unlinked:
            raise InterruptedError
        unlinked.append(self)
        unlink(self, **options)

    remove = stage.Stage.remove
    monkeypatch.setattr(stage.Stage, "remove", lambda *_: None)
    with writer(None, tmp_path) as ckpt:
        ckpt.save(1, {"T": 1})
    monkeypatch.setattr(stage.Stage, "remove", remove)
    with monkeypatch.context() as patched, pytest.raises(InterruptedError):
        patched.setattr(Path, "unlink", fail_second_unlink)
        ckpt._draining._stage.remove(1)
    assert len(list_staged(tmp_path)) == 1
    writer(None, tmp_path).close()
    assert list_staged(tmp_path) == []


def test_a_half_written_file_is_no_leftover(tmp_path):
    with writer(None, tmp_path) as ckpt:
        place = ckpt._draining.store
    place.part(7).write_bytes(b"half")
    place.path(8).write_bytes(b"without a note")
    place.path(8).with_suffix(".json").write_text(json.dumps({"step": 8}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer(None, tmp_path).close()
    assert list_staged(tmp_path) == []


def test_a_checkpoint_larger_than_the_stage_is_an_error_on_every_rank(tmp_path):
    def program(ranks):
        with writer(ranks, tmp_path, 2, stage_bytes=1000) as ckpt:
            ckpt.save(5, {"T": part(ranks, 5)})

    told = run(2, program)
    assert all("step 5 has" in str(one) and "the stage takes 1000" in str(one) for one in told), (
        told
    )
    assert list_staged(tmp_path) == []


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize(("left", "later"), [("rank", 1), (1, "node")])
def test_leftover_parts_are_drained_by_writers_of_files_or_parts(
    tmp_path, monkeypatch, nodes, left, later
):
    """Parts are drained by a Writer of single files, and single files by a Writer of parts."""
    leave_staged(tmp_path, nodes, monkeypatch, 1, 2, files=left)
    with pytest.warns(UserWarning, match="it is drained"):
        run(nodes, lambda ranks: writer(ranks, tmp_path, nodes, files=later).close())
    for step in (1, 2):
        assert (load(None, tmp_path / "ckpt", step=step)["T"] == field_at(step)).all()
    assert list_staged(tmp_path) == []
    with writer(None, tmp_path, files=left) as ckpt:
        for number in (1, 3):
            ckpt.save(2, {"T": number})
    assert load(None, tmp_path / "ckpt")["T"] == 3


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
def test_undrained_checkpoints_take_no_more_than_the_space_of_the_stage(
    tmp_path, monkeypatch, threads
):
    """The oldest checkpoint is removed first; the others follow when a newer one is drained."""
    with writer(None, tmp_path) as ckpt:
        ckpt.save(0, {"T": field_at(0)})
    size = (tmp_path / "ckpt" / "step-00000000.h5").stat().st_size
    drain, seen = stage.Stage.drain, []

    def program(ranks):
        ckpt = writer(ranks, tmp_path, 2, stage_bytes=2 * size + size // 2)
        for step in range(1, 6):
            drain_step = fail_to_drain if step < 5 else drain
            ranks.agree("", partial(monkeypatch.setattr, stage.Stage, "drain", drain_step))
            pending = ckpt.save_async(step, {"T": part(ranks, step)})
            if step < 5:
                with pytest.raises((CheckpointError, OSError), match="No space left"):
                    pending.result()
            else:
                pending.result()
            ranks.agree("", lambda: None)
            ranks.agree(
                "",
                lambda: seen.append(
                    [name[12] for name in list_staged(tmp_path) if name.endswith(".json")]
                ),
            )
        ckpt.close()

    with pytest.warns(
        UserWarning, match="step 1 could not be drained, and its room is needed; it is removed"
    ):
        assert run(2, program, threads=threads) == [None, None]
    assert (
        seen[::2]
        == seen[1::2]
        == [["1"] * 2, ["1", "1", "2", "2"], ["2", "2", "3", "3"], ["3", "3", "4", "4"], []]
    )
    assert load(None, tmp_path / "ckpt").step == 5


@pytest.mark.parametrize("threads", [True, False], ids=["meeting in threads", "meeting in calls"])
def test_the_next_call_reports_failed_drains_and_completes_the_others(
    tmp_path, monkeypatch, threads
):
    drain = stage.Stage.drain

    def some(self, step, *arguments, **options):
        (fail_to_drain if step == 1 else drain)(self, step, *arguments, **options)

    monkeypatch.setattr(stage.Stage, "drain", some)

    def program(ranks):
        with writer(ranks, tmp_path) as ckpt:
            ckpt.save_async(1, {"T": part(ranks, 1)}).join()
            with pytest.raises((CheckpointError, OSError), match="No space left on device"):
                ckpt.save_async(2, {"T": part(ranks, 2)})
            ckpt.save_async(3, {"T": part(ranks, 3)}).join()
            ckpt.save_async(4, {"T": part(ranks, 4)})
            return load(None, tmp_path / "ckpt", step=3).step

    assert run(2, program, threads=threads) == [3, 3]


def test_a_save_ends_when_it_is_staged_also_during_a_removal(tmp_path, monkeypatch):
    allowed, waited, delete = threading.Event(), list[bool](), removal._delete_all

    def wait(paths):
        waited.append(allowed.wait(PATIENCE))
        delete(paths)

    monkeypatch.setattr(removal, "_delete_all", wait)
    with writer(None, tmp_path, keep=1) as ckpt:
        for number in range(2):
            ckpt.save_async(number, {"T": field_at(number)}).result()
        ckpt.save(2, {"T": field_at(2)})
        allowed.set()
    assert waited == [True, True]
    assert [path.name for path in tmp_path.glob("ckpt/step*")] == ["step-00000002.h5"]


def test_incomplete_leftover_parts_are_named_and_removed(tmp_path, monkeypatch):
    leave_staged(tmp_path, 2, monkeypatch, 1, files="node")
    shutil.rmtree(tmp_path / "node1")
    with pytest.warns(
        UserWarning,
        match="step 1 was left in the stage, and 1 of 2 nodes are not here; it is removed",
    ):
        run(2, lambda ranks: writer(ranks, tmp_path, 2, files="node").close())
    assert list_staged(tmp_path) == [] and not list(tmp_path.glob("ckpt/*"))


def test_the_stage_takes_so_many_bytes_of_all_parts(tmp_path):
    def program(ranks):
        with writer(ranks, tmp_path, 2, files="rank", stage_bytes=10**5) as ckpt:
            ckpt.save(1, {"T": block(np.zeros(10**4), (2 * 10**4,), (10**4 * ranks.rank,))})

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(container, "LARGE", 0)
        told = run(2, program)
    assert all("the stage takes 100000" in str(one) for one in told), told
    assert list_staged(tmp_path) == []


@pytest.mark.system
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), min_size=1), st.integers(41, 50))
def test_each_byte_of_a_file_is_drained_once(pieces, size):
    """Ranges between sorted offsets, each owned by one of three ranks on three nodes or by none."""
    places = sorted({place for place, _ in pieces})
    owners = dict(pieces)
    between = [(pair, owners[pair[0]]) for pair in pairwise(places)]
    ranges = [
        stage.join_ranges(
            np.array([pair for pair, owner in between if owner == rank], int).reshape(-1, 2)
        )
        for rank in range(3)
    ]
    written = [
        stage.Written({"": theirs}, {} if rank else {"": size})
        for rank, theirs in enumerate(ranges)
    ]
    found = [theirs[""] for theirs in stage.shares(written, [0, 1, 2])]
    count = np.zeros(size, int)
    for rows in found:
        for begin, end in np.minimum(rows, size):
            assert begin < end
            count[begin:end] += 1
    assert (count == 1).all()
    assert all((found[node] == ranges[node]).all() for node in (1, 2))
