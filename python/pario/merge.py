"""Files that each process wrote for itself, made one: put behind each other, or, where they hold blocks of an array, put together as one.

Both copy in parallel, compare what they wrote with what they read, and give the result its name when it is whole.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pario.copying import PIECE, compare, copy_range, write_all
from pario.errors import ParioError
from pario.hdf5 import add_contiguous
from pario.hdf5_image import Image
from pario.paths import local_path
from pario.publishing import new_file, require_ours
from pario.renaming import take_free_name

Show = Callable[[int, int], object]
Shape = tuple[int, ...]

_RANK = re.compile(r"\{rank(?::0?(\d+)d?)?\}")


def parts_of(pattern: str) -> list[Path]:
    """Files whose names have the number of a rank where the pattern has ``{rank}``, by that number; 0 to the last, none missing."""
    path = local_path(pattern)
    if not _RANK.search(path.name):
        raise ParioError(f"{pattern}: expected {{rank}} in the name of the file, where the number of the process stands")
    before, after = (re.escape(text) for text in (_RANK.split(path.name)[0], _RANK.split(path.name)[-1]))
    matches = ((re.fullmatch(f"{before}(\\d+){after}", entry.name), entry) for entry in path.parent.iterdir())
    found: dict[int, Path] = {}
    for number, entry in ((int(match[1]), entry) for match, entry in matches if match):
        if found.setdefault(number, entry) != entry:
            raise ParioError(f"{found[number]} and {entry} are both of rank {number}; remove one of them")
    missing = [str(number) for number in range(max(found, default=0) + 1) if number not in found]
    if missing:
        raise ParioError(f"{pattern}: there is no file of rank {', '.join(missing[:6])}{' and others' if len(missing) > 6 else ''}")
    return [found[number] for number in sorted(found)]


def concatenate(
    parts: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    threads: int,
    show: Show,
) -> int:
    """One behind the other, in the order given; the bytes of all. Holes stay holes."""
    target_path, files = local_path(output), [local_path(part) for part in parts]
    sizes = [file.stat().st_size for file in files]
    begins = [sum(sizes[:number]) for number in range(len(sizes))]
    whole, done = sum(sizes), 0
    with _aside(target_path) as (_, target), ThreadPoolExecutor(threads) as pool:
        os.ftruncate(target, whole)
        legs = [
            (part, at, min(at + 8 * PIECE, size), begin)
            for part, size, begin in zip(files, sizes, begins, strict=True)
            for at in range(0, size, 8 * PIECE)
        ]
        for work in (_copy_leg, _compare_leg):
            for leg in pool.map(lambda leg, work=work: work(target, *leg), legs):
                done += leg
                show(done, 2 * whole)
            os.fsync(target)
        _require_unchanged(files, sizes)
    return whole


def _copy_leg(target: int, part: Path, begin: int, end: int, shift: int) -> int:
    with part.open("rb", buffering=0) as source:
        copy_range(source.fileno(), target, begin, end, shift)
    return end - begin


def _compare_leg(target: int, part: Path, begin: int, end: int, shift: int) -> int:
    with part.open("rb", buffering=0) as source:
        if not compare(source.fileno(), target, begin, end, shift):
            raise ParioError(f"{part}: what was written differs from it between {begin} and {end}")
    return end - begin


def _require_unchanged(parts: Sequence[Path], sizes: Sequence[int]) -> None:
    for part, size in zip(parts, sizes, strict=True):
        if part.stat().st_size != size:
            raise ParioError(f"{part} was changed while it was merged")


@contextmanager
def _aside(output: Path) -> Iterator[tuple[Path, int]]:
    """A new file that becomes ``output``, which must not exist, when the block ends well; else it is removed."""
    _require_free(output)
    with new_file(output, "merge") as (aside, descriptor):
        yield aside, descriptor
        require_ours(aside, descriptor, output)
        _take(aside, output)


def _take(aside: Path, output: Path) -> None:
    try:
        take_free_name(aside, output)
    except FileExistsError:
        _require_free(output)
        raise


def _require_free(output: Path) -> None:
    if os.path.lexists(output):
        raise ParioError(f"{output} exists already")


@dataclass(frozen=True)
class Block:
    """A file that holds a block of an array."""

    path: Path
    dtype: np.dtype[Any]
    shape: Shape
    fortran: bool  # the first axis is the fastest in the file
    offset: int  # of the elements in the file

    def elements(self) -> NDArray[Any]:
        """As they lie in the file."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, "F" if self.fortran else "C")

    @classmethod
    def of_npy(cls, path: Path) -> Block:
        """What the header of a .npy file says. Raises ParioError."""
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise ParioError(f"{path}: {error}") from error
        fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        return cls(path, array.dtype, array.shape, fortran, array.offset)

    @classmethod
    def of_raw(cls, path: Path, dtype: np.dtype[Any], shape: Shape, fortran: bool) -> Block:
        """Elements and nothing else. Raises ParioError where the file has another size."""
        expected = math.prod(shape) * dtype.itemsize
        if path.stat().st_size != expected:
            raise ParioError(f"{path} has {path.stat().st_size} bytes; a block of {shape} {dtype} has {expected}")
        return cls(path, dtype, shape, fortran, 0)


