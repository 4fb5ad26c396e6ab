"""Datasets of HDF5, netCDF and other libraries from the notes of process logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pario.see.tables.model import Dataset, Job
from pario.see.tables.own.files import file_of, integer
from pario.see.tables.own.view import View


def add_datasets(job: Job, views: Sequence[View], of_record: Sequence[NDArray[np.int32]]) -> None:
    """Fill datasets: the first note of each with the largest shape of all, because datasets grow,
    and its first selection in each direction."""
    found: dict[int, Dataset] = {}
    boxes: dict[tuple[int, str], tuple[int, ...]] = {}
    for view, files in zip(views, of_record, strict=True):
        for note in view.log.notes_of("dataset"):
            if (file := file_of(files, note)) >= 0:
                noted = _dataset(file, note)
                known = found.setdefault(file, noted)
                if math.prod(noted.shape or (0,)) > math.prod(known.shape or (0,)):
                    found[file] = replace(known, shape=noted.shape)
        for note in view.log.notes_of("selection"):
            boxes.setdefault((file_of(files, note), str(note.get("op"))), _extents(note.get("box")))
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
