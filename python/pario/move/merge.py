"""Merges the files that processes wrote: concatenates them, or assembles an array from its blocks.

Both copy in parallel, compare the bytes written with those read, and publish the complete result.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pario.copying import PIECE, compare, copy_range, write_all
from pario.errors import ParioError
from pario.hdf5 import Image, add_contiguous, edit_image
from pario.paths import kind_of, local_path
from pario.progress import Show
from pario.publishing import Publication, new_file, publish_new

Shape = tuple[int, ...]

_RANK = re.compile(r"\{rank(?::0?(\d+)d?)?\}")


def parts_of(pattern: str) -> list[Path]:
    """The files of all ranks, in rank order: their names have the rank's number in place of the
    pattern's ``{rank}``. Raises ParioError if a number is missing or occurs twice."""
    path = local_path(pattern)
    if not _RANK.search(path.name):
        fault = "a single part" if path.exists() else "no such file"
        raise ParioError(
            f"{pattern}: {fault}; expected two or more parts, or {{rank}} in the name of the file"
            " in place of the number of the process"
        )
    before, after = (
        re.escape(text) for text in (_RANK.split(path.name)[0], _RANK.split(path.name)[-1])
    )
    matches = (
        (re.fullmatch(f"{before}(\\d+){after}", entry.name), entry)
        for entry in path.parent.iterdir()
    )
    found: dict[int, Path] = {}
    for number, entry in ((int(match[1]), entry) for match, entry in matches if match):
        if found.setdefault(number, entry) != entry:
            raise ParioError(
                f"{found[number]} and {entry} are both of rank {number}; remove one of them"
            )
    missing = [str(number) for number in range(max(found, default=0) + 1) if number not in found]
    if missing:
        raise ParioError(
            f"{pattern}: there is no file of rank"
            f" {', '.join(missing[:6])}{' and others' if len(missing) > 6 else ''}"
        )
    return [found[number] for number in sorted(found)]


def concatenate(
    parts: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    threads: int,
    show: Show,
) -> int:
    """Concatenates files in the given order; returns the number of bytes. Holes stay holes. Raises
    ParioError for a part of unknown size, such as a pipe."""
    target_path, files = local_path(output), [local_path(part) for part in parts]
    sizes = [_size_of(file) for file in files]
    begins = [sum(sizes[:number]) for number in range(len(sizes))]
    whole, done = sum(sizes), 0
    with _new_output(target_path) as new, ThreadPoolExecutor(threads) as pool:
        target = new.descriptor
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


def _size_of(part: Path) -> int:
    facts = part.stat()
    if not stat.S_ISREG(facts.st_mode):
        raise ParioError(f"{part} is {kind_of(facts.st_mode)}; expected a regular file")
    if facts.st_size == 0:
        with part.open("rb", buffering=0) as file:
            if file.read(1):
                raise ParioError(
                    f"{part} has bytes, but its size is 0 as in /proc; expected a copy of it"
                )
    return facts.st_size


def _copy_leg(target: int, part: Path, begin: int, end: int, shift: int) -> int:
    with part.open("rb", buffering=0) as source:
        copy_range(source.fileno(), target, begin, end, shift)
    return end - begin


def _compare_leg(target: int, part: Path, begin: int, end: int, shift: int) -> int:
    with part.open("rb", buffering=0) as source:
        if not compare(source.fileno(), target, begin, end, shift):
            raise ParioError(f"{part}: the output differs from it between {begin} and {end}")
    return end - begin


def _require_unchanged(parts: Sequence[Path], sizes: Sequence[int]) -> None:
    for part, size in zip(parts, sizes, strict=True):
        if part.stat().st_size != size:
            raise ParioError(f"{part} was changed while it was merged")


@contextmanager
def _new_output(output: Path) -> Iterator[Publication]:
    """A new file that becomes ``output``, which must not exist, if the block succeeds, and is
    removed otherwise."""
    _require_free(output)
    with new_file(output) as new:
        yield new
        new.require_own()
        try:
            publish_new(new.part, output)
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
        """The elements in the order of the file."""
        return np.memmap(
            self.path, self.dtype, "r", self.offset, self.shape, "F" if self.fortran else "C"
        )

    @classmethod
    def of_npy(cls, path: Path) -> Block:
        """A block from the header of a .npy file. Raises ParioError."""
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            is_short = str(error).startswith("mmap length is greater")
            reason = (
                f"cut off: it has {path.stat().st_size:,} bytes; expected more by its header"
                if is_short
                else error
            )
            raise ParioError(f"{path}: {reason}") from error
        fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
        return cls(path, array.dtype, array.shape, fortran, array.offset)

    @classmethod
    def of_raw(cls, path: Path, dtype: np.dtype[Any], shape: Shape, fortran: bool) -> Block:
        """A file of elements alone. Raises ParioError if it has another size."""
        expected = math.prod(shape) * dtype.itemsize
        if path.stat().st_size != expected:
            raise ParioError(
                f"{path} has {path.stat().st_size} bytes; a block of {shape} {dtype} has {expected}"
            )
        return cls(path, dtype, shape, fortran, 0)


