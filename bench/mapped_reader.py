"""Loads a file by a library that maps it; prints the seconds until each byte was touched.

python bench/mapped_reader.py numpy|safetensors|torch|write DIRECTORY [MEGABYTES]

``write`` makes the files of all three libraries, in tensors of 4 MiB, which safetensors then loads
in random order.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np

MIB = 1 << 20
TENSOR = 4 * MIB
NAMES = {"numpy": "model.npy", "safetensors": "model.safetensors", "torch": "model.pt"}


def load_numpy(path: Path) -> None:
    for row in np.load(path, mmap_mode="r"):
        row.sum()


def load_safetensors(path: Path) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        names = sorted(file.keys())
        random.Random(1).shuffle(names)
        for name in names:
            file.get_tensor(name)


def load_torch(path: Path) -> None:
    import torch

    for tensor in torch.load(path, mmap=True, weights_only=True).values():
        tensor.clone()


def write(directory: Path, count: int, size: int, libraries: Collection[str] = NAMES) -> None:
    """Writes ``count`` tensors of ``size`` bytes for each library."""
    tensors = np.random.default_rng(0).integers(0, 255, (count, size), dtype=np.uint8)
    named = {f"t{number}": tensor for number, tensor in enumerate(tensors)}
    if "numpy" in libraries:
        np.save(directory / NAMES["numpy"], tensors)
    if "safetensors" in libraries:
        from safetensors.numpy import save_file

        save_file(named, directory / NAMES["safetensors"])
    if "torch" in libraries:
        import torch

        state = {name: torch.from_numpy(tensor.copy()) for name, tensor in named.items()}
        torch.save(state, directory / NAMES["torch"])


LOADERS = {"numpy": load_numpy, "safetensors": load_safetensors, "torch": load_torch}


def main() -> None:
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "write":
        write(where, int(sys.argv[3]) * MIB // TENSOR, TENSOR)
        return
    with tempfile.TemporaryDirectory() as small:  # imports the modules that loading needs
        write(Path(small), 1, 1000, [what])
        LOADERS[what](Path(small, NAMES[what]))
    start = time.perf_counter()
    LOADERS[what](where / NAMES[what])
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
