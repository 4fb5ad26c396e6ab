"""``checkpoints.py save|load DIRECTORY SEED [FILES|zstd]``: saves random arrays in a random
decomposition, maybe compressed; loads and compares them in another one."""

import random
import sys

import numpy as np
from mpi4py import MPI

from pario import checkpoint
from pario.checkpoint import container
from pario.checkpoint.geometry import Box, whole

TYPES = (
    "f8",
    "f4",
    "i2",
    "u1",
    "c16",
    "?",
    "S5",
    "<U3",
    "M8[s]",
    [("id", "<u4"), ("place", "<f8", (3,))],
)


def arrays(seed: int) -> dict[str, np.ndarray]:
    """Makes random arrays, the same on all ranks."""
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    found = {}
    for number in range(6):
        kind = np.dtype(chance.choice(TYPES))
        shape = tuple(chance.choice((0, 1, 2, 5, 9, 30)) for _ in range(chance.randrange(4)))
        if number == 0:
            # too many runs to share a call with other arrays
            kind, shape = np.dtype("f8"), (40, 50, 60)
        count = int(np.prod(shape, dtype=int)) * kind.itemsize
        content = numbers.integers(97, 122, count, np.uint8).tobytes()
        if kind.kind == "U":
            content = (
                np.frombuffer(content, "u1").astype("u1")[: count // 4].astype("<u4").tobytes()
            )
        if kind.kind == "b":
            content = (np.frombuffer(content, "u1") & 1).tobytes()
        found[f"array{number}"] = np.frombuffer(content, kind).reshape(shape).copy()
    return found


def boxes(shape: tuple[int, ...], chance: random.Random) -> list[Box]:
    """Makes random boxes that tile an array."""
    found = [whole(shape)]
    for _ in range(chance.randrange(8) if shape else 0):
        box = found.pop(chance.randrange(len(found)))
        axis = chance.randrange(len(shape))
        at = chance.randint(0, box.shape[axis])
        for first, length in ((0, at), (at, box.shape[axis] - at)):
            begin, size = list(box.begin), list(box.shape)
            begin[axis] += first
            size[axis] = length
            found.append(Box(tuple(begin), tuple(size)))
    return found


def save(comm: MPI.Comm, directory: str, seed: int, files: str = "1") -> None:
    chance = random.Random(seed + comm.size)
    container.LARGE = (0, 5000, container.LARGE)[seed // 10 % 3]
    options = {"files": int(files) if files.isdigit() else files}
    if files == "zstd":
        options = {"compress": files}
    with checkpoint.Writer(comm, directory, durable=False, **options) as writer:
        for step in range(2):
            given = {"seed": seed + step, "rank": checkpoint.per_rank(comm.rank)}
            for name, array in arrays(seed + step).items():
                mine = boxes(array.shape, chance)[comm.rank :: comm.size]
                parts = [
                    (add_ghost_cells(array[box.within(whole(array.shape))]), box.begin)
                    for box in mine
                ]
                given[name] = checkpoint.blocks(parts, array.shape)
            save = writer.save_async if (seed + step) % 20 == 1 else writer.save
            save(step, given, {"seed": seed + step})


def add_ghost_cells(part: np.ndarray) -> np.ndarray:
    """Returns the same numbers, as the inner part of an array with ghost cells."""
    around = np.zeros(tuple(length + 2 for length in part.shape), part.dtype)
    inner = around[(*(slice(1, -1) for _ in part.shape), ...)]
    inner[...] = part
    return inner


def load(comm: MPI.Comm, directory: str, seed: int) -> None:
    chance = random.Random(seed + 100 + comm.size)
    state = checkpoint.load(comm, directory)
    assert (state.step, state.attrs["seed"], int(state["seed"])) == (1, seed + 1, seed + 1)
    assert state["rank"].tolist() == list(range(state.about["ranks"]))
    expected = arrays(seed + 1)
    full = state.read_many(dict.fromkeys(expected))
    for name, array in expected.items():
        assert full[name].dtype == array.dtype and full[name].tobytes() == array.tobytes(), name
        if array.ndim:
            tiles = boxes(array.shape, chance)
            tiles += [Box((0,) * array.ndim, (0,) * array.ndim)] * (-len(tiles) % comm.size)
            for turn in range(0, len(tiles), comm.size):
                box = tiles[turn + comm.rank]
                assert (
                    state.read(name, box.begin, box.shape).tobytes()
                    == array[box.within(whole(array.shape))].tobytes()
                ), (name, box)
        offset, shape = state.mine(name)
        assert (
            state.read(name, offset, shape).tobytes()
            == array[Box(offset, shape).within(whole(array.shape))].tobytes()
        )


if __name__ == "__main__":
    {"save": save, "load": load}[sys.argv[1]](
        MPI.COMM_WORLD, sys.argv[2], int(sys.argv[3]), *sys.argv[4:]
    )
    if MPI.COMM_WORLD.rank == 0:
        print("good")
