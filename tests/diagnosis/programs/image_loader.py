"""A data loader that opens one small file per sample, in the shuffled order of an epoch."""

import random
from pathlib import Path

from work import compute, repaired, size

EPOCHS = 3


class Images:
    """A folder of encoded images; `items` are their names."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self.items = [f"{number:06d}" for number in range(size)]

    def __getitem__(self, number: int) -> bytes:
        return (self._folder / self.items[number]).read_bytes()


class PackedImages:
    """The same images, one after the other in a file."""

    def __init__(self, path: str, each: int) -> None:
        data = Path(path).read_bytes()
        self._images = [data[at * each : (at + 1) * each] for at in range(size)]

    def __getitem__(self, number: int) -> bytes:
        return self._images[number]


images = PackedImages("packed.bin", 2000) if repaired else Images("items")
total = 0
for epoch in range(EPOCHS):
    order = list(range(size))
    random.Random(epoch).shuffle(order)
    for number in order:
        total += len(images[number])
compute()
print(total, "bytes")
