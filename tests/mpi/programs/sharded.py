"""Saves tensors that PyTorch has divided among ranks, and loads them in another division:
``torchrun ... sharded.py DIRECTORY``."""

import sys

import torch
from tests.support.lateness import give_up_after
from torch import distributed
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec, ShardMetadata
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from pario import checkpoint

EXPECTED = {
    "rows": torch.arange(35.0).reshape(7, 5),
    "columns": torch.arange(35).reshape(7, 5).to(torch.bfloat16),
    "one row": torch.arange(5).reshape(1, 5),
    "same": torch.arange(12.0).reshape(3, 4),
    "both": torch.arange(24.0).reshape(4, 6),
    "plain": torch.arange(6.0),
}
WAYS = {  # saved, and loaded into
    "rows": ([Replicate(), Shard(0)], [Shard(0), Shard(1)]),
    "columns": ([Replicate(), Shard(1)], [Shard(0), Replicate()]),
    "one row": ([Shard(0), Shard(0)], [Replicate(), Shard(1)]),
    "same": ([Replicate(), Replicate()], [Replicate(), Shard(0)]),
    "both": ([Shard(0), Shard(1)], [Replicate(), Replicate()]),
}


OLDER = {  # of ShardedTensor: rank, first row and end of the rows of a shard
    "saved": [(0, 0, 3), (1, 3, 4), (0, 4, 7)],
    "loaded": [(1, 0, 2), (1, 2, 6), (1, 6, 7)],
    "loaded again": [(1, 0, 1), (0, 1, 7)],
}


def older(way: str) -> sharded_tensor.ShardedTensor:
    """Makes a ShardedTensor, PyTorch's class before DTensor; ranks have several shards or none."""
    shards = [
        ShardMetadata([begin, 0], [end - begin, 5], f"rank:{rank}/cpu")
        for rank, begin, end in OLDER[way]
    ]
    made = sharded_tensor.zeros(EnumerableShardingSpec(shards), 7, 5)
    if way == "saved":
        for shard in made.local_shards():
            begin = shard.metadata.shard_offsets[0]
            shard.tensor.copy_(EXPECTED["rows"][begin : begin + shard.metadata.shard_sizes[0]])
    return made


def try_older(ranks: distributed.ProcessGroup, directory: str) -> None:
    with checkpoint.Writer(ranks, directory, durable=False) as writer:
        checkpoint.save_state_dict(writer, 1, {"w": older("saved")})
    whole = checkpoint.load_state_dict(ranks, directory)["w"]
    assert torch.equal(whole, EXPECTED["rows"]), whole
    for way in ("loaded", "loaded again"):
        into = older(way)
        checkpoint.load_state_dict(ranks, directory, into={"w": into})
        for shard in into.local_shards():
            begin = shard.metadata.shard_offsets[0]
            assert torch.equal(
                shard.tensor, EXPECTED["rows"][begin : begin + shard.metadata.shard_sizes[0]]
            ), way


def main(directory: str) -> None:
    distributed.init_process_group("gloo")
    ranks = distributed.group.WORLD
    try_older(ranks, f"{directory}/older")
    mesh = init_device_mesh("cpu", (1, ranks.size()))

    def distribute_state(which: int, content: dict) -> dict:
        return {
            name: distribute_tensor(one, mesh, WAYS[name][which]) if name in WAYS else one
            for name, one in content.items()
        }

    state = {"model": distribute_state(0, EXPECTED), "epoch": 3}
    with checkpoint.Writer(ranks, directory, durable=False) as writer:
        checkpoint.save_state_dict(writer, 1, state)
        checkpoint.save_state_dict(writer, 2, state, background=True)
    into = {
        "model": distribute_state(
            1, {name: torch.zeros_like(one) for name, one in EXPECTED.items()}
        )
    }
    loaded = checkpoint.load_state_dict(ranks, directory, into=into)
    assert loaded["epoch"] == 3
    for name, expected in EXPECTED.items():
        found = loaded["model"][name]
        assert found is into["model"][name]
        assert torch.equal(found.full_tensor() if name in WAYS else found, expected), name
    for content, said in (
        (
            {"model": {"rows": distribute_tensor(torch.zeros(7, 4), mesh, WAYS["rows"][1])}},
            "has shape [7, 5], its target [7, 4]",
        ),
        ({"model": {"new": torch.zeros(1)}}, "has no array 'state/model/new'"),
    ):
        try:
            checkpoint.load_state_dict(ranks, directory, into=content)
            raise AssertionError(said)
        except checkpoint.CheckpointError as error:
            assert said in str(error), error
    with checkpoint.Writer(ranks, directory, durable=False) as writer:
        try:
            half = DTensor.from_local(torch.ones(2, 2), mesh, [Replicate(), Partial()])
            checkpoint.save_state_dict(writer, 3, {"w": half})
            raise AssertionError("a partial sum was saved")
        except checkpoint.CheckpointError as error:
            assert "a sum that was not made" in str(error), error
        if ranks.rank() == 0:
            give_up_after(writer._ranks, 0, patience=1)
            try:
                writer.save(4, {"T": 1})
            except checkpoint.CheckpointError as error:
                print(error)
    distributed.barrier()  # rank 1 has not died while rank 0 waits for it
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
