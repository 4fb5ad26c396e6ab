"""Saves samples for a training, each in a file of its own, and adds them up."""

import sys
from pathlib import Path

import numpy as np


def save_samples(folder, samples):
    for number, sample in enumerate(samples):
        np.save(folder / f"{number:06}.npy", sample)


def add_up(folder):
    return sum(np.load(path).sum() for path in sorted(folder.glob("*.npy")))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY")
    folder = Path(sys.argv[1])
    folder.mkdir()
    save_samples(folder, np.ones((12_000, 32)))
    print(add_up(folder))
