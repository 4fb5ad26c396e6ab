"""Pipelines of a Loader give what a process without pario computes: for any number of ranks and
workers, and continued at any batch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.errors import ParioError
from pario.records import Dataset, Loader, Mixture
from tests.support import training_oracle

SIZES, SEED, EPOCHS, END = (61, 40), 5, 3, 999
RULES: dict[str, list[Any] | None] = {
    "records": None,
    "full": ["batch", 4, 0, 0],
    "tokens": ["batch", 0, 24, 0],
    "lengths": ["batch", 5, 0, 32],
    "lengths-tokens": ["batch", 0, 24, 40],
    "pack": ["pack", 16, 2, END],
}


def make_spec(rule: str, mixed: bool, keep: int, shuffle: bool = True) -> dict[str, Any]:
    return {
        "sizes": SIZES,
        "weights": [3, 1] if mixed else None,
        "length": 90 if mixed else 0,
        "shuffle": shuffle,
        "seed": SEED,
        "epochs": EPOCHS,
        "keep": keep,
        "rule": RULES[rule],
    }


@cache
def compute(spec: str) -> list[list[Any]]:
    """The batches of each epoch, by a process that cannot import pario."""
    command = [sys.executable, "-I", "-S", training_oracle.__file__]
    done = subprocess.run(command, input=spec, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    """Lines of JSON: sample n has n % 7 + 1 tokens."""
    folder, made, first = tmp_path_factory.mktemp("files"), [], 0
    for size in SIZES:
        numbers = range(first, first + size)
        lines = [json.dumps({"n": n, "tokens": [n] * (n % 7 + 1)}) for n in numbers]
        (folder / f"{first}.jsonl").write_text("\n".join(lines) + "\n")
        made.append(Dataset(folder / f"{first}.jsonl"))
        first += size
    return made


def length_of(sample: dict[str, Any]) -> int:
    return len(sample["tokens"])


class Keep:
    """The filter of a specification; can be pickled."""

    def __init__(self, keep: int) -> None:
        self.keep = keep

    def __call__(self, sample: dict[str, Any]) -> bool:
        return bool(sample["n"] % self.keep)


def make_loader(
    files: Sequence[Dataset], spec: dict[str, Any], rank: int, world: int, **options: Any
) -> Any:
    mixture = (
        Mixture(list(zip(files, spec["weights"] or (), strict=False)), spec["length"])
        if (spec["weights"])
        else None
    )
    rule = spec["rule"] or []
    loader = Loader(
        mixture or files,
        rule[2] if rule[:1] == ["pack"] else 4,
        shuffle=spec["shuffle"],
        seed=SEED,
        decode=True,
        rank=rank,
        world=world,
        **{"remainder": "exact", **options},
    )
    if spec["keep"]:
        loader = loader.filter(Keep(spec["keep"]))
    if rule[:1] == ["batch"]:
        return loader.batch(rule[1], tokens=rule[2], length=length_of, pool=rule[3])
    if rule[:1] == ["pack"]:
        return loader.pack_tokens(rule[1], field="tokens", end=END)
    return loader


def contents(batch: Any) -> list[Any]:
    """A batch as the process without pario writes it."""
    if isinstance(batch, dict):
        rows = (batch["tokens"], batch["segment_ids"], batch["positions"])
        return np.stack(rows, axis=1).tolist()  # type: ignore[no-any-return]
    return [sample["n"] for sample in batch]


def join(spec: dict[str, Any], ranks: Sequence[Sequence[Any]]) -> list[Any]:
    """The batches of all ranks in order, or their samples if batches are windows of the source."""
    batches = [one for step in zip_longest(*ranks) for one in step if one is not None]
    return batches if spec["rule"] else list(chain(*batches))


def list_expected(spec: dict[str, Any], epoch: int) -> list[Any]:
    batches = compute(json.dumps(spec))[epoch]
    return batches if spec["rule"] else [number for number in batches if number is not None]


def read(loaders: Sequence[Any], steps: int | None = None) -> list[list[Any]]:
    """The next batches of each rank in this epoch."""
    running: list[Iterator[Any]] = [islice(iter(loader), steps) for loader in loaders]
    return [[contents(batch) for batch in each] for each in running]


@pytest.mark.parametrize("world", [1, 3])
@pytest.mark.parametrize("keep", [0, 3])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_pipelines_give_and_resume_what_a_process_without_pario_computes(
    files: list[Dataset], rule: str, mixed: bool, keep: int, world: int
) -> None:
    spec = make_spec(rule, mixed, keep)
    ranks = [make_loader(files, spec, rank, world, workers=rank) for rank in range(world)]
    assert join(spec, read(ranks)) == list_expected(spec, 0)
    begun = read(ranks, 2)
    states = {json.dumps(loader.state_dict()) for loader in ranks}
    assert len(states) == 1
    for other in (1, 2, 4):
        again = [make_loader(files, spec, rank, other) for rank in range(other)]
        for loader in again:
            loader.load_state_dict(json.loads(next(iter(states))))
        assert join(spec, begun) + join(spec, read(again)) == list_expected(spec, 1)
        assert join(spec, read(again)) == list_expected(spec, 2)


@pytest.mark.parametrize("rule", ["full", "pack"])
def test_a_state_at_any_step_continues(files: list[Dataset], rule: str) -> None:
    spec, steps = make_spec(rule, True, 3), 0
    loader = make_loader(files, spec, 0, 1)
    for step, _ in enumerate(loader, 1):
        again, steps = make_loader(files, spec, 0, 1), step
        again.load_state_dict(loader.state_dict())
        epoch = 0 if list_expected(spec, 0)[step:] else 1
        assert read([again])[0] == (list_expected(spec, 0)[step:] or list_expected(spec, 1)), epoch
    assert steps == len(list_expected(spec, 0))


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_mixture_of_several_blocks_of_choices(files: list[Dataset], shuffle: bool) -> None:
    spec = make_spec("records", True, 0, shuffle) | {"length": 3000}
    ranks = [make_loader(files, spec, rank, 2) for rank in range(2)]
    for epoch in range(EPOCHS):
        assert join(spec, read(ranks)) == list_expected(spec, epoch)


def test_the_data_sets_of_a_mixture_come_as_from_loaders_of_their_own(
    files: list[Dataset],
) -> None:
    mixture = Mixture(list(zip(files, (0.5, 0.5), strict=True)), length=400)
    mixed = list(chain(*Loader(mixture, 10, shuffle=True, seed=SEED, decode=True)))
    for file, first in zip(files, (0, SIZES[0]), strict=True):
        loader = Loader(file, 10, shuffle=True, seed=SEED, decode=True)
        alone = [sample["n"] for _ in range(9) for batch in loader for sample in batch]
        found = [s["n"] for s in mixed if first <= s["n"] < first + len(file)]
        assert found == alone[: len(found)]
        assert len(found) > 3 * len(file)


@pytest.mark.parametrize("remainder", ["pad", "drop"])
def test_ranks_have_equally_many_batches(files: list[Dataset], remainder: str) -> None:
    spec = make_spec("full", False, 3)
    ranks = read([make_loader(files, spec, rank, 3, remainder=remainder) for rank in range(3)])
    whole = list_expected(spec, 0)
    assert len({len(batches) for batches in ranks}) == 1
    kept = whole if remainder == "pad" else whole[: len(whole) // 3 * 3]
    assert join(spec, ranks)[: len(kept)] == kept
    assert len(join(spec, ranks)) == -(-len(kept) // 3) * 3


def test_drop_last_leaves_out_batches_that_are_not_full(files: list[Dataset]) -> None:
    spec = make_spec("full", False, 3)
    loader = make_loader(files, spec, 0, 1, remainder="pad", drop_last=True)
    assert read([loader])[0] == [batch for batch in list_expected(spec, 0) if len(batch) == 4]


def test_a_window_is_padded_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("[1, 2, 3]\n[]\n[4, 5]\n")
    loader = Loader(tmp_path / "a.jsonl", 2, decode=True, transform=lambda sample: sample["json"])
    (batch,) = loader.pack_tokens(4, end=0, pad=-1)
    assert {name: rows.tolist() for name, rows in batch.items()} == {
        "tokens": [[1, 2, 3, 0], [0, 4, 5, 0]],
        "segment_ids": [[1, 1, 1, 1], [1, 2, 2, 2]],
        "positions": [[0, 1, 2, 3], [0, 0, 1, 2]],
    }
    (batch,) = loader.pack_tokens(8, pad=-1)
    assert batch["tokens"].tolist() == [[1, 2, 3, 4, 5, -1, -1, -1]]
    assert batch["segment_ids"].tolist() == [[1, 1, 1, 2, 2, 0, 0, 0]]


def test_samples_that_are_no_tokens_are_refused(files: list[Dataset]) -> None:
    with pytest.raises(ParioError, match="expected a list of whole numbers"):
        next(iter(Loader(files, 2, decode=True).pack_tokens(4, field="n")))


def test_a_state_of_another_pipeline_is_refused(files: list[Dataset]) -> None:
    loader = Loader(files, 4, shuffle=True, decode=True)
    state = loader.pack_tokens(16, field="tokens").state_dict()
    with pytest.raises(ParioError, match=r"order were .*pack.*, now they are"):
        loader.load_state_dict(state)
    with pytest.raises(ParioError, match=r"order were .*pack.*, now they are .*batch"):
        loader.batch(4).load_state_dict(state)
    mixture = Mixture(list(zip(files, (1, 2), strict=True)))
    with pytest.raises(ParioError, match="order were"):
        Loader(Mixture(list(zip(files, (1, 3), strict=True)))).load_state_dict(
            Loader(mixture).state_dict()
        )


@pytest.mark.parametrize(
    ("parts", "message"),
    [([], "0 data sets: expected 1 to 64"), ([0], "weight 0: expected more than 0")],
)
def test_mixtures_of_nothing_are_refused(
    files: list[Dataset], parts: list[float], message: str
) -> None:
    with pytest.raises(ParioError, match=message):
        Mixture([(files[0], weight) for weight in parts])


def test_a_filter_keeps_equally_many_batches_and_counts_records(files: list[Dataset]) -> None:
    loader = Loader(files, 10, decode=True).filter(lambda sample: sample["n"] >= 25)
    batches = list(loader)
    assert [len(batch) for batch in batches[:4]] == [0, 0, 5, 10]
    assert len(batches) == len(loader)
    assert (loader.stats.records, loader.stats.skipped) == (sum(SIZES) - 25, 0)


def fail_on_one(sample: dict[str, Any]) -> int:
    if sample["n"] == 1:
        raise ValueError("one")
    return int(sample["n"])


@pytest.mark.parametrize("options", [{}, {"workers": 2}, {"workers": 2, "processes": True}])
def test_maps_and_filters_run_in_workers_and_name_records(
    files: list[Dataset], options: dict[str, Any]
) -> None:
    loader = Loader(files, 10, decode=True, errors="skip", **options).map(fail_on_one)
    assert next(iter(loader)) == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    assert loader.stats.skipped == 1
    failing = Loader(files, 10, decode=True, **options).filter(Keep(2)).map(fail_on_one)
    with pytest.raises(ParioError, match="record 1: transform: ValueError: one"):
        list(failing)
