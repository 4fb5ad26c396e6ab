"""The Loader yields every record once, in an order that depends only on seed, epoch and position,
and resumes at any position on any number of ranks."""

import json
import os
import random
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np
import pytest

from pario.errors import ParioError
from pario.machine import free_memory
from pario.records import Dataset, Loader, Mixture
from tests.python.support.forks import expect_child_begins_its_own

COUNT = 503


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Records of 40 bytes that hold their numbers."""
    path = tmp_path / "numbers.bin"
    np.repeat(np.arange(COUNT, dtype="<u8")[:, None], 5, axis=1).tofile(path)
    return Dataset(path, format="fixed", size=40)


def contents(batches) -> list[int]:
    return [int.from_bytes(record[:8], "little") for batch in batches for record in batch]


def numbers(loader: Loader) -> list[int]:
    """Returns the record numbers of the rest of the epoch, which are also stored in the records."""
    batches = list(loader)
    assert contents(batches) == [number for batch in batches for number in batch.numbers.tolist()]
    return contents(batches)


def test_in_order(dataset):
    loader = Loader(dataset, 32)
    assert len(loader) == 16
    assert numbers(loader) == list(range(COUNT))


def test_files_may_be_given_by_their_paths(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name} 1\n{name} 2\n")
    loader = Loader([tmp_path / "a.txt", str(tmp_path / "b.txt")], 3)
    records = [bytes(record).decode() for batch in loader for record in batch]
    assert records == ["a.txt 1", "a.txt 2", "b.txt 1", "b.txt 2"]


def test_its_length_is_that_of_an_epoch_wherever_it_is(dataset):
    """Also behind the last batch, where Keras' fit leaves it."""
    loader = Loader(dataset, 10, shuffle=True)
    whole = len(loader)
    lengths = {len(loader) for _ in islice(loader, whole)}
    assert lengths | {len(loader)} == {whole} == {-(-COUNT // 10)}


@pytest.mark.parametrize("how", [{"shuffle": True}, {"blocks": (16, 4)}])
def test_shuffled_epochs_differ_and_repeat(dataset, how):
    first, second = (Loader(dataset, 32, seed=7, prefetch=threads, **how) for threads in (1, 8))
    epochs = [numbers(first), numbers(first)]
    assert epochs == [numbers(second), numbers(second)]
    assert epochs[0] != epochs[1]
    assert all(sorted(epoch) == list(range(COUNT)) for epoch in epochs)


def test_files_are_interleaved_and_resume_anywhere(tmp_path):
    """The order of tf.data's interleave(cycle_length=2, block_length=4) on files with six ones,
    twos, ... fives."""
    sets = []
    for number in range(1, 6):
        path = tmp_path / str(number)
        path.write_bytes(bytes([number]) * 6)
        sets.append(Dataset(path, format="fixed", size=1))
    expected = [
        1,
        1,
        1,
        1,
        2,
        2,
        2,
        2,
        1,
        1,
        2,
        2,
        3,
        3,
        3,
        3,
        4,
        4,
        4,
        4,
        3,
        3,
        4,
        4,
        5,
        5,
        5,
        5,
        5,
        5,
    ]
    loader = Loader(sets, 5, interleave=(2, 4))
    assert contents(loader) == expected
    next(iter(loader))
    resumed = Loader(sets, 5, interleave=(2, 4))
    resumed.load_state_dict(loader.state_dict())
    assert contents(resumed) == expected[5:]
    with pytest.raises(ParioError, match="order were"):
        Loader(sets, 5, interleave=(2, 2)).load_state_dict(loader.state_dict())


@pytest.mark.parametrize("caching", ["page_cache", "direct"])
@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_memory_and_caching_change_nothing(dataset, caching, memory):
    assert numbers(Loader(dataset, 10, shuffle=True, caching=caching, memory=memory)) == numbers(
        Loader(dataset, 10, shuffle=True)
    )


@pytest.mark.parametrize(("free", "direct"), [(2 * 40 * COUNT - 1, True), (2 * 40 * COUNT, False)])
def test_data_larger_than_half_of_the_free_memory_is_read_past_the_page_cache(
    dataset, monkeypatch, free, direct
):
    monkeypatch.setattr("pario.records.sequence.free_memory", lambda: free)
    assert Loader(dataset)._reading.direct == direct


@pytest.mark.parametrize(
    ("group", "limits", "free"),
    [
        ("", {}, 7 << 20),
        ("0::/\n", {"memory.max": "max"}, 7 << 20),
        ("0::/\n", {"memory.max": "1000"}, 1000),
        ("0::/\n", {"memory.max": str(1 << 60)}, 7 << 20),
        ("0::/job/step\n", {"job/memory.max": "2000", "job/step/memory.max": "max"}, 2000),
        ("0::/job/step\n", {"job/memory.max": "2000", "job/step/memory.max": "900"}, 900),
        ("0::/../elsewhere\n", {"memory.max": "3000"}, 3000),
        ("1:cpu:/\n4:memory:/job\n0::/\n", {"memory/job/memory.limit_in_bytes": "4000"}, 4000),
    ],
)
def test_free_memory_is_within_the_limits_of_control_groups(
    monkeypatch, tmp_path, group, limits, free
):
    facts, groups = tmp_path / "meminfo", tmp_path / "cgroup"
    facts.write_text("MemTotal: 8192 kB\nMemAvailable: 7168 kB\n")
    if group:
        groups.write_text(group)
    for name, limit in limits.items():
        place = tmp_path / "groups" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{limit}\n")
    monkeypatch.setattr("pario.machine._FACTS", facts)
    monkeypatch.setattr("pario.machine._GROUPS", groups)
    monkeypatch.setattr("pario.machine._CGROUPS", tmp_path / "groups")
    assert free_memory() == free


def test_ranks_share_one_order(dataset):
    """The batches of all ranks together equal the batch of one process that is as large as their
    sum."""
    whole = list(Loader(dataset, 12, shuffle=True, seed=3))
    ranks = [
        list(Loader(dataset, 4, shuffle=True, seed=3, rank=rank, world=3, remainder="exact"))
        for rank in range(3)
    ]
    for step, batch in enumerate(whole):
        assert [
            n for rank in ranks for n in (rank[step].numbers.tolist() if step < len(rank) else [])
        ] == batch.numbers.tolist()


@pytest.mark.parametrize("remainder", ["exact", "pad"])
def test_resumes_anywhere_on_any_number_of_ranks(dataset, remainder):
    """After each kill the records continue in the order of one process; only the last step repeats
    some."""
    chance = random.Random(1)
    expected, seen = numbers(Loader(dataset, 1, shuffle=True, seed=5)), []
    state = Loader(dataset, 1, shuffle=True, seed=5).state_dict()
    while state["epoch"] == 0:
        world, batch = chance.randint(1, 5), chance.randint(1, 20)
        loaders = [
            Loader(dataset, batch, shuffle=True, rank=rank, world=world, remainder=remainder)
            for rank in range(world)
        ]
        for loader in loaders:
            loader.load_state_dict(state)
        running = [iter(loader) for loader in loaders]
        for _ in range(chance.randint(1, 6)):
            seen += contents(
                got for got in (next(each, None) for each in running) if got is not None
            )
        state = max(
            (loader.state_dict() for loader in loaders),
            key=lambda one: (one["epoch"], one["position"]),
        )
    assert list(dict.fromkeys(seen)) == expected
    assert len(seen) - COUNT in (range(5) if remainder == "pad" else [0])


def test_state_of_other_records_is_refused(dataset, tmp_path):
    state = Loader(dataset, shuffle=True).state_dict()
    with pytest.raises(ParioError, match=r"order were .*shuffled.*, now they are .*as they lie"):
        Loader(dataset).load_state_dict(state)
    with pytest.raises(ParioError, match="records were 503, now they are 1006"):
        Loader([dataset, dataset], shuffle=True).load_state_dict(state)


@pytest.mark.parametrize("how", [{"interleave": (2, 1)}, {"shuffle": True}, {}])
def test_state_of_files_of_other_sizes_is_refused(tmp_path, how):
    few, many = tmp_path / "few.txt", tmp_path / "many.txt"
    few.write_text("1\n2\n3\n")
    many.write_text("1\n2\n3\n4\n5\n")
    state = Loader([few, many], **how).state_dict()
    with pytest.raises(ParioError, match="order were"):
        Loader([many, few], **how).load_state_dict(state)
    again = Loader([few, many], **how)
    again.load_state_dict(state)
    again.load_state_dict(state | {"order": state["order"][:-1]})  # of an earlier version


@pytest.mark.parametrize("workers, processes", [(0, False), (3, False), (2, True)])
def test_transform_and_collate(dataset, workers, processes):
    loader = Loader(
        dataset, 50, shuffle=True, transform=len, collate=sum, workers=workers, processes=processes
    )
    assert list(loader) == [2000] * 10 + [120]


def fail_on_seven(record):
    number = int.from_bytes(record[:8], "little")
    if number == 7:
        raise ValueError("seven")
    return number


@pytest.mark.parametrize("workers", [0, 2])
def test_a_transform_that_fails_names_the_record_or_skips_it(dataset, workers):
    with pytest.raises(ParioError, match="record 7: transform: ValueError: seven"):
        list(Loader(dataset, 10, transform=fail_on_seven, workers=workers))
    loader = Loader(dataset, 10, transform=fail_on_seven, workers=workers, errors="skip")
    assert [number for batch in loader for number in batch] == [
        number for number in range(COUNT) if number != 7
    ]
    assert loader.stats.skipped == 1
    assert loader.stats.first_skipped == "record 7: transform: ValueError: seven"


def test_missing_records(dataset):
    os.truncate(dataset.path, 40 * 500 + 1)
    with pytest.raises(ParioError, match=r"record 500: .*numbers.bin.*shorter than its index says"):
        list(Loader(dataset, 10))
    loader = Loader(dataset, 10, errors="skip")
    assert contents(loader) == list(range(500))
    assert loader.stats.skipped == 3
    assert loader.stats.first_skipped.startswith("record 500: ")


@pytest.mark.parametrize("caching", ["page_cache", "direct"])
def test_a_file_that_replaces_an_open_one_is_not_read(tmp_path, caching):
    """A Dataset keeps its file open, because its index does not describe a new file of the same
    name."""
    path = tmp_path / "data"
    path.write_bytes(b"a" * 200_000)
    loader = Loader(Dataset(path, format="fixed", size=50_000), 2, caching=caching)
    path.with_suffix(".new").write_bytes(b"b" * 200_000)
    path.with_suffix(".new").replace(path)
    assert {bytes(record[:1]) for batch in loader for record in batch} == {b"a"}
    path.unlink()
    assert sum(map(len, loader)) == 4


def test_arrays(dataset, tmp_path):
    batch = next(iter(Loader(dataset, 8)))
    assert np.shares_memory(batch.array(), batch.array())
    assert (batch.array("<u8") == np.arange(8)[:, None]).all()
    shuffled = next(iter(Loader(dataset, 8, shuffle=True)))
    assert (shuffled.array("<u8")[:, 0] == shuffled.numbers).all()
    (tmp_path / "lines").write_bytes(b"a\nbcd\n")
    with pytest.raises(ParioError, match="differ in length, from 1 to 3 bytes"):
        next(iter(Loader(Dataset(tmp_path / "lines", format="lines"), 2))).array()


def test_batches_outlive_the_loader(dataset):
    kept = list(Loader(dataset, 10, shuffle=True, memory=1000))
    assert sorted(contents(kept)) == list(range(COUNT))


def test_an_abandoned_iteration_in_a_forked_child(dataset):
    """A child that inherits an iteration can drop it, gets an error from it, and can begin its
    own."""
    held = [iter(Loader(dataset, 10, shuffle=True))]
    next(held[0])
    expect_child_begins_its_own(held, lambda: len(contents(Loader(dataset, 10))) == COUNT)
    assert len(contents(held[0])) == COUNT - 10


def test_an_abandoned_iteration_resumes_at_its_position(dataset):
    loader = Loader(dataset, 10, shuffle=True)
    first = contents(islice(loader, 3))
    assert sorted(first + numbers(loader)) == list(range(COUNT))
    assert loader.epoch == 1


def test_behind_the_last_batch_begins_the_next_epoch(dataset):
    """Also after a loop that ended with ``break`` at the last batch, and from a state saved
    there."""
    loader, resumed = Loader(dataset, 10, shuffle=True), Loader(dataset, 10, shuffle=True)
    for _batch in islice(loader, len(loader)):
        state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    resumed.load_state_dict(state)
    second = numbers(loader)
    assert len(second) == COUNT and second == numbers(resumed)


@pytest.mark.parametrize("load", [False, True])
def test_one_iteration_at_a_time(dataset, load):
    loader = Loader(dataset, 10, shuffle=True)
    older = iter(loader)
    next(older)
    if load:
        loader.load_state_dict(Loader(dataset, 10, shuffle=True).state_dict())
    else:
        assert len(numbers(loader)) == COUNT - 10
    with pytest.raises(ParioError, match="expected one at a time"):
        next(older)
    assert len(numbers(loader)) == COUNT


@pytest.mark.parametrize(
    "how, words",
    [
        ({"position": COUNT + 1}, f"position={COUNT + 1}: expected 0 to {COUNT}"),
        ({"position": "5"}, "position='5': expected"),
        ({"epoch": None}, "epoch=None: expected"),
        ({"seed": -3}, "seed=-3: expected"),
        ({"version": None}, "version None: expected 1"),
        ({"records": None}, "records were None"),
    ],
)
def test_damaged_states_are_refused_and_change_nothing(dataset, how, words):
    loader = Loader(dataset, 10, shuffle=True, seed=3)
    state = loader.state_dict()
    with pytest.raises(ParioError, match=words):
        loader.load_state_dict(state | how)
    with pytest.raises(ParioError, match="state of a Loader"):
        loader.load_state_dict(None)
    assert loader.state_dict() == state


def test_states_are_plain_for_any_arguments(dataset):
    loader = Loader(dataset, np.int64(10), shuffle=True, seed=np.uint64(2**64 - 1))
    next(iter(loader))
    resumed = Loader(dataset, 10, shuffle=True)
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert len(numbers(resumed)) == COUNT - 10


def test_more_ranks_than_records(tmp_path):
    (tmp_path / "three").write_bytes(b"abc")
    three = Dataset(tmp_path / "three", format="fixed", size=1)
    loaders = [
        Loader(three, 2, shuffle=True, rank=rank, world=7, remainder="exact") for rank in range(7)
    ]
    epochs = [[bytes(record) for batch in loader for record in batch] for loader in loaders]
    assert sorted(record for epoch in epochs for record in epoch) == [b"a", b"b", b"c"]
    assert {loader.epoch for loader in loaders} == {1}


@pytest.mark.parametrize("how", [{}, {"remainder": "drop"}, {"drop_last": True}])
@pytest.mark.parametrize("world", [2, 3, 4, 8, 600])
def test_ranks_get_equal_numbers_of_batches_and_records(dataset, world, how):
    loaders = [Loader(dataset, 10, rank=rank, world=world, **how) for rank in range(world)]
    lengths = {len(loader) for loader in loaders}
    sizes = {tuple(map(len, loader)) for loader in loaders}
    assert len(sizes) == 1
    assert lengths == {len(sizes.pop())}


@pytest.mark.parametrize("world", [1, 2, 3, 4, 8, 600])
@pytest.mark.parametrize("remainder", ["pad", "drop", "exact"])
def test_ranks_divide_the_order_of_one_process(dataset, remainder, world):
    """Without the repetitions of padding, the ranks yield the records of one process in its order;
    "drop" omits the last few."""
    order = numbers(Loader(dataset, 1, shuffle=True, seed=3))
    loaders = [
        Loader(dataset, 10, shuffle=True, seed=3, rank=rank, world=world, remainder=remainder)
        for rank in range(world)
    ]
    lengths = [len(loader) for loader in loaders]
    ranks = [[batch.numbers.tolist() for batch in loader] for loader in loaders]
    assert lengths == [len(batches) for batches in ranks]
    steps = zip_longest(*ranks, fillvalue=())
    found = [number for step in steps for batch in step for number in batch]
    kept = COUNT - COUNT % world if remainder == "drop" else COUNT
    assert list(dict.fromkeys(found)) == order[:kept]
    assert len(found) == (-(-COUNT // world) * world if remainder == "pad" else kept)


@pytest.mark.parametrize(
    "how",
    [{"drop_last": True}, {"batch_size": 1, "rank": 0, "world": COUNT + 1, "remainder": "exact"}],
)
def test_a_rank_without_batches_does_not_wait_for_ever(dataset, how):
    assert list(Loader(dataset, **({"batch_size": 1000} | how)).forever()) == []


@pytest.mark.parametrize(
    "how", [{}, {"shuffle": True}, {"blocks": (1000, 1000)}, {"interleave": (2, 5)}]
)
def test_batches_and_blocks_larger_than_the_data_and_files_without_records(dataset, tmp_path, how):
    (tmp_path / "empty").write_bytes(b"")
    empty = Dataset(tmp_path / "empty", format="fixed", size=40)
    assert sorted(numbers(Loader([empty, dataset, empty], 2**31 - 1, **how))) == list(range(COUNT))
    assert list(Loader([empty, empty], 10, **how)) == []


@pytest.mark.parametrize("typed", [False, True])
def test_a_list_without_data_sets_is_refused(tmp_path, typed):
    """Such as that of a pattern that no file matches."""
    for none in ([], (), tmp_path.glob("*.prec")):
        with pytest.raises(ParioError, match=r"Loader: dataset=.*: expected at least one data set"):
            Loader(none, decode=typed)


@pytest.mark.parametrize("workers", [0, 2])
def test_stats_add_up(dataset, workers):
    """Each record was yielded or skipped, also over loops that ended early."""
    os.truncate(dataset.path, 40 * 500)
    loader = Loader(
        dataset, 10, shuffle=True, transform=fail_on_seven, workers=workers, errors="skip"
    )
    given = sum(map(len, islice(loader, 20)))
    assert (
        loader.stats.records + loader.stats.skipped == loader.position == 10 * loader.stats.batches
    )
    given += len(next(iter(loader)))
    given += sum(map(len, loader))
    assert (given, loader.stats.records, loader.stats.skipped, loader.stats.epochs) == (
        499,
        499,
        4,
        3,
    )
    assert loader.stats.batches == 51


def test_stats(dataset):
    loader = Loader(dataset, 10)
    list(loader)
    assert (loader.stats.batches, loader.stats.records, loader.stats.bytes) == (
        51,
        COUNT,
        COUNT * 40,
    )
    assert "waited" in str(loader.stats)
    assert 0 <= loader.stats.stalled <= 1


@pytest.mark.parametrize(
    "how, words",
    [
        ({"batch_size": 0}, "batch_size=0: expected 1 to"),
        ({"batch_size": 2**64}, "batch_size=18446744073709551616: expected 1 to"),
        ({"batch_size": 2.0}, "batch_size=2.0: expected a whole number, 1 to"),
        ({"world": 2**32, "batch_size": 2**32}, "batch_size=4294967296: expected 1 to"),
        ({"seed": -1}, "seed=-1: expected 0 to 18446744073709551615"),
        ({"seed": 2**64}, "seed=18446744073709551616: expected 0 to"),
        ({"blocks": (2**63, 1)}, "blocks=9223372036854775808: expected 1 to"),
        ({"blocks": 5}, "blocks=5: expected two numbers"),
        ({"workers": -1}, "workers=-1: expected 0 to"),
        ({"memory": "1G"}, "memory='1G': expected a whole number, 0 to"),
        ({"rank": 2, "world": 2}, "rank=2: expected 0 to 1"),
        ({"world": 2}, "world=2 without rank: expected the number of this rank"),
        ({"caching": "none"}, "caching='none': expected"),
        ({"errors": "ignore"}, "errors='ignore': expected"),
        ({"prefetch": 0}, "prefetch=0: expected 1 to"),
        ({"remainder": "share"}, "remainder='share': expected 'pad', 'drop' or 'exact'"),
        ({"interleave": (2, 0)}, "interleave=0: expected 1 to"),
        ({"interleave": (2, 2), "shuffle": True}, "interleave is an order of its own"),
    ],
)
def test_bad_arguments(dataset, how, words):
    with pytest.raises(ParioError, match=words):
        Loader(dataset, **how)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: Loader(5), "dataset=5: expected a Dataset, its path, a list of them"),
        (lambda path: Mixture([path]), "Mixture: .*: expected a data set and its weight"),
        (lambda path: Dataset(path, "linez"), "format 'linez': expected one of lines, fixed,"),
        (
            lambda path: list(Loader(path, decode=True).pack_tokens(4, field="t")),
            "pack_tokens: field 't': expected one of n, __number__",
        ),
    ],
)
def test_other_kinds_of_arguments_are_named(tmp_path, make, words):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(ParioError, match=words):
        make(tmp_path / "a.jsonl")


def test_processes_of_torchrun_share_an_epoch_before_they_initialize(dataset, monkeypatch):
    monkeypatch.delenv("PARIO_ONE_PROCESS", raising=False)
    found = []
    for rank in range(3):
        for name in ("RANK", "LOCAL_RANK"):
            monkeypatch.setenv(name, str(rank))
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            monkeypatch.setenv(name, "3")
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
        found.append([batch.numbers.tolist() for batch in Loader(dataset, 4, drop_last=True)])
    alone = [batch.numbers.tolist() for batch in Loader(dataset, 4, rank=0, world=1)]
    joined = [batch for step in zip(*found, strict=True) for batch in step]
    assert joined == alone[: COUNT // 12 * 3]


def test_processes_of_mpiexec_that_read_all_batches_are_warned(dataset, monkeypatch):
    monkeypatch.delenv("PARIO_ONE_PROCESS", raising=False)
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.warns(
        RuntimeWarning, match="mpiexec started 4 processes.* expected rank and world"
    ):
        loader = Loader(dataset, 4)
    assert (loader.rank, loader.world) == (0, 1)
    Loader(dataset, 4, rank=0, world=1)


def test_an_epoch_is_begun_by_its_number(dataset):
    loader = Loader(dataset, 10, shuffle=True, seed=3)
    epochs = [numbers(loader) for _ in range(5)]
    assert loader.state_dict()["epoch"] == 5
    next(iter(loader))
    for epoch in (1, 2, 4):
        loader.set_epoch(epoch)
        assert numbers(loader) == epochs[epoch]
    loader.set_epoch(3)
    next(iter(loader))
    state = loader.state_dict()
    loader.set_epoch(0)
    loader.load_state_dict(state)
    loader.set_epoch(3)
    assert numbers(loader) == epochs[3][10:]
    with pytest.raises(ParioError, match="epoch=-1: expected 0 to"):
        loader.set_epoch(-1)


def test_nothing_to_load(tmp_path):
    (tmp_path / "none").write_bytes(b"")
    loader = Loader(Dataset(tmp_path / "none", format="lines"), 4, shuffle=True)
    assert list(loader) == []
    assert list(loader.forever()) == []


@pytest.mark.system
def test_records_are_copied_once_into_pinned_memory(dataset, monkeypatch):
    """PyTorch pins memory only beside an accelerator, so the request for it is shown here."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    requests, empty = [], torch.empty

    def make(*shape, pin_memory, **options):
        requests.append((*shape, pin_memory))
        return empty(*shape, **options)

    monkeypatch.setattr(torch, "empty", make)
    batch = next(iter(Loader(dataset, 8)))
    for pin in (True, False):
        tensor = batch.torch("<i4", pin=pin)
        assert tensor.tolist() == batch.array("<i4").tolist() and tensor.dtype == torch.int32
    assert requests == [((8, 10), True), ((8, 10), False)]


@pytest.mark.system
def test_torch(dataset):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = next(iter(Loader(dataset, 8))).torch()
    assert tensor.shape == (8, 40)
    loader = Loader(dataset, 10, shuffle=True)
    loaded = torch.utils.data.DataLoader(
        loader.torch(), batch_size=None, num_workers=2, collate_fn=_numbers
    )
    assert list(loaded) == [batch.numbers.tolist() for batch in Loader(dataset, 10, shuffle=True)]
    rows = torch.utils.data.DataLoader(dataset.torch(), batch_size=8, num_workers=0)
    assert next(iter(rows)).shape == (8, 40)


def _numbers(batch):
    return batch.numbers.tolist()
