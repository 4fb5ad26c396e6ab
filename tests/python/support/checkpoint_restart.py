"""Restarts from a checkpoint by ranks that are threads on nodes: DIRECTORY WAY RANKS NODES [apart].

``apart``: messages between nodes carry no bytes of arrays, as those of PyTorch's store.

The checkpoint has one block for each of 8 ranks. Each rank compares its part with the array saved.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pario import checkpoint
from pario.checkpoint.geometry import Box, divide, whole
from pario.ranks import Ranks
from tests.python.support.threads import run, run_on_nodes

SHAPE = (512, 64, 32)  # 8 MiB
ARRAY = np.arange(512 * 64 * 32.0).reshape(SHAPE)
SAVED_BY = 8


def slabs(size: int, rank: int) -> Box:
    """Long runs: an even share of the first axis."""
    rows = divide((SHAPE[0],), size, rank)
    return Box((*rows.begin, 0, 0), (*rows.shape, *SHAPE[1:]))


def widen(box: Box) -> Box:
    """Adds a ghost cell on each side of the first axis."""
    begin, end = max(0, box.begin[0] - 1), min(SHAPE[0], box.begin[0] + box.shape[0] + 1)
    return Box((begin, 0, 0), (end - begin, *SHAPE[1:]))


#: The part of each rank; None: the whole array on every rank.
PARTS: dict[str, Callable[[int, int], Box | None]] = {
    "slabs": slabs,
    "ghosts": lambda size, rank: widen(slabs(size, rank)),
    "columns": lambda size, rank: Box((0, rank, 0), (SHAPE[0], SHAPE[1] // size, SHAPE[2])),
    "replicas": lambda size, rank: slabs(8, rank % 8),
    "whole": lambda size, rank: None,
}


def save(path: Path, files: int | str) -> None:
    def program(ranks: Ranks) -> None:
        box = slabs(SAVED_BY, ranks.rank)
        part = checkpoint.block(ARRAY[box.within(whole(SHAPE))], SHAPE, box.begin)
        with checkpoint.Writer(ranks, path, files=files, durable=False) as writer:
            writer.save(1, {"T": part, "n": np.arange(10.0)})

    assert run(SAVED_BY, program) == [None] * SAVED_BY


def restart(path: Path, way: str, size: int, nodes: int, *, apart: bool) -> None:
    def program(ranks: Ranks) -> bool:
        state = checkpoint.load(ranks, path)
        box = PARTS[way](size, ranks.rank)
        part = None if box is None else (box.begin, box.shape)
        read = state.read_many({"T": part, "n": None})
        wanted = ARRAY if box is None else ARRAY[box.within(whole(SHAPE))]
        few = state.read("n", (ranks.rank % 10,), (1,))  # opens nothing again
        return bool((read["T"] == wanted).all() and few[0] == ranks.rank % 10)

    if not apart:  # as if they were those of MPI
        Ranks.can_open_files = property(lambda ranks: ranks._messages.can_open)  # type: ignore
    ended = run_on_nodes([rank * nodes // size for rank in range(size)], program)
    assert ended == [True] * size, [one for one in ended if one is not True][:3]


if __name__ == "__main__":
    if sys.argv[2] == "save":
        save(Path(sys.argv[1]), "rank" if sys.argv[3] == "rank" else int(sys.argv[3]))
    else:
        apart = sys.argv[5:] == ["apart"]
        restart(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), apart=apart)
