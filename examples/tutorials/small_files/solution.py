"""Saves samples for a training in one file, and adds them up."""

import sys
from pathlib import Path

import numpy as np


def save_samples(folder, samples):
    np.save(folder / "samples.npy", samples)


def add_up(folder):
    return np.load(folder / "samples.npy").sum()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    folder = Path(sys.argv[1])
    folder.mkdir()
    save_samples(folder, np.ones((12_000, 32)))
    print(add_up(folder))
