"""HDF5 files: made in memory, and read safely.

All access to HDF5 goes through this module. Files are read through :func:`open_to_read` only, which
refuses files that refer to bytes of other files. New files are made as an :class:`Image`, because
HDF5 ends the process where a write fails while it closes a file. Datasets are handled by h5py's low
level: it is several times faster for many datasets, and gives the offset of a dataset's bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pario import wording
from pario.errors import ParioError
from pario.paths import resolve

#: The file itself, as a source of virtual datasets.
ITSELF = "."
#: HDF5 replaces this in the names of sources by numbers, and then reads other files.
_PATTERN = "%b"
#: Exceptions by which h5py reports damaged files.
_DAMAGE = (
    OSError,
    KeyError,
    ValueError,
    IndexError,
    TypeError,
    AttributeError,
    RuntimeError,
    SystemError,
)
_PAGE = 4096
#: The number of the filter "zstd" among those registered with HDF5.
_ZSTD = 32015

#: Offset in a file, and the bytes there.
Piece = tuple[int, bytes]
#: First element and length of a range along each axis.
Range = tuple[tuple[int, ...], tuple[int, ...]]


class Image(io.RawIOBase):
    """A file in memory for ``h5py.File(image, ...)``. Pages never written take no memory."""

    def __init__(self, pieces: Iterable[Piece] = (), size: int = 0) -> None:
        super().__init__()
        self._pages: dict[int, bytearray | memoryview] = {}  # written ones, and those of pieces
        self._at = self.size = 0
        self._unwritten: Any = np.zeros(0, np.uint8)  # the bytes of reserved places
        #: The offsets and sizes of reserved places, in the order of the calls.
        self.reserved: list[tuple[int, int]] = []
        for offset, content in pieces:
            self._add(offset, content)
        self.size = max(self.size, size)

    def _add(self, offset: int, content: bytes) -> None:
        """Adds a piece, whose complete pages are not copied before they are written."""
        view, end = memoryview(content), offset + len(content)
        first, last = -(-offset // _PAGE), end // _PAGE
        for number in range(first, last):
            begin = number * _PAGE - offset
            self._pages[number] = view[begin : begin + _PAGE]
        rest = [(offset, first * _PAGE), (last * _PAGE, end)] if first <= last else [(offset, end)]
        for begin, until in rest:
            self.seek(begin)
            self.write(view[begin - offset : until - offset])
        self.size = max(self.size, end)

    def seekable(self) -> bool:
        """Returns True: seek() works."""
        return True

    def readable(self) -> bool:
        """Returns True: readinto() works."""
        return True

    def writable(self) -> bool:
        """Returns True: write() works."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the offset of the next read or write, maybe beyond the end, and returns it."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        """The offset of the next read or write."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer; with zeros beyond the end, where HDF5 never reads otherwise."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view):
            number, begin = divmod(self._at + done, _PAGE)
            count = min(_PAGE - begin, len(view) - done)
            page = self._pages.get(number)
            view[done : done + count] = page[begin : begin + count] if page else bytes(count)
            done += count
        self._at += done
        return done

    def write(self, content: Any) -> int:
        """Writes all bytes of a buffer; of those of :meth:`reserve` only notes the place."""
        view = memoryview(content).cast("B")
        if len(self._unwritten) and np.may_share_memory(
            np.frombuffer(view, np.uint8), self._unwritten
        ):
            self.reserved.append((self._at, len(view)))
            self._at += len(view)
            self.size = max(self.size, self._at)
            return len(view)
        done = 0
        while done < len(view):
            number, begin = divmod(self._at + done, _PAGE)
            count = min(_PAGE - begin, len(view) - done)
            page = self._pages.get(number)
            if not isinstance(page, bytearray):
                page = self._pages[number] = bytearray(_PAGE if page is None else page)
            page[begin : begin + count] = view[done : done + count]
            done += count
        self._at += done
        self.size = max(self.size, self._at)
        return done

    def reserve(self, dataset: Any, index: tuple[int, ...], size: int) -> None:
        """Reserves the place of a filtered chunk of a dataset in this file, without its bytes.

        ``index``: that of the chunk's first element.
        """
        if size > len(self._unwritten):
            self._unwritten = np.zeros(size, np.uint8)
        dataset.write_direct_chunk(index, self._unwritten[:size])

    def truncate(self, size: int | None = None) -> int:
        """Sets the size. HDF5 truncates each file that it closes."""
        self.size = self._at if size is None else size
        return self.size

    def pieces(self) -> list[Piece]:
        """The written pages in order; adjacent pages form one piece."""
        found: list[tuple[int, list[bytearray | memoryview]]] = []
        end = -1
        for number in sorted(self._pages):
            if number != end:
                found.append((number * _PAGE, []))
            found[-1][1].append(self._pages[number])
            end = number + 1
        joined = ((offset, b"".join(pages)) for offset, pages in found)
        return [(offset, content[: self.size - offset]) for offset, content in joined]


@contextmanager
def edit_image(image: Image, mode: str, error: type[ParioError], **options: Any) -> Iterator[Any]:
    """Opens an image as an ``h5py.File``, to make (``mode`` "w") or to change it ("r+").

    Raises ``error`` where HDF5 cannot hold the contents.
    """
    import h5py

    try:
        with h5py.File(image, mode, locking=False, **options) as file:
            yield file
    except (OSError, RuntimeError) as cause:
        raise error(f"HDF5 cannot describe these arrays: {cause}") from cause


def add_contiguous(
    group: Any, name: str, shape: tuple[int, ...], kind: Any, *, allocate: bool = True
) -> Any:
    """Adds a dataset with contiguous bytes, which are not filled, and its groups.

    ``allocate``: at once; otherwise :func:`allocate_bytes` does it.
    """
    from h5py import h5d, h5p

    storage = h5p.create(h5p.DATASET_CREATE)
    storage.set_layout(h5d.CONTIGUOUS)
    storage.set_alloc_time(h5d.ALLOC_TIME_EARLY if allocate else h5d.ALLOC_TIME_LATE)
    storage.set_fill_time(h5d.FILL_TIME_NEVER)
    return add(group, name, shape, kind, storage)


def add_zstd(
    group: Any,
    name: str,
    shape: tuple[int, ...],
    kind: Any,
    chunk: tuple[int, ...],
    level: int,
    *,
    shuffle: bool,
) -> Any:
    """Adds a dataset without chunks, whose chunks are frames of zstd, maybe of shuffled bytes.

    HDF5 needs the filter's plug-in only to read the elements.
    """
    from h5py import h5d, h5p, h5z

    storage = h5p.create(h5p.DATASET_CREATE)
    storage.set_chunk(chunk)
    storage.set_fill_time(h5d.FILL_TIME_NEVER)
    if shuffle:
        storage.set_shuffle()
    storage.set_filter(_ZSTD, h5z.FLAG_OPTIONAL, (level,))  # optional: no plug-in is needed here
    return add(group, name, shape, kind, storage)


def add_virtual(
    group: Any,
    name: str,
    shape: tuple[int, ...],
    kind: Any,
    sources: Iterable[tuple[Range, str, str]],
    fill: Any = None,
) -> Any:
    """Adds a virtual dataset. ``sources``: a range of its elements, and the file and the name of
    the dataset that has them. ``fill``: the elements of missing files."""
    from h5py import h5p, h5s

    storage = h5p.create(h5p.DATASET_CREATE)
    if fill is not None:
        storage.set_fill_value(fill)
    space = h5s.create_simple(shape)
    for (begin, length), file, source in sources:
        space.select_hyperslab(begin, length)
        named = source.replace("%", "%%").encode()  # HDF5 replaces %b by numbers
        storage.set_virtual(space, file.encode(), named, h5s.create_simple(length))
    return add(group, name, shape, kind, storage)


def allocate_bytes(dataset: Any) -> None:
    """Allocates the bytes of a dataset, which HDF5 does when an element is written."""
    from h5py import h5s

    shape = shape_of(dataset)
    if 0 in shape:
        return
    space, one = h5s.create(h5s.SCALAR), dataset.get_space()
    if shape:
        one.select_hyperslab((0,) * len(shape), (1,) * len(shape))
    kind = dataset.get_type()
    dataset.write(space, one, np.zeros(kind.get_size(), np.uint8), kind)


def add(group: Any, name: str, shape: tuple[int, ...], kind: Any, storage: Any) -> Any:
    """Adds a dataset with a creation property list, and its groups. Returns its low-level ID."""
    from h5py import h5d, h5p, h5s, h5t

    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    space = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    return h5d.create(
        group.id, name.encode(), h5t.py_create(np.dtype(kind), logical=True), space, storage, links
    )


def attribute_names(dataset: Any) -> list[str]:
    """The names of the attributes of a low-level dataset."""
    from h5py import h5a

    names: list[str] = []
    if h5a.get_num_attrs(dataset):
        h5a.iterate(dataset, lambda name, *_: names.append(name.decode()))
    return names


def attribute_value(dataset: Any, name: str) -> Any:
    """The value of an attribute of a low-level dataset, as h5py converts it."""
    import h5py

    return h5py.Dataset(dataset).attrs[name]


def shape_of(dataset: Any) -> tuple[int, ...]:
    """The shape of a low-level dataset; (0,) where it has no elements at all."""
    from h5py import h5s

    space = dataset.get_space()
    if space.get_simple_extent_type() == h5s.NULL:
        return (0,)
    return tuple(space.get_simple_extent_dims())


def scale_name(dataset: Any, axis: int) -> str:
    """The name of the first dimension scale of an axis; empty where it has none."""
    import h5py

    dims = h5py.Dataset(dataset).dims
    scales: Any = dims[axis] if axis < len(dims) else ()  # an empty dataset has no axes
    return scales[0].name.lstrip("/") if len(scales) else ""


class Source:
    """An HDF5 file of any origin, open for reading.

    HDF5 would read any file of this user that such a file refers to. So no element of a dataset is
    read unless its bytes are in the file or, for a virtual dataset, in files of the same directory,
    to which the same applies.
    """

    def __init__(self, file: Any, path: str | Path, error: type[ParioError]) -> None:
        self.file, self._path, self._error = file, Path(path), error
        self._refuse_outside_links()

    def datasets(self) -> Iterator[tuple[str, Any]]:
        """All datasets, as name and low-level object. Raises ``error`` for one stored elsewhere."""
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
        """Elements of a dataset. Raises ``error`` where their bytes are elsewhere or missing."""
        dataset = self.file[name]
        if self._sources(name, dataset.id):
            self._check_all_sources({resolve(self._path)})
        return dataset[selection]

    def _refuse_outside_links(self) -> None:
        from h5py import h5l

        def is_outside(name: bytes, info: Any) -> bytes | None:
            return None if info.type in (h5l.TYPE_HARD, h5l.TYPE_SOFT) else name

        found = self.file.id.links.visit(is_outside, info=True)
        if found is not None:
            message = (
                f"{self._path}: '{_text(found)}' is a link to another file; expected all objects in"
                " the file itself"
            )
            raise self._error(message)

    def _sources(self, name: str, dataset: Any) -> set[str]:
        """The names of the source files of a virtual dataset; empty for other datasets."""
        from h5py import h5d

        storage = dataset.get_create_plist()
        layout = storage.get_layout()
        if layout == h5d.CONTIGUOUS and storage.get_external_count():
            outside = f"has its bytes in '{_text(storage.get_external(0)[0])}'"
            raise self._error(
                f"{self._path}: array '{name}' {outside}; expected all bytes in the file itself"
            )
        if layout != h5d.VIRTUAL:
            return set()
        sources = {
            _text(storage.get_virtual_filename(number))
            for number in range(storage.get_virtual_count())
        }
        for source in sources:
            if "/" in source or source in ("", "..") or _PATTERN in source:
                outside = f"takes elements from '{source}'"
                raise self._error(
                    f"{self._path}: array '{name}' {outside}; expected the name of a file in the"
                    " same directory"
                )
        return sources

    def _check_all_sources(self, seen: set[Path]) -> None:
        """Checks the sources of all virtual datasets recursively. ``seen``: checked files."""
        for name, dataset in self.datasets():
            for source in self._sources(name, dataset) - {ITSELF}:
                path = self._path.with_name(source)
                if resolve(path) in seen:
                    continue
                if not path.is_file():  # HDF5 would look for it in other directories
                    raise self._error(
                        f"{self._path}: array '{name}' takes elements from '{source}', which is not"
                        " beside it"
                    )
                seen.add(resolve(path))
                with open_to_read(path, self._error) as other:
                    other._check_all_sources(seen)


@contextmanager
def open_to_read(path: str | Path, error: type[ParioError]) -> Iterator[Source]:
    """Opens a file. Raises ``error`` that names it where it is damaged or links to other files."""
    import h5py

    try:
        with h5py.File(path, "r", locking=False) as file:
            yield Source(file, path, error)
    except _DAMAGE as cause:
        raise error(f"{path}: {_reason_of(cause, Path(path))}") from cause


def _reason_of(cause: BaseException, path: Path) -> str:
    """The reason why a file cannot be read, from an exception of h5py."""
    text = str(cause).strip("'")
    if "file signature not found" not in text:
        return text
    size = path.stat().st_size
    return f"it is no HDF5 file, or it is cut off: it has {wording.plural(size, 'byte')}"


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
