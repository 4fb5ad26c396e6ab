"""The handlers of types that Orbax calls for the values of a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import jax
import numpy as np
from absl import logging
from orbax import checkpoint as ocp

from pario.checkpoint.arrays import Saved
from pario.checkpoint.errors import CheckpointError
from pario.checkpoint.jax_ranks import processes_of_jax
from pario.checkpoint.orbax.values import (
    Collected,
    SavedValues,
    Wanted,
    name_of,
    want_scalar,
    want_sharded,
    want_whole,
)
from pario.checkpoint.ranks import unite
from pario.checkpoint.reader import load
from pario.checkpoint.writer import Writer
from pario.ranks import PATIENCE, Ranks

#: The directory of pario's checkpoints within one of Orbax.
_FOLDER = "pario"


@dataclass(frozen=True)
class _Options:
    files: int | str
    durable: bool
    verify: bool
    patience: float


class Turn:
    """The turn of a save. The saves of several items and types are in threads of their own; all
    processes make their collective calls in the same order."""

    def __init__(self, before: Event) -> None:
        self._before, self.done = before, Event()

    @contextmanager
    def begin(self, what: str, patience: float) -> Iterator[None]:
        """Waits for the save before this one, and ends the turn with the body."""
        if not self._before.wait(patience):
            raise CheckpointError(f"{what}: the save before it did not end")
        try:
            yield
        finally:
            self.done.set()


class _Turns:
    """The turns of saves, in the order of the calls of :meth:`Handler.serialize`."""

    def __init__(self) -> None:
        self._last = Event()
        self._last.set()

    def take(self) -> Turn:
        """The next turn."""
        turn = Turn(self._last)
        self._last = turn.done
        return turn


_turns = _Turns()


class Handler(ocp.type_handlers.TypeHandler):  # type: ignore[misc]
    """Saves the values of one type of a tree as a checkpoint of pario, and restores them.

    ``before``: Orbax's handler of the type, which restores the checkpoints that it has saved.
    """

    #: Orbax's store of facts about chunks, which pario's files do not have.
    _array_metadata_store = None
    _add: Callable[[Collected, Any, Any, Any], None] = staticmethod(Collected.add_whole)
    _want: Callable[[Any, SavedValues, str], Wanted] = staticmethod(want_whole)

    def __init__(self, before: Any, options: _Options) -> None:
        self.before, self._options = before, options

    def typestr(self) -> str:
        """Orbax's name of the type."""
        return str(self.before.typestr())

    async def serialize(
        self, values: Sequence[Any], infos: Sequence[Any], args: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """Copies the values; they are written in a thread of Orbax. Collective."""
        collected = Collected(is_first=jax.process_index() == 0)
        for value, info, arg in zip(values, infos, args or [None] * len(values), strict=True):
            self._add(collected, info, arg, value)
        work = self._write(_turns.take(), infos[0], collected.describe())
        name = f"pario {self.typestr()}"
        return [ocp.future.CommitFutureAwaitingContractedSignals(work, name=name)]

    async def _write(self, turn: Turn, info: Any, arrays: Mapping[str, Saved]) -> None:
        await info.await_path_creation()
        place, options = info.parent_dir / _FOLDER / self.typestr(), self._options
        with turn.begin(f"saving {place}", options.patience):
            ranks = processes_of_jax("saves", options.patience)
            with Writer(
                ranks, place, files=options.files, durable=options.durable, patience=ranks.patience
            ) as writer:
                writer.save(0, arrays)

    async def deserialize(
        self, infos: Sequence[Any], args: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """Reads the values, each process its part. Collective."""
        place = infos[0].parent_dir / _FOLDER
        if not place.is_dir():
            return await self.before.deserialize(infos, args)  # type: ignore[no-any-return]
        options = self._options
        ranks = processes_of_jax("restores", options.patience)
        found: dict[str, Any] = {}
        wanted = dict(zip(map(name_of, infos), args or [None] * len(infos), strict=True))
        for saved in _open_all(ranks, place, verify=options.verify):
            found.update(self._read(ranks, saved, wanted))
        for name in map(name_of, infos):
            if name not in found:
                raise CheckpointError(f"{place} has no array '{name}'")
        return [found[name_of(info)] for info in infos]

    def _read(self, ranks: Ranks, saved: SavedValues, args: Mapping[str, Any]) -> dict[str, Any]:
        """The values that are in a checkpoint, by name."""
        state = saved.state
        wanted: dict[str, Wanted] = {}

        def collect() -> list[str]:
            for name, arg in args.items():
                if name in state:
                    wanted[name] = self._want(arg, saved, name)
            return list(wanted)

        names = ranks.together(f"restoring {state.name}", collect, unite)
        boxes = {name: wanted[name].boxes if name in wanted else [] for name in names}
        pieces = state.read_pieces(
            {name: [(box.begin, box.shape) for box in some] for name, some in boxes.items()}
        )
        return {name: one.make(pieces[name]) for name, one in wanted.items()}

    async def metadata(self, infos: Sequence[Any]) -> Sequence[Any]:
        """Types, shapes and shardings, from the headers of the files. Not collective."""
        place = infos[0].parent_dir / _FOLDER
        if not place.is_dir():
            return await self.before.metadata(infos)  # type: ignore[no-any-return]
        saved = SavedValues(load(None, place / self.typestr(), verify=self._options.verify))
        return [self._describe(info, saved) for info in infos]

    def _describe(self, info: Any, saved: SavedValues) -> Any:
        name, state = name_of(info), saved.state
        return ocp.metadata.ArrayMetadata(
            name=info.name,
            directory=info.parent_dir,
            shape=state.shape(name),
            sharding=saved.sharding(name),
            dtype=state.dtype(name),
        )


class ArrayHandler(Handler):
    """Arrays of JAX, in shards of all processes."""

    _add = staticmethod(Collected.add_sharded)
    _want = staticmethod(want_sharded)


class ScalarHandler(Handler):
    """Numbers, as arrays without axes."""

    _want = staticmethod(want_scalar)

    def _describe(self, info: Any, saved: SavedValues) -> Any:
        dtype = saved.state.dtype(name_of(info))
        return ocp.metadata.ScalarMetadata(name=info.name, directory=info.parent_dir, dtype=dtype)


def _open_all(ranks: Ranks, place: Any, *, verify: bool) -> Iterator[SavedValues]:
    """The checkpoints within one of Orbax. Collective."""
    kinds = ranks.together(
        f"restoring {place}", lambda: None, lambda _: sorted(one.name for one in place.iterdir())
    )
    for kind in kinds:
        yield SavedValues(load(ranks, place / kind, verify=verify))


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Keeps Orbax from warning of each handler that is replaced."""
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)


def register(
    *,
    files: int | str = 1,
    durable: bool = True,
    verify: bool = True,
    patience: float = PATIENCE,
) -> None:
    """Makes Orbax save arrays and numbers in files of pario, in the whole program.

    Checkpoints that Orbax has saved itself are restored as before. To be called once by each
    process, before the first save or restore; not collective.

    Parameters
    ----------
    files, durable, patience
        As for :class:`pario.checkpoint.Writer`.
    verify : bool, optional
        As for :func:`pario.checkpoint.load`.

    Examples
    --------
    >>> import tempfile
    >>> import jax.numpy as jnp
    >>> import orbax.checkpoint as ocp
    >>> import pario.checkpoint.orbax
    >>> pario.checkpoint.orbax.register()
    >>> with tempfile.TemporaryDirectory() as path, ocp.PyTreeCheckpointer() as checkpointer:
    ...     checkpointer.save(f"{path}/10", {"w": jnp.arange(3.0), "epoch": 2})
    ...     checkpointer.restore(f"{path}/10")["w"].tolist()
    [0.0, 1.0, 2.0]
    """
    options = _Options(files, durable, verify, patience)
    made: dict[str, Handler] = {}
    with _no_warnings():
        for kind, handler in (
            (jax.Array, ArrayHandler),
            (np.ndarray, Handler),
            *((number, ScalarHandler) for number in (int, float, bytes, np.number)),
        ):
            known = ocp.type_handlers.get_type_handler(kind)
            before = known.before if isinstance(known, Handler) else known
            mine = made.setdefault(before.typestr(), handler(before, options))
            ocp.type_handlers.register_type_handler(kind, mine, override=True)
