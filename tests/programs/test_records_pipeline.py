"""Pipelines of a Loader give what a process without pario computes: for any number of ranks and
workers, and continued at any batch."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from pario.errors import ParioError
from pario.records import Dataset, Loader, Mixture, sample_lengths
from tests.programs.pipelines import (
    EPOCHS,
    FORMATS,
    KNOWN,
    RULES,
    SEED,
    SIZES,
    Keep,
    join,
    list_expected,
    list_lengths,
    make_loader,
    make_spec,
    read,
    write_files,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Dataset]:
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("world", [1, 3])
@pytest.mark.parametrize("keep", [0, 3])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("rule", [*RULES, *KNOWN])
@pytest.mark.system
def test_pipelines_give_expected_batches(
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


@pytest.mark.parametrize("rule", ["full", "pack", "lengths, known", "pack, known"])
def test_a_state_at_any_step_continues(files: list[Dataset], rule: str) -> None:
    spec, steps = make_spec(rule, True, 3), 0
    loader = make_loader(files, spec, 0, 1)
    for step, _ in enumerate(loader, 1):
        again, steps = make_loader(files, spec, 0, 1), step
        again.load_state_dict(loader.state_dict())
        epoch = 0 if list_expected(spec, 0)[step:] else 1
        assert read([again])[0] == (list_expected(spec, 0)[step:] or list_expected(spec, 1)), epoch
    assert steps == len(list_expected(spec, 0))


def test_a_state_of_pools_that_begin_within_an_epoch_continues(files: list[Dataset]) -> None:
    def make() -> Any:
        loader = Loader(files, 10, shuffle=True, decode=True)
        next(iter(loader))
        return loader.batch(3, pool=32, length=lambda sample: len(sample["tokens"]))

    whole, loader, again = read([make()])[0], make(), make()
    begun = read([loader], 2)[0]
    again.load_state_dict(loader.state_dict())
    assert begun + read([again])[0] == whole
    assert sum(map(len, whole)) == sum(SIZES) - 10


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.system
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


WHOLE = 4000


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of about 1 KiB; document n has n % 50 tokens."""
    path = tmp_path_factory.mktemp("documents") / "a.jsonl"
    rows = ({"n": n, "tokens": [n] * (n % 50), "unused": "x" * 1000} for n in range(WHOLE))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    Dataset(path).lengths("tokens")
    return path


def count_bytes_read() -> int:
    """Bytes that this process has read from files."""
    facts = Path("/proc/self/io").read_text()
    return int(facts.split()[1])


@pytest.mark.parametrize("how", ["batch", "pools", "pack"])
def test_a_rank_reads_only_its_own_samples_of_known_lengths(documents: Path, how: str) -> None:
    whole, found = documents.stat().st_size, []
    for rank in range(4):
        loader = Loader(
            documents, 2, shuffle=True, rank=rank, world=4, decode=True, remainder="exact"
        )
        before = count_bytes_read()
        if how == "pack":
            epoch = loader.pack_tokens(64, field="tokens", lengths="tokens")
            found += [int(n) for batch in epoch for n in batch["tokens"].ravel()]
        else:
            pool = 100 if how == "pools" else 0
            epoch = loader.batch(tokens=200, lengths="tokens", pool=pool)
            found += [sample["n"] for batch in epoch for sample in batch]
        # A window's first and last documents can be of two ranks.
        most = 1.35 if how == "pack" else 1.05
        assert epoch.stats.records <= most * WHOLE / 4
        # As many bytes between the samples are read if that saves calls.
        assert count_bytes_read() - before <= 2 * most * whole / 4 + 100_000
    if how == "pack":
        assert len(found) == sum(n % 50 for n in range(WHOLE)) // 64 * 64
    else:
        assert sorted(found) == list(range(WHOLE))


