"""The checkpoints that stay: the newest, each Nth step, the best by a metric, those being read."""

import gc
import os

import numpy as np
import pytest

from pario.checkpoint import CheckpointError, Keep, Writer, header, load, reader
from pario.checkpoint.retention import is_read, select_kept
from pario.checkpoint.store import Found, Store
from tests.python.test_cli_checkpoint import cli

NAN = float("nan")


def steps_in(directory) -> list[int]:
    return sorted(found.step for found in Store(directory).complete())


def save(path, losses, keep=None, **options) -> None:
    with Writer(None, path, keep=keep, durable=False, **options) as writer:
        for step, loss in losses.items():
            writer.save(step, {"T": np.arange(9.0)}, {"loss": loss})


def select(keep, losses) -> list[int]:
    found = [Found(step, step, number, "") for number, step in enumerate(losses)]
    metrics = {step: loss for step, loss in losses.items() if loss is not None}
    return [one.step for one in select_kept(keep, found, metrics)]


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (Keep(), [5]),
        (Keep(last=2), [50, 5]),
        (Keep(every=20), [0, 20, 40, 5]),
        (Keep(best=2, metric="loss"), [10, 40, 5]),
        (Keep(best=1, metric="loss", highest=True), [20, 5]),
        (Keep(last=2, every=20, best=3, metric="loss"), [0, 10, 20, 30, 40, 50, 5]),
        (Keep(best=99, metric="loss"), [0, 10, 20, 30, 40, 5]),
    ],
    ids=str,
)
def test_a_checkpoint_stays_if_any_rule_keeps_it(keep, kept):
    losses = {0: 0.5, 10: 0.1, 20: 0.9, 30: 0.3, 40: 0.2, 50: None, 5: None}
    assert select(keep, losses) == kept


def test_of_equal_values_the_newer_ones_are_the_best():
    assert select(Keep(best=2, metric="loss"), {1: 0.5, 2: 0.5, 3: 0.5, 4: 0.9}) == [2, 3, 4]


@pytest.mark.parametrize("options", [{}, {"files": "rank"}, {"stage": "stage"}], ids=str)
@pytest.mark.parametrize("writers", ["one", "several"])
@pytest.mark.system
def test_the_rules_combine(tmp_path, writers, options):
    """Metrics are read from the checkpoints, also by a Writer that did not save them."""
    if "stage" in options:
        options = {"stage": tmp_path / "stage"}
    losses = dict(zip(range(0, 100, 10), (9, 8, 1, NAN, 7, 2, 6, 5, 4, 3), strict=True))
    keep = Keep(last=2, every=30, best=2, metric="loss")
    runs = [losses] if writers == "one" else [{step: loss} for step, loss in losses.items()]
    for some in runs:
        save(tmp_path / "ck", some, keep, **options)
    assert steps_in(tmp_path / "ck") == [0, 20, 30, 50, 60, 80, 90]
    listed = Store(tmp_path / "ck").manifest.read()[0].listed
    assert sorted(int(one.name[5:13]) for one in listed) == [0, 20, 30, 50, 60, 80, 90]
    assert not list((tmp_path / "ck").glob("*.gone"))


@pytest.mark.parametrize(
    ("attrs", "told"),
    [
        ({"los": 1.0}, "attribute 'loss' is not given; expected a number"),
        ({"loss": "low"}, "attribute 'loss' is of type str; expected a number"),
    ],
)
def test_a_save_without_the_metric_is_an_error_that_names_it(tmp_path, attrs, told):
    with Writer(None, tmp_path, keep=Keep(best=1, metric="loss"), durable=False) as writer:
        with pytest.raises(CheckpointError, match=told):
            writer.save(1, {"T": 1.0}, attrs)
        writer.save(2, {"T": 1.0}, {"loss": np.float32(0.5)})
    assert steps_in(tmp_path) == [2]


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"last": 0}, "last=0; expected a number from 1 on"),
        ({"every": -5}, "every=-5; expected a number from 1 on"),
        ({"last": "3"}, "last='3'; expected a number from 1 on"),
        ({"best": 2}, "best=2, metric=''; expected both or neither"),
        ({"metric": "loss"}, "best=None, metric='loss'; expected both or neither"),
    ],
)
def test_invalid_rules_are_named(rules, told):
    with pytest.raises(CheckpointError, match=told):
        Keep(**rules)


@pytest.mark.parametrize("name", ["keep", "in_flight", "stage_bytes"])
@pytest.mark.parametrize("value", ["3", 1.5, 0])
def test_numbers_of_a_writer_are_from_1_on(tmp_path, name, value):
    with pytest.raises(CheckpointError, match=f"{name}={value!r}; expected a number from 1 on"):
        Writer(None, tmp_path, **{name: value})


