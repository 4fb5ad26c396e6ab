"""Tensors that are divided among ranks: PyTorch's DTensor, as FSDP and tensor parallelism make them, and its older ShardedTensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape


@dataclass(frozen=True)
class Shards:
    """This rank's part of a tensor."""

    shape: Shape  # of the whole tensor
    parts: tuple[tuple[Any, Shape], ...]  # tensors, and where they begin
    saved_here: bool  # of ranks that hold the same, the first saves it


def shards_of(tensor: Any) -> Shards | None:
    """None where the tensor is not divided."""
    if hasattr(tensor, "device_mesh"):
        return _of_dtensor(tensor)
    if hasattr(tensor, "local_shards"):
        parts = tuple((shard.tensor.detach(), tuple(shard.metadata.shard_offsets)) for shard in tensor.local_shards())
        return Shards(tuple(tensor.size()), parts, saved_here=True)
    return None


def _of_dtensor(tensor: Any) -> Shards:
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:  # this rank has no place in the mesh
        return Shards(tuple(tensor.shape), (), saved_here=False)
    if any(placement.is_partial() for placement in tensor.placements):
        raise CheckpointError(f"a tensor with placements {tensor.placements} is a sum that was not made; expected Shard or Replicate")
    offsets = [tuple(chunk.offsets) for chunk in tensor.__create_chunk_list__()]
    copies = [at for at, placement in zip(coordinate, tensor.placements, strict=True) if placement.is_replicate()]
    return Shards(tuple(tensor.shape), ((tensor.detach().to_local(), offsets[0]),), saved_here=not any(copies))


def parts_to_read(shards: Shards) -> list[tuple[Shape, Shape]]:
    """Where each part of this rank begins, and its shape. They may lie far apart, so that the rank reads nothing between them."""
    return [(at, tuple(local.shape)) for local, at in shards.parts]


def put(shards: Shards, read: Sequence[Any]) -> None:
    """What was read of these parts into them."""
    for (local, _), data in zip(shards.parts, read, strict=True):
        local.copy_(data)