def test_lengths_of_a_field_are_learned_once_for_each_state_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    learned = []
    learn = sample_lengths._learn
    monkeypatch.setattr(
        sample_lengths, "_learn", lambda *given: learned.append(given) or learn(*given)
    )
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": [1, 2], "n": 7}\n{"t": [], "n": 0}\n')
    with ThreadPoolExecutor(4) as team:  # they wait for the first one
        found = list(team.map(lambda _: Dataset(path).lengths("t").tolist(), range(4)))
    assert found == [[2, 0]] * 4
    assert len(learned) == 1
    assert Dataset(path).lengths("n").tolist() == [7, 0]
    path.write_text('{"t": [1, 2, 3]}\n')
    assert Dataset(path).lengths("t").tolist() == [3]
    assert len(learned) == 3


def test_a_child_forked_while_lengths_are_learned_locks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": [1, 2]}\n')
    children, learn = [], sample_lengths._learn

    def fork_and_fail(*_: Any) -> None:
        children.append(os.fork())
        if children[-1] == 0:
            signal.pause()
        raise ParioError("no records")

    monkeypatch.setattr(sample_lengths, "_learn", fork_and_fail)
    with pytest.raises(ParioError, match="no records"):
        Dataset(path).lengths("t")
    monkeypatch.setattr(sample_lengths, "_learn", learn)
    other = os.fork()
    if other == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        os._exit(0 if Dataset(path).lengths("t").tolist() == [2] else 1)
    status = os.waitpid(other, 0)[1]
    os.kill(children[0], signal.SIGKILL)
    os.waitpid(children[0], 0)
    assert status == 0


def test_lengths_are_those_of_the_records_that_the_arguments_divide(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(10))
    for size in (4, 5):
        whole = Dataset(tmp_path / "a.bin", format="fixed", size=size, drop_last=True)
        assert whole.lengths("data").tolist() == [size] * 2
    for lengths in ([3, 7], [8, 2]):
        parts = Dataset(tmp_path / "a.bin", format="raw", lengths=lengths)
        assert parts.lengths("data").tolist() == lengths


def test_lengths_that_cannot_be_learned_name_the_record(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": [1]}\n{"u": 5}\n')
    with pytest.raises(ParioError, match=r"a.jsonl: record 1: the length of field 't': KeyError"):
        Dataset(tmp_path / "a.jsonl").lengths("t")
    assert Dataset(tmp_path / "a.jsonl", errors="skip").lengths("t").tolist() == [1, -1]


@pytest.mark.parametrize("format", FORMATS)
def test_lengths_of_a_field_of_each_format(tmp_path: Path, format: str) -> None:
    (file, _), expected = write_files(tmp_path, format), list_lengths(0)[: SIZES[0]]
    if format in ("tar", "prec"):  # a member that is a JSON object: its number of members
        assert set(file.lengths("json").tolist()) == {2}
    else:
        assert file.lengths("tokens").tolist() == expected


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1, 2], r"shape \[2\] and type int64: expected a whole number for each of the 101"),
        ([0.5] * 101, "type float64: expected a whole number"),
        (lambda number: number + 1, "pack_tokens: record [0-9]+ has . tokens, its given length is"),
    ],
)
def test_wrong_lengths_are_refused(files: list[Dataset], lengths: Any, message: str) -> None:
    loader = Loader(files, 2, decode=True)
    with pytest.raises(ParioError, match=message):
        list(loader.pack_tokens(16, field="tokens", lengths=lengths))


def test_a_filter_must_agree_with_the_lengths(files: list[Dataset]) -> None:
    loader = Loader(files, 2, decode=True).filter(Keep(3))
    epoch = loader.pack_tokens(16, field="tokens", lengths=list_lengths(0))
    with pytest.raises(ParioError, match="record 0 was left out, but its given length is 1"):
        list(epoch)


def test_a_state_of_other_lengths_is_refused(files: list[Dataset]) -> None:
    loader = Loader(files, 2, decode=True)
    state = loader.batch(tokens=24, lengths=list_lengths(0)).state_dict()
    with pytest.raises(ParioError, match="order were"):
        loader.batch(tokens=24, lengths=list_lengths(3)).load_state_dict(state)


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
    with pytest.raises(ParioError, match=r"order were .*pack.*, now they are .*; expected the sam"):
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


@pytest.mark.system
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
