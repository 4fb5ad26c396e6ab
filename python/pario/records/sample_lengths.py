"""Lengths of a field of each record: they are found by reading the records once, and kept in the
cache directory with the indexes."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import objects
from pario.errors import ParioError
from pario.records.batch import Batch
from pario.records.kept_arrays import cache_path, load_arrays, save_arrays
from pario.records.number_loader import load_numbers
from pario.records.samples import Decode, Inputs, RecordSource
from pario.records.stream import REMOTE_THREADS, Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Neighbouring records that are read together; bytes read ahead; threads.
_TOGETHER, _MEMORY, _THREADS = 512, 64 << 20, 4


def find_lengths(dataset: RecordSource, field: str) -> NDArray[Any]:
    """The lengths from the cache, or found by one process while others wait for it. Records of a
    Dataset with ``errors="skip"`` that cannot be decoded have -1, and nothing is kept then."""
    facts = _facts(dataset, field)
    if facts is None:
        return _learn(dataset, field)
    place = cache_path("indexes", dataset.path, "-lengths.npz", field)
    if (kept := _load(place, facts)) is not None:
        return kept
    with _lock(place):
        if (kept := _load(place, facts)) is not None:
            return kept
        lengths = _learn(dataset, field)
        if (lengths >= 0).all():
            _save(place, facts, lengths)
        return lengths


def _learn(dataset: RecordSource, field: str) -> NDArray[Any]:
    """Reads each record once, of Parquet the one column."""
    import numpy as np

    source = dataset.with_column(field)
    threads = REMOTE_THREADS if source.remote else _THREADS
    inputs, decode = Inputs([source]), Decode({})
    lengths = np.full(len(source), -1, dtype=np.int64)
    batches = (
        (np.arange(first, min(first + _TOGETHER, len(source)), dtype="u8"), 0)
        for first in range(0, len(source), _TOGETHER)
    )
    with closing(load_numbers([source], batches, Reading(_MEMORY, threads))) as loader:
        while read := loader.next():
            memory, numbers, places, failures, _ = read
            if failures and dataset.errors == "raise":
                raise ParioError("record {}: {}".format(*failures[0]))
            failed = {number for number, _ in failures}
            for raw in inputs.of(Batch(memory, numbers, places)):
                if raw.number in failed:
                    continue
                try:
                    lengths[raw.number] = length_of(decode.field(raw, field))
                except Exception as error:
                    if dataset.errors == "raise":
                        raise ParioError(
                            f"{dataset.path}: record {raw.number}: the length of field {field!r}:"
                            f" {type(error).__name__}: {error}"
                        ) from error
    return lengths


def length_of(value: Any) -> int:
    """The value of a whole number, otherwise the number of items."""
    if hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0:
        number = int(value.__index__())
        if number < 0:
            raise ValueError(f"{number}: expected at least 0")
        return number
    return len(value)


def _facts(dataset: RecordSource, field: str) -> list[str] | None:
    """The state of the file that was opened; None: a directory, whose files can change without it,
    or records that the arguments of the Dataset divide."""
    if dataset.format in ("directory", "fixed", "raw"):
        return None
    if dataset.remote:
        return [dataset.format, field, *map(str, objects.facts_of(dataset.path))]
    return [dataset.format, field, *map(str, (*dataset.facts[1:], len(dataset)))]


def _load(place: Path, facts: list[str]) -> NDArray[Any] | None:
    kept = load_arrays(place, facts, "lengths")
    return None if kept is None else kept["lengths"].astype("i8")


def _save(place: Path, facts: list[str], lengths: NDArray[Any]) -> None:
    """Keeps lengths, if they can be written."""
    import numpy as np

    smallest = np.min_scalar_type(int(lengths.max(initial=0)))
    save_arrays(place, facts, lengths=lengths.astype(smallest))


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    """One process at a time, where files can be made and locked."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_suffix(".lock").open("a")
    except OSError:
        yield
        return
    with lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_UN)  # a child forked meanwhile shares the lock
