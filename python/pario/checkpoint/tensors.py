"""Tensors of PyTorch, whole or divided among ranks. PyTorch is imported only where it is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pario.checkpoint.container import TORCH_TYPE
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape

#: Types of the same size for elements that numpy does not have.
_UNSIGNED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def is_tensor(value: Any) -> bool:
    """True for a tensor of PyTorch, which is not imported for this."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_array(tensor: Any) -> tuple[np.ndarray[Any, Any], str]:
    """The elements of a tensor as an array, of any strides, and their type. Copied only from
    accelerators, and where a conjugate is not yet computed."""
    kind = kind_of(tensor)
    held = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        return held.numpy(), kind
    except TypeError:
        unsigned = getattr(sys.modules["torch"], _UNSIGNED[held.element_size()])
        return held.view(unsigned).numpy(), kind


def kind_of(tensor: Any) -> str:
    """The type of a tensor's elements as PyTorch names it: ``bfloat16``."""
    return str(tensor.dtype).removeprefix("torch.")


def attrs_of(kind: str) -> dict[str, str]:
    """The attributes of an array with the elements of a tensor: their type, if numpy does not have
    it."""
    return {} if hasattr(np, kind) else {TORCH_TYPE: kind}


def to_tensor(array: np.ndarray[Any, Any], kind: str) -> Any:
    """A tensor in an array's memory. ``kind``: the type of elements that numpy does not have."""
    try:
        import torch
    except ImportError as error:
        raise CheckpointError(f"tensors of type {kind} need PyTorch: pip install torch") from error
    made = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))
    return made.view(getattr(torch, kind)) if kind else made


@dataclass(frozen=True)
class Shards:
    """This rank's parts of a tensor that PyTorch divides among ranks."""

    shape: Shape  # of the whole tensor
    parts: tuple[tuple[Any, Shape], ...]  # tensors, and their offsets
    saved_here: bool  # False on ranks with copies of another rank's parts


def shards_of(tensor: Any) -> Shards | None:
    """The parts of a DTensor, as FSDP and tensor parallelism make them, or of a ShardedTensor; None
    for other tensors."""
    if hasattr(tensor, "device_mesh"):
        return _shards_of_dtensor(tensor)
    if hasattr(tensor, "local_shards"):
        parts = tuple(
            (shard.tensor.detach(), tuple(shard.metadata.shard_offsets))
            for shard in tensor.local_shards()
        )
        return Shards(tuple(tensor.size()), parts, saved_here=True)
    return None


def _shards_of_dtensor(tensor: Any) -> Shards:
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:  # this rank is not in the mesh
        return Shards(tuple(tensor.shape), (), saved_here=False)
    if any(placement.is_partial() for placement in tensor.placements):
        raise CheckpointError(
            f"a tensor with placements {tensor.placements} is a sum that was not made; expected"
            " Shard or Replicate"
        )
    offsets = [tuple(chunk.offsets) for chunk in tensor.__create_chunk_list__()]
    copies = [
        at
        for at, placement in zip(coordinate, tensor.placements, strict=True)
        if placement.is_replicate()
    ]
    parts = ((tensor.detach().to_local(), offsets[0]),)
    return Shards(tuple(tensor.shape), parts, saved_here=not any(copies))


def parts_to_read(shards: Shards) -> list[tuple[Shape, Shape]]:
    """Offset and shape of each part of this rank."""
    return [(at, tuple(local.shape)) for local, at in shards.parts]


def copy_to_shards(shards: Shards, read: Sequence[Any]) -> None:
    """Copies tensors that were read into this rank's parts."""
    for (local, _), data in zip(shards.parts, read, strict=True):
        local.copy_(data)