def test_a_damaged_checkpoint_fills_no_place_of_the_best_and_stays(tmp_path):
    """It may be the best one, and an error of reading may be temporary."""
    save(tmp_path, {1: 0.1, 2: 0.2, 3: 0.3})
    with (tmp_path / "step-00000001.h5").open("r+b") as file:
        file.truncate(5000)
    save(tmp_path, {4: 0.4}, Keep(best=1, metric="loss"))
    assert steps_in(tmp_path) == [1, 2, 4]


@pytest.mark.parametrize("files", [1, "rank"])
@pytest.mark.system
def test_a_checkpoint_that_is_read_stays_until_a_later_save(tmp_path, files):
    save(tmp_path, {1: 0.5}, files=files)
    state = load(None, tmp_path)
    save(tmp_path, {2: 0.5, 3: 0.5}, keep=1, files=files)
    assert steps_in(tmp_path) == [1, 3]
    assert state["T"].tolist() == list(range(9))
    del state
    gc.collect()
    save(tmp_path, {4: 0.5}, keep=1, files=files)
    assert steps_in(tmp_path) == [4]


def test_a_checkpoint_that_is_removed_while_it_is_opened_gives_way_to_a_newer_one(
    tmp_path, monkeypatch
):
    find, found = reader.find, []

    def find_and_save(*arguments, **options):
        found.append(find(*arguments, **options))
        if len(found) == 1:
            save(tmp_path, {2: 0.0}, keep=1)
        return found[-1]

    save(tmp_path, {1: 0.0})
    monkeypatch.setattr(reader, "find", find_and_save)
    state = load(None, tmp_path)
    assert [header.step for header, _ in found] == [1, 2]
    assert state.step == 2 and state["T"].tolist() == list(range(9))


@pytest.mark.system
def test_a_forked_child_does_not_mark_the_checkpoint_of_its_parent(tmp_path):
    save(tmp_path, {1: 0.5})
    (path,) = tmp_path.glob("*.h5")
    state = load(None, path)
    begin, end = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.write(begin[1], b"x")  # after the handlers of the fork
        os.close(end[1])
        os.read(end[0], 1)
        os._exit(0)
    try:
        os.read(begin[0], 1)
        assert is_read(path)
        del state
        gc.collect()
        assert not is_read(path)
    finally:
        os.close(end[1])
        os.waitpid(child, 0)
        for one in (begin[0], begin[1], end[0]):
            os.close(one)


def test_prune_combines_the_rules(tmp_path, capsys):
    save(tmp_path, {step: abs(step - 40) for step in range(0, 100, 10)})
    rules = ("--keep", 1, "--every", 50, "--best", 2, "--metric", "loss")
    status, out, err = cli(capsys, "prune", tmp_path, *rules)
    removed = [f"removed {tmp_path}/step-000000{step}.h5" for step in (10, 20, 30, 60, 70, 80)]
    assert (status, out.splitlines(), err) == (0, removed, "")
    assert steps_in(tmp_path) == [0, 40, 50, 90]
    cli(capsys, "prune", tmp_path, "--keep", 1, "--best", 1, "--metric", "loss", "--highest")
    assert steps_in(tmp_path) == [90]


def test_prune_names_a_metric_that_no_checkpoint_has(tmp_path, capsys):
    save(tmp_path, {1: 0.5, 2: 0.6})
    told = f"{tmp_path}: no checkpoint has a number as attribute 'los', by which the best are kept"
    wrong = cli(capsys, "prune", tmp_path, "--keep", 1, "--best", 1, "--metric", "los")
    assert wrong == (2, "", f"pario checkpoint: {told}\n")
    assert steps_in(tmp_path) == [1, 2]


def test_a_checkpoint_that_is_removed_before_it_is_read_is_replaced_by_the_newest(
    tmp_path, monkeypatch
):
    with Writer(None, tmp_path, keep=Keep(last=1, every=2)) as writer:
        for step in (2, 3):
            writer.save(step, {"t": step})
        read_header, later = header.read_header, [5]

        def publish_before(*arguments, **options):
            if later:
                writer.save(later[0], {"t": later.pop()})
            return read_header(*arguments, **options)

        monkeypatch.setattr(header, "read_header", publish_before)
        state = load(None, tmp_path)
    assert state.step == 5 and state.skipped == []


@pytest.mark.parametrize("options", [{}, {"compress": "zstd"}])
def test_a_state_reads_its_file_after_another_save_of_the_step(tmp_path, options):
    arrays = {"T": np.arange(1 << 18, dtype="f8"), "n": np.arange(3)}
    with Writer(None, tmp_path, **options) as writer:
        writer.save(5, arrays)
        states = [load(None, tmp_path, verify=verify) for verify in (True, False)]
        writer.save(5, {name: array + 7 for name, array in arrays.items()})
        for state in states:
            assert all((state[name] == array).all() for name, array in arrays.items())
    assert load(None, tmp_path)["n"].tolist() == [7, 8, 9]
