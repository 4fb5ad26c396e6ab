"""The rules by which checkpoints stay in a directory, and the marks of those being read."""

from __future__ import annotations

import fcntl
import os
import struct
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isnan
from numbers import Real
from pathlib import Path

from pario import hdf5
from pario.checkpoint.errors import CheckpointError, require_positive
from pario.checkpoint.metadata_table import check_metadata
from pario.checkpoint.store import Found, document

#: ``struct flock`` of Linux: type, origin, begin, length (0: to the end), process (0 for locks of
#: open files).
_LOCK = struct.Struct("hhqqi4x")


@dataclass(frozen=True)
class Keep:
    """Rules for the checkpoints that stay in a directory: one that any rule keeps stays.

    For ``keep`` of :class:`Writer`. The newest checkpoint always stays.

    Parameters
    ----------
    last : int, optional
        Number of newest checkpoints that stay.
    every : int, optional
        Checkpoints whose step is a multiple of this number stay.
    best : int, optional
        Number of checkpoints with the best values of ``metric`` that stay; of equal ones the newer.
    metric : str, optional
        Attribute of :meth:`Writer.save` with a number. Checkpoints without it, and with NaN, are
        not among the best.
    highest : bool, optional
        The highest values are the best; by default the lowest.

    Raises
    ------
    CheckpointError
        If a number is below 1, or only one of ``best`` and ``metric`` is given.

    Examples
    --------
    >>> import tempfile
    >>> from pario import checkpoint
    >>> rules = checkpoint.Keep(last=1, every=30, best=1, metric="loss")
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with checkpoint.Writer(None, path, keep=rules) as writer:
    ...         for step, loss in ((10, 0.9), (20, 0.2), (30, 0.4), (40, 0.5), (50, 0.3)):
    ...             saved = writer.save(step, {"T": 1.0}, {"loss": loss})
    ...     sorted(found.name for found in saved.parent.glob("step-*"))
    ['step-00000020.h5', 'step-00000030.h5', 'step-00000050.h5']
    """

    last: int = 1
    every: int | None = None
    best: int | None = None
    metric: str = ""
    highest: bool = False

    def __post_init__(self) -> None:
        for name in ("last", "every", "best"):
            value = getattr(self, name)
            if value is not None:
                require_positive(name, value)
        if bool(self.metric) != bool(self.best):
            raise CheckpointError(
                f"best={self.best}, metric={self.metric!r}; expected both or neither"
            )


def select_kept(keep: Keep, found: Sequence[Found], metrics: Mapping[Path, float]) -> list[Found]:
    """The checkpoints that rules keep. Pure. ``found``: oldest first; ``metrics``: by path, of the
    checkpoints with a metric."""
    sign = -1 if keep.highest else 1
    ranked = [one for one in reversed(found) if one.path in metrics]
    ranked.sort(key=lambda one: sign * metrics[one.path])
    kept = {one.path for one in (*found[-keep.last :], *ranked[: keep.best or 0])}
    kept |= {one.path for one in found if keep.every and one.step % keep.every == 0}
    return [one for one in found if one.path in kept]


def rules_of(keep: int | Keep | None) -> Keep | None:
    """The rules that a user has given; a number is that of newest checkpoints."""
    if keep is None or isinstance(keep, Keep):
        return keep
    require_positive("keep", keep)
    return Keep(last=keep)


class Retention:
    """Selects the checkpoints of a directory that may be removed."""

    def __init__(self, keep: Keep | None) -> None:
        self._keep = keep
        self._metrics: dict[str, float | None] = {}  # by save

    def check_attrs(self, attrs: Mapping[str, object]) -> None:
        """Raises CheckpointError if the metric is not among the attributes of a new checkpoint: a
        misspelt name would let the best ones be removed."""
        if self._keep is None or not self._keep.best:
            return
        name = self._keep.metric
        if not isinstance(attrs.get(name), Real):
            given = f"of type {type(attrs[name]).__name__}" if name in attrs else "not given"
            raise CheckpointError(
                f"attribute '{name}' is {given}; expected a number, by which the best checkpoints"
                " are kept (NaN: it is not among them)"
            )

    def require_metrics(self, found: Sequence[Found]) -> None:
        """Raises CheckpointError if checkpoints are kept by a metric that none of them has."""
        if (
            self._keep is not None
            and self._keep.best
            and found
            and not any(self._read_metrics(found))
        ):
            raise CheckpointError(
                f"{found[0].path.parent}: no checkpoint has a number as attribute"
                f" '{self._keep.metric}', by which the best are kept"
            )

    def select_removable(
        self, found: Sequence[Found], counts: Callable[[Found], bool] = lambda _: True
    ) -> list[Found]:
        """The checkpoints that no rule keeps and no State reads. ``found``: oldest first;
        ``counts``: False for those that fill no place of a rule, such as damaged ones, of which
        the newest stay."""
        if self._keep is None:
            return []
        counted = [one for one in found if counts(one)]
        if len(counted) < self._keep.last:
            return []
        metrics, unknown = self._read_metrics(counted)
        stays = [*select_kept(self._keep, counted, metrics), *unknown]
        older = found[: found.index(counted[-self._keep.last])]
        return [one for one in older if one not in stays and not is_read(one.path)]

    def _read_metrics(self, found: Iterable[Found]) -> tuple[dict[Path, float], list[Found]]:
        """The metrics of checkpoints that have one, and the checkpoints that cannot be read, which
        may be the best ones. A metric is read once for each save."""
        if self._keep is None or not self._keep.best:
            return {}, []
        unknown = []
        for one in found:
            if _key(one) in self._metrics:
                continue
            try:
                self._metrics[_key(one)] = read_metric(document(one.path), self._keep.metric)
            except CheckpointError:
                unknown.append(one)
        known = ((one.path, self._metrics.get(_key(one))) for one in found)
        return {path: value for path, value in known if value is not None}, unknown


def _key(one: Found) -> str:
    return one.save or str(one.path)


def read_metric(path: Path, name: str) -> float | None:
    """A number among the attributes of a file; None where it has none, or NaN.

    Raises CheckpointError where the file is damaged or cannot be read.
    """
    check_metadata(path)
    with hdf5.open_to_read(path, CheckpointError) as source:
        value = source.file.attrs.get(name)
    return float(value) if isinstance(value, Real) and not isnan(value) else None


#: The descriptors of all marks of this process.
_marks: weakref.WeakSet[ReadMark] = weakref.WeakSet()


class ReadMark:
    """Marks a checkpoint as being read while the object exists, for the Writers of all processes.

    The mark is a shared lock of the open file, and none where the file system has no locks. It does
    not meet the locks of HDF5, which are of another kind (``flock``).
    """

    def __init__(self, path: Path) -> None:
        self._file = -1
        with suppress(OSError):
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_RDLCK, 0, 0, 0, 0))
        _marks.add(self)

    def remove(self) -> None:
        """Removes the mark."""
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # it was only read
                os.close(file)

    def __del__(self) -> None:
        self.remove()


def is_read(path: Path) -> bool:
    """True if a process has marked a checkpoint as being read."""
    with suppress(OSError):
        file = os.open(document(path), os.O_RDONLY | os.O_NONBLOCK)
        try:
            asked = _LOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
            answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked)
            return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)
        finally:
            os.close(file)
    return False


def _drop_inherited_marks() -> None:
    """Removes the marks in the child of a fork, which would keep checkpoints that its parent has
    finished reading."""
    for mark in list(_marks):
        mark.remove()


os.register_at_fork(after_in_child=_drop_inherited_marks)
