"""Arrays that are given, in the memory of the host. Those of accelerators are copied by who made them, or who knows their interface."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.types import Array

#: Devices of DLPack that the host reads: its own memory, and such as CUDA and ROCm pin or manage.
_HOST = frozenset((1, 3, 11, 13))


def in_memory(array: Any) -> Array:
    """As an array of numpy, without a copy where the host can read it. Raises CheckpointError where nobody can fetch it."""
    if type(array) is np.ndarray:
        return array
    if hasattr(array, "detach"):  # PyTorch's
        return np.asarray(array.detach().cpu())
    if hasattr(array, "__cuda_array_interface__"):
        return np.asarray(array.get() if hasattr(array, "get") else _fetched(array, "asarray", "as_tensor"))
    if hasattr(array, "__array__") or not hasattr(array, "__dlpack__"):
        return np.asarray(array)
    if array.__dlpack_device__()[0] in _HOST:
        return np.from_dlpack(array)
    return np.asarray(_fetched(array, "from_dlpack", "from_dlpack"))


def _fetched(array: Any, by_cupy: str, by_torch: str) -> Any:
    """A copy, by CuPy or PyTorch, whichever is there."""
    for module, take, fetch in (("cupy", by_cupy, "get"), ("torch", by_torch, "cpu")):
        try:
            found = import_module(module)
        except ImportError:
            continue
        where = {"device": "cuda"} if take == "as_tensor" else {}
        return getattr(getattr(found, take)(array, **where), fetch)()
    raise CheckpointError(f"{type(array).__name__} is in the memory of an accelerator; to copy it, CuPy or PyTorch is needed")