@dataclass(frozen=True)
class Mosaic:
    """Blocks in a grid, ranks with the last axis fastest (``fortran``: the first), and the array
    that they make."""

    blocks: tuple[Block, ...]
    begins: tuple[Shape, ...]
    shape: Shape
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, blocks: Sequence[Block], grid: Shape, fortran: bool) -> Mosaic:
        """Blocks in a grid. Raises ParioError that names a block of the wrong shape."""
        if len(blocks) != math.prod(grid):
            raise ParioError(
                f"a grid of {'x'.join(map(str, grid))} has {math.prod(grid)} blocks; there are"
                f" {len(blocks)} files"
            )
        order: Literal["C", "F"] = "F" if fortran else "C"
        places = [
            tuple(map(int, np.unravel_index(number, grid, order))) for number in range(len(blocks))
        ]
        lengths = [_lengths(blocks, places, grid, axis) for axis in range(len(grid))]
        for block, place in zip(blocks, places, strict=True):
            expected = tuple(lengths[axis][at] for axis, at in enumerate(place))
            if block.shape != expected or block.dtype != blocks[0].dtype:
                raise ParioError(
                    f"{block.path} holds {block.shape} {block.dtype}; expected {expected}"
                    f" {blocks[0].dtype} at {place} of the grid"
                )
        begins = tuple(
            tuple(sum(lengths[axis][:at]) for axis, at in enumerate(place)) for place in places
        )
        return cls(tuple(blocks), begins, tuple(map(sum, lengths)), blocks[0].dtype)

    def place(self, number: int) -> tuple[slice, ...]:
        """The place of a block in the array."""
        block, begin = self.blocks[number], self.begins[number]
        return tuple(
            slice(first, first + length) for first, length in zip(begin, block.shape, strict=True)
        )


def _lengths(blocks: Sequence[Block], places: Sequence[Shape], grid: Shape, axis: int) -> list[int]:
    """The lengths of the parts along an axis, from the blocks along its edge."""
    edge = {
        place[axis]: block
        for block, place in zip(blocks, places, strict=True)
        if not any(place[:axis] + place[axis + 1 :])
    }
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
    """Writes the array as a dataset of a new HDF5 file, in C order; returns its bytes. Raises
    ParioError; needs h5py."""
    target = local_path(output)
    whole = math.prod(mosaic.shape) * mosaic.dtype.itemsize
    with _new_output(target) as new:
        array = _make_dataset(new.part, new.descriptor, mosaic, dataset)
        done = 0
        with ThreadPoolExecutor(threads) as pool:
            for work in (_copy_block, _compare_block):
                for size in pool.map(
                    lambda number, work=work: work(array, mosaic, number), range(len(mosaic.blocks))
                ):
                    done += size
                    show(done, 2 * whole)
                if isinstance(array, np.memmap):
                    array.flush()
        os.fsync(new.descriptor)
    return whole


def _make_dataset(path: Path, descriptor: int, mosaic: Mosaic, name: str) -> NDArray[Any]:
    """Makes the dataset; returns its bytes as mapped memory, for which the disk has space."""
    if mosaic.dtype.kind not in "biufcSV":
        raise ParioError(
            f"{mosaic.blocks[0].path}: elements of type {mosaic.dtype}; expected numbers, bytes or"
            " structures of them"
        )
    try:
        import h5py  # noqa: F401
    except ImportError as error:
        raise ParioError("arrays are merged into HDF5: pip install h5py") from error
    image = Image()
    with edit_image(image, "w", ParioError) as file:
        offset = add_contiguous(file, name, mosaic.shape, mosaic.dtype).get_offset()
    for place, content in image.pieces():
        write_all(descriptor, place, memoryview(content))
    os.ftruncate(descriptor, image.size)
    if offset is None:  # no elements
        return np.empty(mosaic.shape, mosaic.dtype)
    # Without allocated blocks, a full disk ends the process (SIGBUS).
    os.posix_fallocate(descriptor, 0, os.fstat(descriptor).st_size)
    return np.memmap(path, mosaic.dtype, "r+", offset, mosaic.shape)


def _copy_block(array: NDArray[Any], mosaic: Mosaic, number: int) -> int:
    elements = mosaic.blocks[number].elements()
    array[mosaic.place(number)] = elements
    return elements.nbytes


def _compare_block(array: NDArray[Any], mosaic: Mosaic, number: int) -> int:
    """Compares bytes, so that equal NaNs are equal."""
    block = mosaic.blocks[number]
    elements, written = block.elements(), array[mosaic.place(number)]
    for at in range(len(elements)):
        if elements[at].tobytes() != written[at].tobytes():
            raise ParioError(f"{block.path}: the output differs from it")
    return elements.nbytes
