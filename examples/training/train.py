"""A small network learns the classes of records, from a record file, with all that a long training needs: order, prefetch, resume.

    python train.py make samples/ 5000          # so many small files, a class each
    pario records pack samples/ -o samples.prec
    python train.py fit samples.prec            # interrupted and started again, it goes on where it was

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
    """Files of a class byte and values that lie around what is the class's."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(CLASSES, VALUES))
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        kind = number * CLASSES // count  # sorted by class, as data sets are: what is read in order teaches badly
        values = (centres[kind] + 4 * random.normal(size=VALUES)).astype("<f4")
        (directory / f"{number:06}.bin").write_bytes(bytes([kind]) + values.tobytes())


def decode(record: memoryview) -> tuple[int, torch.Tensor]:
    """A sample of a record."""
    return record[0], torch.frombuffer(bytearray(record[1:]), dtype=torch.float32)


def collate(samples: list[tuple[int, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of samples."""
    return torch.tensor([kind for kind, _ in samples]), torch.stack([values for _, values in samples])


class Network(torch.nn.Module):
    """Its hidden layers keep no activations for the backward pass: they are computed again, and the memory holds a larger batch."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(VALUES, 64)
        self.hidden = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(64, 64)) for _ in range(4)))
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
        print(f"goes on in epoch {loader.epoch} behind record {loader.position}")
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
    """At once or not at all."""
    aside = STATE.with_suffix(".new")
    torch.save({"network": network.state_dict(), "loader": loader.state_dict()}, aside)
    aside.replace(STATE)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        fit(Path(sys.argv[2]))
