"""Arrays of HDF5 files by h5py's low level, which is much faster for many, and tells where the bytes of an array lie."""

from __future__ import annotations

from typing import Any

import numpy as np


def add_contiguous(group: Any, name: str, shape: tuple[int, ...], kind: Any) -> Any:
    """Makes an array whose bytes lie in one piece, allocated at once and not filled, and the groups above it."""
    from h5py import h5d, h5p

    made = h5p.create(h5p.DATASET_CREATE)
    made.set_layout(h5d.CONTIGUOUS)
    made.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    made.set_fill_time(h5d.FILL_TIME_NEVER)
    return add(group, name, shape, kind, made)


def add(group: Any, name: str, shape: tuple[int, ...], kind: Any, made: Any) -> Any:
    """Makes an array, and the groups above it; ``made`` says how it is stored."""
    from h5py import h5d, h5p, h5s, h5t

    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    return h5d.create(group.id, name.encode(), h5t.py_create(np.dtype(kind), logical=True), space, made, links)
