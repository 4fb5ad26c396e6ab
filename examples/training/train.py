"""Trains a small network to classify the records of a file, with random order, prefetch and resume.

    python train.py make samples/ 5000          # makes 5000 small files, one sample each
    pario records pack samples/ -o samples.prec
    python train.py fit samples.prec            # resumes an interrupted training

Needs torch.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from pario.records import Dataset, Loader

CLASSES, VALUES = 4, 1024
EPOCHS, BATCH = 3, 32
STATE = Path("train.pt")


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
    """A network that recomputes the activations of hidden layers in the backward pass.

    It keeps fewer activations in memory, which leaves space for a larger batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(VALUES, 64)
        layers = [(torch.nn.ReLU(), torch.nn.Linear(64, 64)) for _ in range(4)]
        self.hidden = torch.nn.Sequential(*(torch.nn.Sequential(*layer) for layer in layers))
        self.last = torch.nn.Linear(64, CLASSES)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.last(checkpoint(self.hidden, self.first(values), use_reentrant=False))


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


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        fit(Path(sys.argv[2]))
