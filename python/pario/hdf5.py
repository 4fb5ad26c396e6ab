"""Arrays of HDF5 files by h5py's low level: it is much faster for many, and gives the offset of an array's bytes.

Files are read through :func:`open_to_read` only: it refuses files that refer to bytes of other files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pario.errors import ParioError

#: The file itself, as a source of virtual datasets.
_ITSELF = "."
#: Replaced with numbers by HDF5 in names of sources, so that other files are read than the one of that name.
_PATTERN = "%b"


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


class Source:
    """An HDF5 file of any origin, open to be read. HDF5 would read any file of this user that such a file refers to.

    Nothing of a dataset is read unless its bytes are in the file, or, if it is virtual, in files of the same directory, to
    which the same applies.
    """

    def __init__(self, file: Any, path: str | Path, error: type[ParioError]) -> None:
        self.file, self._path, self._error = file, Path(path), error
        self._refuse_outside_links()

    def datasets(self) -> Iterator[tuple[str, Any]]:
        """All datasets by name, as HDF5's own objects. Raises ``error`` at one with bytes elsewhere."""
        from h5py import h5d, h5o

        found: list[bytes] = []

        def visit(name: bytes, info: Any) -> None:
            if info.type == h5o.TYPE_DATASET:
                found.append(name)

        h5o.visit(self.file.id, visit, info=True)
        for name in found:
            dataset = h5d.open(self.file.id, name)
            self._sources(_text(name), dataset)
            yield _text(name), dataset

    def read(self, name: str, selection: Any = ...) -> Any:
        """Elements of a dataset. Raises ``error`` if they, or a source of a virtual dataset, are elsewhere or missing."""
        dataset = self.file[name]
        if self._sources(name, dataset.id):
            self._check_all_sources({self._path.resolve()})
        return dataset[selection]

    def _refuse_outside_links(self) -> None:
        from h5py import h5l

        def is_outside(name: bytes, info: Any) -> bytes | None:
            return None if info.type in (h5l.TYPE_HARD, h5l.TYPE_SOFT) else name

        found = self.file.id.links.visit(is_outside, info=True)
        if found is not None:
            message = f"{self._path}: '{_text(found)}' is a link to another file; expected all objects in the file itself"
            raise self._error(message)

    def _sources(self, name: str, dataset: Any) -> set[str]:
        """Names of the files that a virtual dataset takes elements from; none for others."""
        from h5py import h5d

        made = dataset.get_create_plist()
        layout = made.get_layout()
        if layout == h5d.CONTIGUOUS and made.get_external_count():
            outside = f"has its bytes in '{_text(made.get_external(0)[0])}'"
            raise self._error(f"{self._path}: array '{name}' {outside}; expected all bytes in the file itself")
        if layout != h5d.VIRTUAL:
            return set()
        sources = {_text(made.get_virtual_filename(number)) for number in range(made.get_virtual_count())}
        for source in sources:
            if "/" in source or source in ("", "..") or _PATTERN in source:
                outside = f"takes elements from '{source}'"
                raise self._error(f"{self._path}: array '{name}' {outside}; expected the name of a file in the same directory")
        return sources

    def _check_all_sources(self, seen: set[Path]) -> None:
        """Checks the sources of all virtual datasets, and theirs. ``seen``: files that are checked already."""
        for name, dataset in self.datasets():
            for source in self._sources(name, dataset) - {_ITSELF}:
                path = self._path.with_name(source)
                if path.resolve() in seen:
                    continue
                if not path.is_file():  # HDF5 would look for it in other directories
                    raise self._error(f"{self._path}: array '{name}' takes elements from '{source}', which is not beside it")
                seen.add(path.resolve())
                with open_to_read(path, self._error) as other:
                    other._check_all_sources(seen)


@contextmanager
def open_to_read(path: str | Path, error: type[ParioError] = ParioError) -> Iterator[Source]:
    """Opens a file. Raises ``error`` if it has links to other files, OSError if it is not an HDF5 file."""
    import h5py

    with h5py.File(path, "r", locking=False) as file:
        yield Source(file, path, error)


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
