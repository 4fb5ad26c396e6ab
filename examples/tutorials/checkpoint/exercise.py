"""Saves the state of a simulation; each row reaches the disk before the next one is written."""

import os
import sys
from pathlib import Path

import numpy as np


def save(folder, step, state):
    for name, array in state.items():
        with open(folder / f"{name}-{step}.bin", "wb") as file:
            for row in array:
                file.write(row.tobytes())
                file.flush()
                os.fsync(file.fileno())


def load(folder, step, name, shape):
    return np.fromfile(folder / f"{name}-{step}.bin").reshape(shape)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    folder = Path(sys.argv[1])
    folder.mkdir()
    state = {name: np.ones((200, 500)) for name in ("density", "energy", "momentum")}
    for step in range(4):
        save(folder, step, state)
