"""Datasets of HDF5, netCDF and other libraries from the notes of process logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import Dataset, Job
from pario.see.tables.own.files import integer, notes_on_files
from pario.see.tables.own.view import View


def add_datasets(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Fill datasets: the first note of each with the largest shape of all, because datasets grow,
    and its first selection in each direction."""
    found: dict[int, Dataset] = {}
    boxes: dict[tuple[int, str], tuple[int, ...]] = {}
    for _, file, note in notes_on_files(views, of_record, "dataset"):
        if file >= 0:
            noted = _dataset(file, note)
            known = found.setdefault(file, noted)
            if math.prod(noted.shape or (0,)) > math.prod(known.shape or (0,)):
                found[file] = replace(known, shape=noted.shape)
    for _, file, note in notes_on_files(views, of_record, "selection"):
        boxes.setdefault((file, str(note.get("op"))), _extents(note.get("box")))
    job.datasets = [
        replace(
            dataset,
            read_box=boxes.get((file, "read"), ()),
            write_box=boxes.get((file, "write"), ()),
        )
        for file, dataset in found.items()
    ]


def _dataset(file: int, note: dict[str, Any]) -> Dataset:
    filters = note.get("filters")
    return Dataset(
        file=file,
        element=max(integer(note.get("element")), 0),
        shape=_extents(note.get("shape")),
        layout=str(note.get("layout", "")),
        chunk=_extents(note.get("chunk")),
        filters=tuple(map(str, filters)) if isinstance(filters, list) else (),
        cache=max(integer(note.get("cache")), 0),
    )


def _extents(values: Any) -> tuple[int, ...]:
    """Return positive extents of a note; empty for anything else."""
    extents = tuple(map(integer, values)) if isinstance(values, list) else ()
    return extents if all(extent > 0 for extent in extents) else ()
