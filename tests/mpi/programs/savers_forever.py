"""``savers_forever.py DIRECTORY async|dcp|dcp-async|orbax RANK RANKS``: saves until a signal ends
it; writes down its process and the complete steps. SIGTERM ends it by an exception."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np

from pario import checkpoint

SIZE = 1 << 18


def content(step: int) -> np.ndarray:
    return np.full(SIZE, float(step))


def save_async(directory: Path, comm: object, rank: int, ranks: int) -> Iterator[int]:
    """Yields complete steps, as all savers here do."""
    box = checkpoint.divide((SIZE,), ranks, rank)
    rows = slice(box.begin[0], box.end[0])
    with checkpoint.Writer(comm, directory, keep=2, durable=False) as writer:
        pending = None
        for step in count():
            part = checkpoint.block(content(step)[rows], (SIZE,), box.begin)
            pending, before = writer.save_async(step, {"T": part}), pending
            if before:
                before.result()
                yield before.step


def save_by_dcp(
    directory: Path, comm: object, rank: int, ranks: int, background: bool = False
) -> Iterator[int]:
    import torch
    import torch.distributed.checkpoint as dcp

    from pario.checkpoint.dcp import Writer

    pending = None
    for step in count():
        state = {"T": torch.from_numpy(content(step)), f"own{rank}": torch.full((9,), step)}
        if pending is not None:
            pending.result()
            yield step - 1
        writer = Writer(directory, step=step, keep=2, durable=False)
        if background:
            with hold_signals():
                pending = dcp.async_save(state, storage_writer=writer)
        else:
            dcp.save(state, storage_writer=writer, no_dist=ranks == 1)
            yield step


@contextmanager
def hold_signals() -> Iterator[None]:
    """Signals wait. An exception while an executor of Python starts its thread leaves a thread that
    the interpreter's end waits for."""
    held: list[int] = []
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.signal(one, lambda number, _: held.append(number)) for one in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    for number in held:
        signal.raise_signal(number)


def save_by_dcp_async(*where: object) -> Iterator[int]:
    return save_by_dcp(*where, background=True)


def save_by_orbax(directory: Path, comm: object, rank: int, ranks: int) -> Iterator[int]:
    with open_orbax(directory) as manager:
        for step in count():
            save_step_by_orbax(manager, step)  # waits for the earlier one
            if step:
                yield step - 1


def open_orbax(directory: Path) -> object:
    import orbax.checkpoint as ocp

    import pario.checkpoint.orbax

    pario.checkpoint.orbax.register(durable=False)
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    return ocp.CheckpointManager(directory, options=options)


def save_step_by_orbax(manager: object, step: int) -> None:
    import jax.numpy as jnp
    import orbax.checkpoint as ocp

    state = {"T": jnp.asarray(content(step), jnp.float32)}
    manager.save(step, args=ocp.args.PyTreeSave(state))


SAVERS: dict[str, Callable[..., Iterator[int]]] = {
    "async": save_async,
    "dcp": save_by_dcp,
    "dcp-async": save_by_dcp_async,
    "orbax": save_by_orbax,
}


def main(place: Path, kind: str, rank: int, ranks: int) -> None:
    comm = None
    if kind.startswith("dcp") or ranks > 1:
        from torch import distributed

        distributed.init_process_group(
            "gloo", init_method=f"file://{place}/store", rank=rank, world_size=ranks
        )
        comm = distributed.group.WORLD if ranks > 1 else None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    (place / f"process{rank}").write_text(str(os.getpid()))
    for step in SAVERS[kind](place / "ckpt", comm, rank, ranks):
        (place / f"note{rank}").write_text(str(step))
        (place / f"note{rank}").replace(place / f"complete{rank}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
