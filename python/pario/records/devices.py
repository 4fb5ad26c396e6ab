"""The batches of a loader on a device: copies that run while the program computes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from pario.errors import ParioError
from pario.leaves import map_leaves
from pario.records.batch import Batch, copy_to_tensor
from pario.records.epochs import Epochs
from pario.records.passes import Place
from pario.records.state import check_whole

#: Kinds of numpy's types that devices have: truth values, numbers.
_NUMBERS = "biufc"


def prefetch_to_device(loader: Epochs, device: Any, batches: int = 1) -> OnDevice:
    """A loader of the same batches on a device, whose copies run while the program computes.

    The arrays and tensors of a batch, which may be a dictionary, list or tuple of them, become
    tensors of PyTorch or arrays of JAX; other values stay. A ``Batch``, whose records must be
    equally long, becomes one of bytes, of shape (records, length).

    Parameters
    ----------
    loader : Loader, or result of one of its methods
        From now on to be used through the result only.
    device : str, torch.device, jax.Device or jax.sharding.Sharding
        Copies to ``"cuda"`` go through pinned memory, on a stream of their own. With a sharding
        the batches of all processes together are one global array.
    batches : int
        Batches that are copied before the program asks for them.

    Returns
    -------
    OnDevice
        It iterates and resumes as ``loader``: its state counts the batches returned, not those
        copied.

    Raises
    ------
    ParioError
        An argument is of another kind. While iterating: as of ``loader``, and of
        :meth:`Batch.array`.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from pario.records import Dataset, Loader, prefetch_to_device
    >>> np.arange(4, dtype="<f4").tofile("floats.bin")
    >>> loader = Loader(Dataset("floats.bin", format="fixed", size=4), batch_size=2)
    >>> for batch in prefetch_to_device(loader, "cpu"):
    ...     print(batch.view(torch.float32).ravel().tolist())
    [0.0, 1.0]
    [2.0, 3.0]
    """
    ahead = check_whole("prefetch_to_device: batches", batches, 0)
    return OnDevice(loader, _find_device(device), ahead)


class Device(Protocol):
    """Copies batches to a device."""

    def begin(self, batch: Any) -> Any:
        """Begins to copy a batch; its copy for ``finish``."""

    def finish(self, begun: Any) -> Any:
        """The copy, for work that the program starts from now on."""


class OnDevice(Epochs):
    """The batches of another loader on a device; ``prefetch_to_device`` makes it."""

    def __init__(self, loader: Epochs, device: Device, ahead: int) -> None:
        super().__init__(loader.place)
        self.count, self.stats = loader.count, loader.stats
        self._loader, self._device, self._ahead = loader, device, ahead

    def __len__(self) -> int:
        return len(self._loader)

    def part(self, stride: int, offset: int) -> Iterator[Any]:
        """The share of one of ``stride`` workers: every ``stride``-th batch from ``offset`` on,
        counted from the current position.
        """
        begun: deque[tuple[Any, Place]] = deque()
        self._loader.go_to(self.place)
        for batch in self._loader.part(stride, offset):
            begun.append((self._device.begin(batch), self._loader.place))
            if len(begun) > self._ahead:
                yield self._finish(*begun.popleft())
        while begun:
            yield self._finish(*begun.popleft())

    def _finish(self, begun: Any, after: Place) -> Any:
        self.go_to(after)
        return self._device.finish(begun)

    def place_after(self, place: Place, batches: int) -> Place:
        """The place after this rank's first ``batches`` batches that follow ``place``."""
        return self._loader.place_after(place, batches)

    def division(self) -> tuple[int, int, int, str]:
        """The division of an epoch: batch size, ranks, this rank, treatment of the remainder."""
        return self._loader.division()

    def whole_order(self) -> list[Any]:
        """Names and numbers that determine the order, beside seed and epoch."""
        return self._loader.whole_order()

    def normalize(self, place: Place) -> Place:
        """The place; after the last batch of an epoch the beginning of the next one."""
        return self._loader.normalize(place)


class _TorchDevice:
    """A device of PyTorch. Copies to CUDA run on a stream of their own, in turn."""

    def __init__(self, device: Any) -> None:
        import torch

        self._torch, self._device = torch, torch.device(device)
        self._stream = torch.cuda.Stream(self._device) if self._device.type == "cuda" else None

    def begin(self, batch: Any) -> Any:
        """The copies, which may still run, and an event that ends them."""
        if not self._stream:
            return map_leaves(self._copy, batch), None
        with self._torch.cuda.stream(self._stream):
            return map_leaves(self._copy, batch), self._stream.record_event()

    def finish(self, begun: Any) -> Any:
        """Lets the program's stream wait for the copies, and own their memory."""
        batch, event = begun
        if event:
            stream = self._torch.cuda.current_stream(self._device)
            stream.wait_event(event)
            map_leaves(lambda value: self._lend(value, stream), batch)
        return batch

    def _copy(self, value: Any) -> Any:
        value, pin = _find_array(value), self._stream is not None
        if _has_numbers(value):
            value = copy_to_tensor(value, pin)
        elif pin and self._torch.is_tensor(value) and value.device.type == "cpu":
            value = value.pin_memory()
        return value.to(self._device, non_blocking=True) if self._torch.is_tensor(value) else value

    def _lend(self, value: Any, stream: Any) -> None:
        """Keeps memory from the next copies until the work of the program on it has ended."""
        if self._torch.is_tensor(value):
            value.record_stream(stream)


class _JaxDevice:
    """A device or sharding of JAX, whose copies run by themselves."""

    def __init__(self, jax: Any, device: Any) -> None:
        self._jax, self._device = jax, device

    def begin(self, batch: Any) -> Any:
        """The arrays, which JAX copies."""
        return map_leaves(self._put, batch)

    def finish(self, begun: Any) -> Any:
        """The arrays, for which JAX waits."""
        return begun

    def _put(self, value: Any) -> Any:
        value = _find_array(value)
        if not _has_numbers(value):
            return value
        if isinstance(self._device, self._jax.sharding.Sharding):
            return self._jax.make_array_from_process_local_data(self._device, value)
        return self._jax.device_put(value, self._device)


def _find_array(value: Any) -> Any:
    return value.array() if isinstance(value, Batch) else value


def _has_numbers(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS


def _find_device(device: Any) -> Device:
    """The device of PyTorch or JAX that is meant."""
    jax = sys.modules.get("jax")
    if jax and isinstance(device, jax.Device | jax.sharding.Sharding):
        return _JaxDevice(jax, device)
    try:
        return _TorchDevice(device)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ParioError(
            f"prefetch_to_device: device {device!r}: expected a usable device of PyTorch, or a"
            f" device or sharding of JAX: {str(error).splitlines()[0]}"
        ) from error