@dataclass(frozen=True)
class Mosaic:
    """Blocks in a grid, ranks with the last axis fastest (``fortran``: the first), and the array that they make."""

    blocks: tuple[Block, ...]
    begins: tuple[Shape, ...]
    shape: Shape
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, blocks: Sequence[Block], grid: Shape, fortran: bool) -> Mosaic:
        """Raises ParioError that names the block that does not fit."""
        if len(blocks) != math.prod(grid):
            raise ParioError(f"a grid of {'x'.join(map(str, grid))} has {math.prod(grid)} blocks; there are {len(blocks)} files")
        order: Literal["C", "F"] = "F" if fortran else "C"
        places = [tuple(map(int, np.unravel_index(number, grid, order))) for number in range(len(blocks))]
        lengths = [_lengths(blocks, places, grid, axis) for axis in range(len(grid))]
        for block, place in zip(blocks, places, strict=True):
            expected = tuple(lengths[axis][at] for axis, at in enumerate(place))
            if block.shape != expected or block.dtype != blocks[0].dtype:
                raise ParioError(
                    f"{block.path} holds {block.shape} {block.dtype}; expected {expected} {blocks[0].dtype} at {place} of the grid"
                )
        begins = tuple(tuple(sum(lengths[axis][:at]) for axis, at in enumerate(place)) for place in places)
        return cls(tuple(blocks), begins, tuple(map(sum, lengths)), blocks[0].dtype)

    def place(self, number: int) -> tuple[slice, ...]:
        """Of a block in the array."""
        block, begin = self.blocks[number], self.begins[number]
        return tuple(slice(first, first + length) for first, length in zip(begin, block.shape, strict=True))


def _lengths(blocks: Sequence[Block], places: Sequence[Shape], grid: Shape, axis: int) -> list[int]:
    """Of the parts along an axis, as the blocks along its edge have them."""
    edge = {place[axis]: block for block, place in zip(blocks, places, strict=True) if not any(place[:axis] + place[axis + 1 :])}
    for block in edge.values():
        if len(block.shape) != len(grid):
            raise ParioError(f"{block.path} has {len(block.shape)} axes; the grid has {len(grid)}")
    return [edge[at].shape[axis] for at in range(grid[axis])]


def assemble(
    mosaic: Mosaic,
    output: str | os.PathLike[str],
    dataset: str,
    threads: int,
    show: Show,
) -> int:
    """The array as a dataset of a new HDF5 file, in C order; its bytes. Raises ParioError; needs h5py."""
    target = local_path(output)
    whole = math.prod(mosaic.shape) * mosaic.dtype.itemsize
    with _aside(target) as (aside, descriptor):
        array = _make_dataset(aside, descriptor, mosaic, dataset)
        done = 0
        with ThreadPoolExecutor(threads) as pool:
            for work in (_put, _same):
                for size in pool.map(lambda number, work=work: work(array, mosaic, number), range(len(mosaic.blocks))):
                    done += size
                    show(done, 2 * whole)
                if isinstance(array, np.memmap):
                    array.flush()
        os.fsync(descriptor)
    return whole


def _make_dataset(path: Path, descriptor: int, mosaic: Mosaic, name: str) -> NDArray[Any]:
    """Makes the dataset; returns its bytes in the file as memory that the disk has room for."""
    try:
        import h5py
    except ImportError as error:
        raise ParioError("arrays are merged into HDF5, which needs h5py: pip install 'pario[checkpoint]'") from error
    image = Image()
    with h5py.File(image, "w") as file:
        offset = add_contiguous(file, name, mosaic.shape, mosaic.dtype).get_offset()
    for place, content in image.pieces():
        write_all(descriptor, place, memoryview(content))
    os.ftruncate(descriptor, image.size)
    if offset is None:  # no elements
        return np.empty(mosaic.shape, mosaic.dtype)
    os.posix_fallocate(descriptor, 0, os.fstat(descriptor).st_size)  # else a full disk ends the process (SIGBUS)
    return np.memmap(path, mosaic.dtype, "r+", offset, mosaic.shape)


def _put(array: NDArray[Any], mosaic: Mosaic, number: int) -> int:
    elements = mosaic.blocks[number].elements()
    array[mosaic.place(number)] = elements
    return elements.nbytes


def _same(array: NDArray[Any], mosaic: Mosaic, number: int) -> int:
    """By their bytes: elements that are no numbers are equal, too."""
    block = mosaic.blocks[number]
    elements, written = block.elements(), array[mosaic.place(number)]
    for at in range(len(elements)):
        if elements[at].tobytes() != written[at].tobytes():
            raise ParioError(f"{block.path}: what was written differs from it")
    return elements.nbytes
