"""The records of one batch of a Loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, overload

from pario.errors import ParioError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray


class Batch:
    """The records of one batch, in order: read-only views of memory that they share.

    A Loader makes batches; programs only read them, from any thread. A batch can be pickled, which
    copies its records. It is no ``collections.abc.Sequence``, because PyTorch's DataLoader would
    convert every byte of one.

    Attributes
    ----------
    numbers : NDArray[uint64], shape (records,)
        The numbers of the records in the Loader's datasets.

    Examples
    --------
    >>> import numpy as np
    >>> from pario.records import Dataset, Loader
    >>> np.arange(6, dtype="<f4").tofile("values.bin")
    >>> batch = next(iter(Loader(Dataset("values.bin", format="fixed", size=8), batch_size=3)))
    >>> len(batch), batch[0].nbytes, batch.numbers.tolist()
    (3, 8, [0, 1, 2])
    >>> batch.array("<f4").tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """

    def __init__(self, memory: NDArray[Any], numbers: NDArray[Any], places: NDArray[Any]) -> None:
        self.numbers = numbers
        self._memory, self._places = memory, places
        self._view = memoryview(memory.data).toreadonly()

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, which: int) -> memoryview: ...
    @overload
    def __getitem__(self, which: slice) -> list[memoryview]: ...
    def __getitem__(self, which: int | slice) -> memoryview | list[memoryview]:
        if isinstance(which, slice):
            return [self._view[begin:end] for begin, end in self._places[which].tolist()]
        begin, end = self._places[which]
        return self._view[begin:end]

    def __iter__(self) -> Iterator[memoryview]:
        return iter(self[:])

    def __reduce__(self) -> tuple[type[Batch], tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Copies the records alone, because other batches may share the memory."""
        import numpy as np

        lengths = self._places[:, 1] - self._places[:, 0]
        ends = np.cumsum(lengths, dtype=np.uint64)
        memory = np.frombuffer(b"".join(self), np.uint8)
        return Batch, (memory, self.numbers, np.stack([ends - lengths, ends], axis=1))

    def array(self, dtype: Any = "uint8") -> NDArray[Any]:
        """The records as the rows of an array: a view if they are evenly spaced, otherwise a copy.

        Parameters
        ----------
        dtype : dtype-like
            The type of the elements, whose size divides the length of a record.

        Returns
        -------
        NDArray, shape (records, length // itemsize)

        Raises
        ------
        ParioError
            The records differ in length, or the batch is empty.
        """
        import numpy as np

        lengths = self._places[:, 1] - self._places[:, 0]
        if len(lengths) == 0 or (lengths != lengths[0]).any():
            raise ParioError(
                f"records of a batch differ in length, from {min(lengths, default=0)} to"
                f" {max(lengths, default=0)} bytes"
            )
        begins, length = self._places[:, 0].astype(np.int64), int(lengths[0])
        steps = np.diff(begins)
        if len(steps) == 0 or (steps == steps[0]).all():
            step = int(steps[0]) if len(steps) else length
            rows = np.lib.stride_tricks.as_strided(
                self._memory[int(begins[0]) :], (len(begins), length), (step, 1), writeable=False
            )
        else:
            rows = np.stack([self._memory[begin : begin + length] for begin in begins.tolist()])
        return rows if np.dtype(dtype) == np.uint8 else np.ascontiguousarray(rows).view(dtype)

    def torch(self, dtype: Any = "uint8", pin: bool = False) -> torch.Tensor:
        """A copy of ``array(dtype)`` as a tensor.

        Parameters
        ----------
        dtype : dtype-like
            As of :meth:`array`.
        pin : bool
            Copy the records directly into pinned memory, from which
            ``tensor.to(device, non_blocking=True)`` copies them in the background.

        Returns
        -------
        torch.Tensor, shape (records, length // itemsize)

        Raises
        ------
        ParioError
            As of :meth:`array`.
        ImportError
            PyTorch is not installed.
        """
        return copy_to_tensor(self.array(dtype), pin)


def copy_to_tensor(array: NDArray[Any], pin: bool) -> torch.Tensor:
    """A copy of an array as a tensor, in pinned memory if ``pin``. Needs PyTorch."""
    import numpy as np
    import torch

    kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
    tensor = torch.empty(array.shape, dtype=kind, pin_memory=pin)
    tensor.numpy()[...] = array
    return tensor
