"""Trains a small network to classify the records of a file, with random order, prefetch and resume.

    python train.py make samples/ 5000          # makes 5000 small files, one sample each
    pario records pack samples/ -o samples.prec
    python train.py fit samples.prec            # resumes an interrupted training
    python train.py memory                      # compares three ways to keep activations

Needs torch.
"""

import ctypes
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from pario.records import Dataset, Loader

CLASSES, VALUES = 4, 1024
EPOCHS, BATCH = 3, 32
STATE = Path("train.pt")
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def make(directory: Path, count: int) -> None:
    """Makes files of a class byte and random values around the centre of the class."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(CLASSES, VALUES))
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        # Sorted by class, like many data sets: training in this order would give a bad network.
        kind = number * CLASSES // count
        values = (centres[kind] + 4 * random.normal(size=VALUES)).astype("<f4")
        (directory / f"{number:06}.bin").write_bytes(bytes([kind]) + values.tobytes())


def decode(record: memoryview) -> tuple[int, torch.Tensor]:
    """Decodes a record into class and values."""
    return record[0], torch.frombuffer(bytearray(record[1:]), dtype=torch.float32)


def collate(samples: list[tuple[int, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Joins samples into a batch."""
    kinds, values = zip(*samples, strict=True)
    return torch.tensor(kinds), torch.stack(values)


class Network(torch.nn.Module):
    """A network that may recompute the activations of hidden layers in the backward pass.

    ``recompute``: "layers" keeps the input of each layer; "segment" keeps the input of the first
    one only, and recomputes all layers together; "" keeps all activations.
    """

    def __init__(
        self, recompute: str = "layers", values: int = VALUES, width: int = 64, depth: int = 4
    ) -> None:
        super().__init__()
        self.recompute = recompute
        self.first = torch.nn.Linear(values, width)
        layers = [(torch.nn.GELU(), torch.nn.Linear(width, width)) for _ in range(depth)]
        self.hidden = torch.nn.Sequential(*(torch.nn.Sequential(*layer) for layer in layers))
        self.last = torch.nn.Linear(width, CLASSES)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        values = self.first(values)
        if self.recompute == "segment":
            return self.last(checkpoint(self.hidden, values, use_reentrant=False))
        for layer in self.hidden:
            if self.recompute:
                values = checkpoint(layer, values, use_reentrant=False)
            else:
                values = layer(values)
        return self.last(values)


def step(network: Network, batch: int, width: int) -> float:
    """Trains with random values. Returns the seconds without making them."""
    values, kinds = torch.randn(batch, width), torch.zeros(batch, dtype=torch.int64)
    start = time.perf_counter()
    torch.nn.functional.cross_entropy(network(values), kinds).backward()
    return time.perf_counter() - start


def peak_memory() -> float:
    """The most memory that this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def compare_memory(batch: int, width: int = 256, depth: int = 16, steps: int = 3) -> None:
    """Prints peak memory and time of a training step for each way to keep activations."""
    # glibc keeps freed memory of large tensors for later ones: every one gets memory of its own
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)
    print("activations        peak memory   step")
    for recompute, text in (
        ("", "all kept"),
        ("segment", "one segment"),
        ("layers", "each layer"),
    ):
        sys.stdout.flush()
        child = os.fork()  # each has a peak of its own
        if child == 0:
            torch.manual_seed(1)
            network = Network(recompute, width, width, depth)
            step(network, 1, width)  # loads the libraries
            before = peak_memory()
            times = [step(network, batch, width) for _ in range(steps)]
            peak = peak_memory() - before
            print(f"{text:17} {peak:9.0f} MB {min(times):8.2f} s", flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def fit(path: Path) -> None:
    torch.manual_seed(1)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02)
    loader = Loader(Dataset(path), BATCH, shuffle=True, seed=1, transform=decode, collate=collate)
    if STATE.exists():
        state = torch.load(STATE)
        network.load_state_dict(state["network"])
        loader.load_state_dict(state["loader"])
        print(f"resumes in epoch {loader.epoch} after record {loader.position}")
    while loader.epoch < EPOCHS:
        right = seen = 0
        for step, (kinds, values) in enumerate(loader):
            guess = network(values)
            loss = torch.nn.functional.cross_entropy(guess, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right, seen = right + int((guess.argmax(1) == kinds).sum()), seen + len(kinds)
            if step % 50 == 49:
                save(network, loader)
        print(f"epoch {loader.epoch - 1}: {right / max(seen, 1):.1%} right; {loader.stats}")
        save(network, loader)
    STATE.unlink()


def save(network: Network, loader: Loader) -> None:
    """Publishes a checkpoint: a reader sees the old one or the complete new one."""
    aside = STATE.with_suffix(".new")
    torch.save({"network": network.state_dict(), "loader": loader.state_dict()}, aside)
    aside.replace(STATE)


def main(words: list[str]) -> int:
    """Runs a subcommand. Returns the exit status."""
    match words:
        case ["make", directory, count]:
            make(Path(directory), int(count))
        case ["fit", path]:
            fit(Path(path))
        case ["memory", *batch]:
            compare_memory(*map(int, batch or ["16384"]))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
