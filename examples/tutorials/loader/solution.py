"""Trains on samples that pario's Loader reads ahead, in threads, from one open file."""

import sys

import numpy as np

from pario.records import Dataset, Loader

SAMPLE = 1024  # numbers


def train(path, count):
    samples = Dataset(path, format="fixed", size=SAMPLE * 4)
    loader = Loader(samples, batch_size=32, shuffle=True)
    return sum(float(batch.torch("<f4").sum()) for batch in loader)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE")
    np.ones(20_000 * SAMPLE, "f4").tofile(sys.argv[1])
    print(train(sys.argv[1], 20_000))
