"""Saves the state of a simulation as a checkpoint: complete or not there, flushed once."""

import sys
from pathlib import Path

import numpy as np

from pario import checkpoint


def save(folder, step, state):
    with checkpoint.Writer(None, folder, keep=2) as writer:
        writer.save(step, state)


def load(folder, step, name, shape):
    return checkpoint.load(None, folder, step=step).read(name).reshape(shape)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    folder = Path(sys.argv[1])
    folder.mkdir()
    state = {name: np.ones((200, 500)) for name in ("density", "energy", "momentum")}
    for step in range(4):
        save(folder, step, state)
