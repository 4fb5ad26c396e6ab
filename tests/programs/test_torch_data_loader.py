"""PyTorch's DataLoader over a Loader yields the Loader's batches in every epoch."""

from __future__ import annotations

import json
import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pario.errors import ParioError
from pario.records import Batch, Dataset, Loader

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]

COUNT, BATCH = 203, 4
Batches = list[list[int]]
#: Number of worker processes of a DataLoader, and whether they are persistent.
LOOPS = [
    (0, False),
    (1, False),
    pytest.param((1, True), marks=pytest.mark.exhaustive),
    (4, False),
    (4, True),
]
#: Numbers of batches after which a pass ends with ``break``.
FEW = 3


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def stateful(torch: Any) -> Any:
    """Returns torchdata's StatefulDataLoader class, or skips the test."""
    reason = "torchdata is not installed"
    return pytest.importorskip("torchdata.stateful_dataloader", reason=reason).StatefulDataLoader


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Records of 8 bytes that hold their numbers."""
    np.arange(COUNT, dtype="<u8").tofile(tmp_path / "numbers.bin")
    return Dataset(tmp_path / "numbers.bin", format="fixed", size=8)


def numbers(batch: Batch) -> list[int]:
    assert [int.from_bytes(record, "little") for record in batch] == batch.numbers.tolist()
    return batch.numbers.tolist()  # type: ignore[no-any-return]


def make_loader(dataset: Dataset, world: int = 1, rank: int = 0, **options: Any) -> Loader:
    return Loader(dataset, BATCH, shuffle=True, seed=3, rank=rank, world=world, **options)


def list_epochs(dataset: Dataset, count: int) -> list[list[int]]:
    """Returns the record numbers of each epoch in the order of one process, without PyTorch."""
    loader = make_loader(dataset)
    return [join(map(numbers, loader)) for _ in range(count)]


def start(kind: Any, loader: Loader, loop: tuple[int, bool], **options: Any) -> Any:
    """Makes a DataLoader of a class over the Loader."""
    workers, persistent = loop
    options = {"collate_fn": numbers} | options
    return kind(
        loader.torch(),
        batch_size=None,
        num_workers=workers,
        persistent_workers=persistent,
        **options,
    )


def take(data_loader: Any, count: int | None = None) -> Batches:
    """Returns the batches of one pass, or its first ``count`` batches."""
    return list(islice(iter(data_loader), count))


def join(*batches: Iterable[list[int]]) -> list[int]:
    """Joins the records of batches."""
    return [number for one in chain(*batches) for number in one]


class Ranks:
    """The ranks of a job: those in ``measured`` load with DataLoaders, the others with Loaders
    alone."""

    def __init__(
        self, dataset: Dataset, world: int, measured: Sequence[int], remainder: str
    ) -> None:
        self.remainder = remainder
        self.loaders = [
            make_loader(dataset, world, rank, remainder=remainder) for rank in range(world)
        ]
        self.others = [loader for rank, loader in enumerate(self.loaders) if rank not in measured]
        self.data_loaders: dict[int, Any] = dict.fromkeys(measured)

    def start(self, kind: Any, loop: tuple[int, bool]) -> None:
        for rank in self.data_loaders:
            self.data_loaders[rank] = start(kind, self.loaders[rank], loop)

    def take(self, epoch: int, done: int = 0, count: int | None = None) -> list[Batches]:
        """Returns for each rank the batches of a pass that is to begin after ``done`` steps."""
        place = {"epoch": epoch, "position": done * BATCH * len(self.loaders)}
        for loader in self.others:
            loader.load_state_dict(loader.state_dict() | place)
        return [
            take(self.data_loaders[rank], count)
            if rank in self.data_loaders
            else list(map(numbers, islice(loader, count)))
            for rank, loader in enumerate(self.loaders)
        ]

    def check_rest(self, order: list[int], epoch: int, done: int = 0) -> list[int]:
        """Takes the rest of an epoch; returns the number of batches of the measured ranks."""
        ranks, world = self.take(epoch, done), len(self.loaders)
        order = order[done * BATCH * world :]
        found = join(*zip_longest(*ranks, fillvalue=[]))
        if self.remainder == "exact":
            assert found == order
        else:
            assert len({tuple(map(len, batches)) for batches in ranks}) == 1
            kept = len(order) // world * world if self.remainder == "drop" else len(order)
            assert list(dict.fromkeys(found)) == order[:kept]
            assert len(found) == (kept if self.remainder == "drop" else -(-kept // world) * world)
        return [len(ranks[rank]) for rank in self.data_loaders]

    def check_first(self, order: list[int], epoch: int) -> None:
        """Takes the first steps of an epoch."""
        assert (
            join(*zip(*self.take(epoch, count=FEW), strict=True))
            == order[: FEW * BATCH * len(self.loaders)]
        )


def check_each_pass_is_the_next_epoch(ranks: Ranks, again: Ranks, orders: list[list[int]]) -> None:
    lengths = [len(one) for one in ranks.data_loaders.values()]
    for epoch, order in enumerate(orders):
        assert ranks.check_rest(order, epoch) == lengths


def check_after_a_break_the_next_epoch_begins(
    ranks: Ranks, again: Ranks, orders: list[list[int]]
) -> None:
    ranks.check_first(orders[0], 0)
    ranks.check_rest(orders[1], 1)
    ranks.check_first(orders[2], 2)
    ranks.check_rest(orders[3], 3)


def check_a_state_continues_here_and_in_another_program(
    ranks: Ranks, again: Ranks, orders: list[list[int]]
) -> None:
    ranks.check_rest(orders[0], 0)
    ranks.check_first(orders[1], 1)
    states = {
        json.dumps(ranks.loaders[rank].torch().state_after(FEW)) for rank in ranks.data_loaders
    }
    state = json.loads(states.pop())
    assert not states
    for each in (ranks, again):
        for loader in each.loaders:
            loader.load_state_dict(state)
        each.check_rest(orders[1], 1, FEW)
        each.check_rest(orders[2], 2)


def check_torchdata_continues(ranks: Ranks, again: Ranks, orders: list[list[int]]) -> None:
    ranks.check_rest(orders[0], 0)
    ranks.check_first(orders[1], 1)
    for rank, data_loader in ranks.data_loaders.items():
        state = pickle.dumps(data_loader.state_dict())
        again.data_loaders[rank].load_state_dict(pickle.loads(state))
    again.check_rest(orders[1], 1, FEW)
    again.check_rest(orders[2], 2)


@pytest.mark.parametrize("remainder", ["pad", "drop", "exact"])
@pytest.mark.parametrize(
    ("world", "measured"),
    [
        (1, (0,)),
        (2, (0, 1)),
        (4, (0, 3)),
        (8, (0, 7)),
        pytest.param(4, range(4), marks=pytest.mark.exhaustive),
        pytest.param(8, range(8), marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("loop", LOOPS, ids=str)
@pytest.mark.parametrize(
    "check",
    [
        check_each_pass_is_the_next_epoch,
        check_after_a_break_the_next_epoch_begins,
        check_a_state_continues_here_and_in_another_program,
        check_torchdata_continues,
    ],
)
def test_ranks_have_the_records_and_the_order_of_one_process(
    torch: Any,
    request: pytest.FixtureRequest,
    dataset: Dataset,
    check: Callable[[Ranks, Ranks, list[list[int]]], None],
    loop: tuple[int, bool],
    world: int,
    measured: Sequence[int],
    remainder: str,
) -> None:
    """Every record comes once per epoch, unless ``remainder`` repeats or drops it at the end."""
    kind = torch.utils.data.DataLoader
    if check is check_torchdata_continues:
        kind = request.getfixturevalue("stateful")
    job, again = (Ranks(dataset, world, measured, remainder) for _ in range(2))
    for each in (job, again):
        each.start(kind, loop)
    check(job, again, list_epochs(dataset, 4))


@pytest.mark.parametrize("world", [1, 3])
def test_a_state_continues_the_epoch_on_other_ranks_and_workers(
    torch: Any, dataset: Dataset, world: int
) -> None:
    (order,) = list_epochs(dataset, 1)
    loader = make_loader(dataset, 2, 1)
    take(start(torch.utils.data.DataLoader, loader, (2, False)), FEW)
    state, ranks = loader.torch().state_after(FEW), []
    for rank in range(world):
        other = make_loader(dataset, world, rank, remainder="exact")
        other.load_state_dict(state)
        ranks.append(take(start(torch.utils.data.DataLoader, other, (1, False))))
    assert join(*zip_longest(*ranks, fillvalue=[])) == order[2 * FEW * BATCH :]


@pytest.mark.parametrize(
    ("method", "persistent"),
    [
        ("spawn", True),
        ("spawn", False),
        ("forkserver", True),
        ("forkserver", False),
    ],
)
@pytest.mark.exhaustive
def test_workers_agree_however_they_are_started(
    torch: Any, dataset: Dataset, method: str, persistent: bool
) -> None:
    data_loader = start(
        torch.utils.data.DataLoader,
        make_loader(dataset),
        (2, persistent),
        multiprocessing_context=method,
    )
    for order in list_epochs(dataset, 2):
        assert join(take(data_loader)) == order


@pytest.mark.parametrize("loop", [(0, False), (2, False), (2, True)], ids=str)
def test_a_program_that_seeds_each_epoch_alike_gets_the_next_one(
    torch: Any, dataset: Dataset, loop: tuple[int, bool]
) -> None:
    """The seed by which workers recognize each other is then the same in each pass."""
    data_loader = start(torch.utils.data.DataLoader, make_loader(dataset), loop)
    for order in list_epochs(dataset, 3):
        torch.manual_seed(0)
        assert join(take(data_loader)) == order


def note_record(record: memoryview) -> int:
    """Appends the record to a file, so that a test sees every record that was read."""
    with open(os.environ["NOTED_RECORDS"], "ab", buffering=0) as file:  # noqa: PTH123
        file.write(record)
    return int.from_bytes(record, "little")


class TestTorchdata:
    @pytest.mark.parametrize("loop", [(0, False), (2, True)], ids=str)
    def test_resuming_reads_no_record_again(
        self,
        stateful: Any,
        dataset: Dataset,
        loop: tuple[int, bool],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        first, after = (
            start(stateful, make_loader(dataset, transform=note_record), loop, collate_fn=list)
            for _ in range(2)
        )
        monkeypatch.setenv("NOTED_RECORDS", os.devnull)
        taken = [number for batch in islice(first, FEW) for number in batch]
        after.load_state_dict(first.state_dict())
        monkeypatch.setenv("NOTED_RECORDS", str(tmp_path / "noted"))
        with caplog.at_level(logging.WARNING):
            rest = [number for batch in after for number in batch]
        assert taken + rest == list_epochs(dataset, 1)[0]
        assert sorted(np.fromfile(tmp_path / "noted", "<u8").tolist()) == sorted(rest)
        assert not [record for record in caplog.records if "fast-forward" in record.message]

    @pytest.mark.parametrize("taken", [0, 50, None])
    @pytest.mark.parametrize("loop", [(0, False), (2, False), (2, True)], ids=str)
    def test_states_at_the_ends_of_an_epoch(
        self, stateful: Any, dataset: Dataset, loop: tuple[int, bool], taken: int | None
    ) -> None:
        """Saves the state before the first batch, after the last batch, and after the end of the
        iteration."""
        first, second = list_epochs(dataset, 2)
        data_loader, after = (start(stateful, make_loader(dataset), loop) for _ in range(2))
        begun = [number for batch in islice(iter(data_loader), taken) for number in batch]
        after.load_state_dict(data_loader.state_dict())
        rest = [number for batch in after for number in batch]
        if taken is None:
            assert (begun, rest) == (first, second)
        else:
            assert begun + rest == first
            assert [number for batch in after for number in batch] == second

    def test_a_state_of_other_batches_is_refused(self, stateful: Any, dataset: Dataset) -> None:
        data_loader = start(stateful, make_loader(dataset), (0, False))
        next(iter(data_loader))
        other = start(stateful, Loader(dataset, 5, shuffle=True, seed=3), (0, False))
        other.load_state_dict(data_loader.state_dict())
        with pytest.raises(
            ParioError, match=r"share were \[4, 1, 0, 'pad', 1, 0\], now they are \[5,"
        ):
            next(iter(other))


def test_a_loader_whose_batches_workers_read_has_no_state(torch: Any, dataset: Dataset) -> None:
    loader = make_loader(dataset)
    with pytest.raises(ParioError, match="expected after a pass over a DataLoader has begun"):
        loader.torch().state_after(0)
    next(iter(start(torch.utils.data.DataLoader, loader, (1, False))))
    with pytest.raises(ParioError, match=r"expected loader.torch\(\).state_after\(batches\)"):
        loader.state_dict()
    with pytest.raises(ParioError, match="batches=52: expected 0 to 51"):
        loader.torch().state_after(52)
    loader.load_state_dict(loader.torch().state_after(51))
    assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (1, 0)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_pass_is_the_epoch_that_is_set(
    torch: Any, dataset: Dataset, loop: tuple[int, bool]
) -> None:
    epochs, loader = list_epochs(dataset, 6), make_loader(dataset)
    data_loader = start(torch.utils.data.DataLoader, loader, loop)
    for epoch in (0, 1, 4, 5, 2):
        loader.set_epoch(epoch)
        assert join(take(data_loader)) == epochs[epoch]
    loader.load_state_dict(loader.torch().state_after(FEW))
    loader.set_epoch(2)
    assert join(take(data_loader)) == epochs[2][FEW * BATCH :]


def test_without_workers_the_loader_has_its_state(torch: Any, dataset: Dataset) -> None:
    loader = make_loader(dataset)
    data_loader = start(torch.utils.data.DataLoader, loader, (0, False))
    take(data_loader)
    take(data_loader, FEW)
    assert loader.state_dict() == loader.torch().state_after(FEW)


def reverse(record: memoryview) -> memoryview:
    return memoryview(bytes(record)[::-1])


@pytest.mark.parametrize("workers", [0, 2])
def test_records_stay_bytes_without_a_collate_function(
    torch: Any, dataset: Dataset, workers: int
) -> None:
    def load(loader: Loader) -> Iterator[Any]:
        return iter(torch.utils.data.DataLoader(loader.torch(), None, num_workers=workers))

    expected = next(iter(make_loader(dataset)))
    batch = next(load(make_loader(dataset)))
    assert isinstance(batch, Batch)
    assert (numbers(batch), batch.array().tolist()) == (
        numbers(expected),
        expected.array().tolist(),
    )
    reversed_records = next(load(make_loader(dataset, transform=reverse)))
    assert reversed_records == [bytes(record)[::-1] for record in expected]


def test_a_dataset_gives_whole_records_to_a_data_loader(torch: Any, dataset: Dataset) -> None:
    batches = list(torch.utils.data.DataLoader(dataset, batch_size=BATCH))
    assert [bytes(record) for record in dataset] == list(chain.from_iterable(batches))


@pytest.mark.parametrize("options", [{}, {"batch_size": 8}, {"num_workers": 1}])
def test_a_data_loader_that_would_make_batches_of_batches_is_refused(
    torch: Any, dataset: Dataset, options: dict[str, Any]
) -> None:
    loader = make_loader(dataset, transform=reverse)
    with pytest.raises(ParioError, match="expected batch_size=None"):
        next(iter(torch.utils.data.DataLoader(loader.torch(), **options)))


def test_a_function_of_the_user_may_collate_batches(torch: Any, dataset: Dataset) -> None:
    def join_batches(batches: list[Batch]) -> list[int]:
        return join(map(numbers, batches))

    data_loader = torch.utils.data.DataLoader(
        make_loader(dataset).torch(), batch_size=3, collate_fn=join_batches
    )
    assert join(data_loader) == list_epochs(dataset, 1)[0]
