"""PyTorch's DataLoader over pipelines of a Loader gives what a process without pario computes: for
workers, persistence, breaks, resumed states, epochs, world sizes, sources and formats."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pario.records import Dataset
from tests.programs.pipelines import (
    FORMATS,
    KNOWN,
    RULES,
    contents,
    join,
    list_expected,
    make_loader,
    make_sample,
    make_spec,
    unify,
    write_files,
)

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
Batches = list[list[Any]]
#: Numbers of batches after which a pass ends with ``break``.
FEW = 2


class Job:
    """The ranks of a job: each has a DataLoader over its Loader."""

    def __init__(
        self, kind: Any, files: Sequence[Dataset], spec: dict[str, Any], world: int, loop: Any
    ) -> None:
        self.spec, (workers, persistent) = spec, loop
        self.loaders = [make_loader(files, spec, rank, world) for rank in range(world)]
        self.data_loaders = [
            kind(
                loader.torch(),
                batch_size=None,
                num_workers=workers,
                persistent_workers=persistent,
                collate_fn=contents,
            )
            for loader in self.loaders
        ]

    def read(self, count: int | None = None) -> list[Any]:
        """The batches of a pass in order, or the first ones of each rank."""
        ranks = [list(islice(iter(one), count)) for one in self.data_loaders]
        return join(self.spec, ranks)


def check_each_pass_is_the_next_epoch(job: Job, again: Job) -> None:
    for epoch in range(3):
        assert job.read() == list_expected(job.spec, epoch)


def check_after_a_break_the_next_epoch_begins(job: Job, again: Job) -> None:
    first = job.read(FEW)
    assert first == list_expected(job.spec, 0)[: len(first)]
    assert job.read() == list_expected(job.spec, 1)


def check_a_state_continues_here_and_in_another_program(job: Job, again: Job) -> None:
    job.read()
    begun = job.read(FEW)
    states = {json.dumps(loader.torch().state_after(FEW)) for loader in job.loaders}
    (state,) = map(json.loads, states)
    for each in (job, again):
        for loader in each.loaders:
            loader.load_state_dict(state)
        assert begun + each.read() == list_expected(job.spec, 1)
        assert each.read() == list_expected(job.spec, 2)


def check_torchdata_continues(job: Job, again: Job) -> None:
    job.read()
    begun = job.read(FEW)
    for one, other in zip(job.data_loaders, again.data_loaders, strict=True):
        other.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
    assert begun + again.read() == list_expected(job.spec, 1)
    assert again.read() == list_expected(job.spec, 2)


@pytest.fixture(scope="module")
def files_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Dataset]]:
    """Returns the files of a format, which are written once."""
    return cache(lambda format: write_files(tmp_path_factory.mktemp(format), format))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("keep", [0, 3])
@pytest.mark.parametrize("mixed", [False, True], ids=["files", "mixture"])
@pytest.mark.parametrize("rule", [*RULES, *KNOWN])
@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("loop", [(0, False), (1, False), (2, False), (2, True)], ids=str)
@pytest.mark.parametrize(
    "check",
    [
        check_each_pass_is_the_next_epoch,
        check_after_a_break_the_next_epoch_begins,
        check_a_state_continues_here_and_in_another_program,
        check_torchdata_continues,
    ],
)
def test_a_data_loader_gives_expected_batches(
    files_of: Callable[[str], list[Dataset]],
    check: Callable[[Job, Job], None],
    loop: tuple[int, bool],
    world: int,
    rule: str,
    mixed: bool,
    keep: int,
    format: str,
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    kind = torch.utils.data.DataLoader
    if check is check_torchdata_continues:
        module = pytest.importorskip("torchdata.stateful_dataloader")
        kind = module.StatefulDataLoader
    files = files_of(format)
    job, again = (Job(kind, files, make_spec(rule, mixed, keep), world, loop) for _ in range(2))
    check(job, again)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("format", FORMATS)
def test_a_map_style_data_set_has_samples_by_number(
    tmp_path: Path, format: str, workers: int
) -> None:
    """For samplers of PyTorch: a batch is read together."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    file, _ = write_files(tmp_path, format)
    samples = file.torch(decode=True)
    assert unify(samples[5]) == make_sample(5)
    assert list(map(unify, samples.__getitems__([7, -1, 0]))) == [
        make_sample(7),
        make_sample(len(file) - 1),
        make_sample(0),
    ]
    data_loader = torch.utils.data.DataLoader(
        samples,
        batch_size=8,
        sampler=range(20, 0, -1),
        num_workers=workers,
        collate_fn=list,
    )
    assert [unify(one) for batch in data_loader for one in batch] == [
        make_sample(number) for number in range(20, 0, -1)
    ]


def run_rank(rank: int, world: int, files: Sequence[Dataset], folder: str) -> None:
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world
    )
    loader = make_loader(files, make_spec("records", False, 0), None, None)
    batches = [contents(batch) for batch in loader]
    (Path(folder) / f"{rank}.json").write_text(json.dumps([loader.rank, loader.world, batches]))
    torch.distributed.destroy_process_group()


def test_rank_and_world_are_those_of_torch_distributed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch.multiprocessing", reason="PyTorch is not installed")
    files = write_files(tmp_path)
    torch.spawn(run_rank, (2, files, str(tmp_path)), nprocs=2)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [one[:2] for one in found] == [[0, 2], [1, 2]]
    spec = make_spec("records", False, 0)
    assert join(spec, [batches for _, _, batches in found]) == list_expected(spec, 0)
