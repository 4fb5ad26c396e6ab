"""Loads checkpoints, on any number of ranks and in any decomposition."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

from pario.checkpoint import types
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.geometry import Shape, divide
from pario.checkpoint.header import Entry, Header, find
from pario.checkpoint.layouts import Block
from pario.checkpoint.node_files import NodeFiles
from pario.checkpoint.ranks import ranks_of
from pario.checkpoint.reading import Part, Reading
from pario.checkpoint.remote import Copies
from pario.checkpoint.retention import ReadMark
from pario.interrupts import postpone_interrupt
from pario.paths import is_url
from pario.ranks import PATIENCE, Ranks


@postpone_interrupt()
def load(
    comm: Any,
    path: str | os.PathLike[str],
    *,
    step: int | None = None,
    verify: bool = True,
    patience: float = PATIENCE,
) -> State:
    """Opens the newest complete checkpoint of a directory. Collective over ``comm``.

    A checkpoint that cannot be read is named in a warning, and the next older one is opened.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, torch.distributed.ProcessGroup, or None
        The ranks that load together, as many as there are now; None for one process alone.
    path : path_like
        Directory of checkpoints, a checkpoint, or any HDF5 file; or the URL of one in an object
        store, which is copied to ``TMPDIR`` of each node while the State exists.
    step : int, optional
        Opens the checkpoint of this step instead.
    verify : bool, optional
        Compares all bytes read with their checksums, and HDF5's metadata before HDF5 reads it.
    patience : float, optional
        Seconds after which ranks that neither arrive nor make progress are named in an error.

    Returns
    -------
    State
        The opened checkpoint. Arrays are read by its methods.

    Raises
    ------
    CheckpointError
        If no complete checkpoint can be read, or an object store reports another error than that
        one is missing; on all ranks, with the reasons.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with checkpoint.Writer(None, path) as writer:
    ...         saved = writer.save(3, {"T": np.arange(6.0)}, {"time": 0.5})
    ...     state = checkpoint.load(None, path)
    ...     state.step, state.attrs, state.read("T", (2,), (3,))
    (3, {'time': 0.5}, array([2., 3., 4.]))
    """
    ranks = ranks_of(comm, patience, kept=True)
    marks: list[ReadMark] = []
    copies = Copies(os.fspath(path)) if is_url(path) else None

    def find_and_mark(_: Sequence[None]) -> tuple[Header, list[str]]:
        if copies:
            return copies.find(step, verify=verify)
        while True:
            found = find(path, step, verify=verify)
            marks[:] = [ReadMark(Path(found[0].path))]
            if Path(found[0].path).exists():  # else a Writer has removed it before it was marked
                return found

    header, skipped = ranks.together(f"checkpoint.load({path})", lambda: None, find_and_mark)
    if ranks.rank == 0:
        for message in skipped:
            warnings.warn(message, stacklevel=2)
    if copies:
        copies.copy_to_nodes(ranks, header)
    return State(ranks, header, skipped, verify=verify, marks=marks, copies=copies)


class State(Mapping[str, types.Array]):
    """An opened checkpoint: a mapping of names to arrays, made by :func:`load`.

    Reading is collective: all ranks read the same arrays, each its own part. ``state[name]`` is the
    whole array on every rank; each byte is read from the file once.

    Attributes
    ----------
    step : int
        Step of the checkpoint.
    attrs : dict
        Attributes given to :meth:`Writer.save`.
    about : dict
        Program, versions, hosts, ranks and time of the save; empty in files of other programs.
    path : pathlib.Path
        The file that HDF5 programs open.
    name : str
        The path, or the URL of an object that was copied to it; errors have it.
    skipped : list of str
        Messages about checkpoints that could not be read.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pario import checkpoint
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with checkpoint.Writer(None, path) as writer:
    ...         saved = writer.save(1, {"T": np.arange(6.0).reshape(2, 3)})
    ...     state = checkpoint.load(None, path)
    ...     list(state), state.shape("T"), state["T"].sum().item()
    (['T'], (2, 3), 15.0)
    """

    def __init__(
        self,
        ranks: Ranks,
        header: Header,
        skipped: Sequence[str] = (),
        *,
        verify: bool = True,
        marks: Sequence[ReadMark] = (),
        copies: Copies | None = None,
    ) -> None:
        self._ranks, self._header, self._verify = ranks, header, verify
        self.step, self.path, self.name = header.step, Path(header.path), header.name
        self.attrs, self.about = dict(header.attrs), dict(header.about)
        self.skipped = list(skipped)
        self._marks = marks  # of rank 0
        self._copies = copies  # of an object, which are removed with this State
        self._files = NodeFiles(ranks, header.file)
        if marks:  # on rank 0
            self._files.open("")

    def __iter__(self) -> Iterator[str]:
        return iter(self._header.entries)

    def __len__(self) -> int:
        return len(self._header.entries)

    def __contains__(self, name: object) -> bool:
        return name in self._header.entries

    def __getitem__(self, name: str) -> types.Array:
        self._entry(name)
        return self.read(name)

    def shape(self, name: str) -> Shape:
        """The shape of a whole array. Not collective.

        Parameters
        ----------
        name : str
            The name of an array.

        Returns
        -------
        tuple of int
            Elements along each axis; empty for a number.

        Raises
        ------
        KeyError
            If there is no such array.
        """
        return self._entry(name).layout.shape

    def dtype(self, name: str) -> types.Type:
        """The type of an array's elements as they are read. Not collective.

        Parameters
        ----------
        name : str
            The name of an array.

        Returns
        -------
        numpy.dtype
            That of the saved array, also if the file holds another type in its place.

        Raises
        ------
        KeyError
            If there is no such array.
        """
        layout = self._entry(name).layout
        with _naming(self._header, name):
            return types.type_of_note(layout.note, layout.dtype)

    def dims(self, name: str) -> tuple[str, ...]:
        """The names of an array's axes. Not collective.

        Parameters
        ----------
        name : str
            The name of an array.

        Returns
        -------
        tuple of str
            One name for each axis; ``dim10`` for one of 10 elements if none was given.

        Raises
        ------
        KeyError
            If there is no such array.
        """
        return self._entry(name).layout.dims

    def array_attrs(self, name: str) -> dict[str, Any]:
        """The attributes of an array. Not collective.

        Parameters
        ----------
        name : str
            The name of an array.

        Returns
        -------
        dict
            A copy: values by name.

        Raises
        ------
        KeyError
            If there is no such array.
        """
        return dict(self._entry(name).layout.attrs)

    def blocks(self, name: str) -> tuple[Block, ...]:
        """The blocks in which an array was saved. Not collective.

        Parameters
        ----------
        name : str
            The name of an array.

        Returns
        -------
        tuple of Block
            Each has the ``rank`` that saved it and its ``box`` (``begin`` and ``shape``, in
            elements). Empty in files of other programs.

        Raises
        ------
        KeyError
            If there is no such array.
        """
        return self._entry(name).layout.blocks

    def mine(self, name: str) -> Part:
        """Proposes a part for this rank: the block that it saved, where as many ranks saved one
        block each, else an even share. Not collective.

        Parameters
        ----------
        name : str
            The name of an array.

        Returns
        -------
        tuple
            Offset and shape in elements, as for :meth:`read`.

        Raises
        ------
        KeyError
            If there is no such array.
        """
        blocks, ranks = self.blocks(name), self._ranks
        same = [block.rank for block in blocks] == list(range(ranks.size))
        box = blocks[ranks.rank].box if same else divide(self.shape(name), ranks.size, ranks.rank)
        return box.begin, box.shape

    def read(
        self,
        name: str,
        offset: Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
        *,
        out: types.Array | None = None,
    ) -> types.Array:
        """Reads a part of an array, or all of it. Collective.

        Parameters
        ----------
        name : str
            Name of the array; equal on all ranks.
        offset : sequence of int, optional
            Index of the part's first element, by default 0 along each axis. Without ``shape``,
            None reads the whole array on every rank.
        shape : sequence of int, optional
            Elements along each axis; that of ``out`` by default. Parts of ranks may overlap.
        out : numpy.ndarray, optional
            Receives the part, with any strides, such as ``T[1:-1, 1:-1]``. Its elements are of the
            saved type, or of one that holds their values, but for the precision of floating-point
            numbers. After an error it may contain anything.

        Returns
        -------
        numpy.ndarray
            ``out``, or a new array of the saved type.

        Raises
        ------
        CheckpointError
            If there is no such array or part, ``out`` does not fit, the bytes do not match their
            checksums, or reading fails on a rank; on all ranks.
        """
        part = None
        if offset is None and shape is not None:
            offset = (0,) * len(shape)
        if offset is not None:
            part = offset, shape if shape is not None else out.shape if out is not None else ()
        return self.read_many({name: part}, {} if out is None else {name: out})[name]

    def read_many(
        self, parts: Mapping[str, Part | None], out: Mapping[str, types.Array] | None = None
    ) -> dict[str, types.Array]:
        """Reads parts of several arrays at once. Collective.

        Parameters
        ----------
        parts : mapping of str to (offset, shape) or None
            Part of each array; None: the whole array. All ranks give the same names.
        out : mapping of str to numpy.ndarray, optional
            Arrays that receive the parts.

        Returns
        -------
        dict of str to numpy.ndarray
            The parts by name.

        Raises
        ------
        CheckpointError
            As :meth:`read`.
        """
        several = {name: None if part is None else [part] for name, part in parts.items()}
        found = self.read_pieces(several, {name: [taker] for name, taker in (out or {}).items()})
        return {name: arrays[0] for name, arrays in found.items()}

    @postpone_interrupt()
    def read_pieces(
        self,
        parts: Mapping[str, Sequence[Part] | None],
        out: Mapping[str, Sequence[types.Array]] | None = None,
    ) -> dict[str, list[types.Array]]:
        """Reads any number of parts of several arrays at once. Collective.

        Parameters
        ----------
        parts : mapping of str to sequence of (offset, shape), or None
            Parts of each array, maybe none; None: the whole array. All ranks give the same names.
        out : mapping of str to sequence of numpy.ndarray, optional
            Arrays that receive the parts.

        Returns
        -------
        dict of str to list of numpy.ndarray
            The parts by name.

        Raises
        ------
        CheckpointError
            As :meth:`read`.
        """
        reading = Reading(self._ranks, self._header, self._files, verify=self._verify)
        targets = out or {}
        return {
            name: [
                self._convert(name, data, target)
                for data, target in zip(some, targets.get(name) or repeat(None), strict=False)
            ]
            for name, some in reading.run(parts, targets).items()
        }

    def _convert(self, name: str, data: types.Array, target: types.Array | None) -> types.Array:
        """The elements in their saved type, in the target if there is one."""
        if data is target:
            return data
        with _naming(self._header, name):
            found = types.from_stored(data, self._entry(name).layout.note)
        if target is None:
            return found
        target[...] = found
        return target

    def _entry(self, name: str) -> Entry:
        try:
            return self._header.entries[name]
        except KeyError:
            raise KeyError(self._header.describe_missing(name)) from None


@contextmanager
def _naming(header: Header, name: str) -> Iterator[None]:
    """Adds path and array to the CheckpointErrors of the body."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(f"{header.name}: array '{name}': {error}") from error
