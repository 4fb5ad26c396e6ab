"""Trains a small network with Keras, on the backend of KERAS_BACKEND, from records in random order.

    python keras_train.py make samples.bin               # makes 4096 samples of fixed size
    python keras_train.py fit samples.bin 3              # trains 3 epochs

Needs keras, and jax, torch or tensorflow.
"""

import os
import sys
from pathlib import Path

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras

from pario.records import Dataset, Loader

COUNT, CLASSES, VALUES = 4096, 4, 64
SIZE = 4 * (VALUES + 1)  # bytes of a sample: a class and its values, as float32


def make(path: Path) -> None:
    """Makes samples around the centre of their class, sorted by class."""
    random = np.random.default_rng(1)
    kinds = np.arange(COUNT) * CLASSES // COUNT
    values = random.normal(size=(CLASSES, VALUES))[kinds] + 2 * random.normal(size=(COUNT, VALUES))
    np.column_stack([kinds, values]).astype("<f4").tofile(path)


def decode(record: memoryview) -> np.ndarray:
    """The class and the values of a sample."""
    return np.frombuffer(record, "<f4")


def collate(samples: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and the targets of a batch."""
    batch = np.stack(samples)
    return batch[:, 1:], batch[:, 0].astype("i4")


def fit(path: Path, epochs: int) -> None:
    """Trains a new network."""
    keras.utils.set_random_seed(1)
    dataset = Dataset(path, format="fixed", size=SIZE)
    loader = Loader(dataset, 64, shuffle=True, seed=1, transform=decode, collate=collate)
    model = keras.Sequential(
        [keras.layers.Dense(32, "relu"), keras.layers.Dense(CLASSES, "softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    found = model.fit(
        loader.forever(), steps_per_epoch=len(loader), epochs=epochs, shuffle=False, verbose=0
    )
    for epoch, part in enumerate(found.history["accuracy"]):
        print(f"epoch {epoch}: {part:.1%} right, {len(loader)} batches")
    print(f"{loader.stats.batches} batches read")


def main() -> None:
    """Runs the command of the arguments."""
    words = sys.argv[1:]
    if words[:1] == ["make"] and len(words) == 2:
        make(Path(words[1]))
    elif words[:1] == ["fit"] and len(words) == 3:
        fit(Path(words[1]), int(words[2]))
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
