"""``pario records shuffle --fused``, Loaders over its files, and compressed temporary files."""

import ctypes
import random
from pathlib import Path

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.records import Dataset, Loader
from tests.python.support.lines import LINES


@pytest.fixture
def fused(lines: Path, tmp_path: Path) -> Path:
    path = tmp_path / "fused.jsonl"
    assert shuffle(lines, path, "--fused", "--seed", 7) == 0
    return path


def shuffle(path: Path, out: Path, *options: object) -> int:
    return main(["records", "shuffle", str(path), "-o", str(out), *map(str, options)])


def read_records(loader: Loader) -> list[bytes]:
    """Returns the records of the rest of the epoch."""
    return [bytes(record) for batch in loader for record in batch]


def test_a_loader_yields_the_records_of_the_whole_shuffle(lines, fused, tmp_path):
    assert shuffle(lines, tmp_path / "whole.jsonl", "--seed", 7) == 0
    assert (
        read_records(Loader(Dataset(fused), 32))
        == (tmp_path / "whole.jsonl").read_bytes().splitlines()
    )


def test_the_file_has_the_lines_of_the_input(fused):
    assert sorted(fused.read_bytes().splitlines()) == sorted(LINES)
    assert sorted(map(bytes, Dataset(fused))) == sorted(LINES)


def test_stat_names_the_shuffle(fused, capsys):
    assert main(["records", "stat", str(fused)]) == 0
    assert "shuffled into buckets: 1, seed 7" in capsys.readouterr().out


def test_epochs_are_other_orders_of_all_records(fused):
    loader = Loader(Dataset(fused), 100, shuffle=True, seed=3)
    first, second = read_records(loader), read_records(loader)
    assert sorted(first) == sorted(second) == sorted(LINES)
    assert first != second != read_records(Loader(Dataset(fused), 100))
    assert read_records(Loader(Dataset(fused), 7, shuffle=True, seed=3, prefetch=1)) == first


def test_a_loader_resumes_anywhere_on_any_number_of_ranks(fused):
    chance, dataset = random.Random(1), Dataset(fused)
    expected, seen = read_records(Loader(dataset, 10, shuffle=True, seed=5)), []
    state = Loader(dataset, shuffle=True, seed=5).state_dict()
    while state["epoch"] == 0:
        world, batch = chance.randint(1, 4), chance.randint(1, 90)
        loaders = [
            Loader(dataset, batch, shuffle=True, rank=rank, world=world) for rank in range(world)
        ]
        for loader in loaders:
            loader.load_state_dict(state)
        running = [iter(loader) for loader in loaders]
        for _ in range(chance.randint(1, 9)):
            steps = [next(each, None) for each in running]
            seen += [bytes(record) for got in steps if got is not None for record in got]
        state = max(
            (loader.state_dict() for loader in loaders),
            key=lambda one: (one["epoch"], one["position"]),
        )
    assert seen == expected


def test_a_state_of_other_buckets_is_refused(lines, fused, tmp_path):
    state = Loader(Dataset(fused), shuffle=True).state_dict()
    assert shuffle(lines, tmp_path / "other.jsonl", "--fused", "--seed", 8) == 0
    with pytest.raises(ParioError, match="order were"):
        Loader(Dataset(tmp_path / "other.jsonl"), shuffle=True).load_state_dict(state)


def test_a_fused_file_is_loaded_alone_or_interleaved(lines, fused):
    assert (
        len(Loader([Dataset(lines), Dataset(fused)], 10, interleave=(2, 4))) == 2 * len(LINES) // 10
    )
    with pytest.raises(ParioError, match=r"fused\.jsonl: was shuffled into buckets"):
        Loader([Dataset(lines), Dataset(fused)], 10)


def test_shards_are_refused(lines, tmp_path, capsys):
    assert shuffle(lines, tmp_path / "out", "--fused", "--shards", 2) == 2
    assert "of one output" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]


def test_a_compressed_temporary_file_changes_nothing(lines, tmp_path):
    try:
        ctypes.CDLL("liblz4.so.1")
    except OSError:
        pytest.skip("needs liblz4.so.1")
    outputs = [tmp_path / "plain", tmp_path / "compressed"]
    for path, options in zip(outputs, ([], ["--compress", "lz4"]), strict=True):
        assert shuffle(lines, path, "--way", "buckets", *options) == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
