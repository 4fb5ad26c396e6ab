"""Trains on samples that a Dataset of PyTorch reads, each from a newly opened file."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SAMPLE = 1024  # numbers


class Samples(Dataset):
    def __init__(self, path, count):
        self.path, self.count = path, count

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        with open(self.path, "rb") as file:
            file.seek(number * SAMPLE * 4)
            return torch.from_numpy(np.frombuffer(file.read(SAMPLE * 4), "f4").copy())


def train(path, count):
    loader = DataLoader(Samples(path, count), batch_size=32, shuffle=True)
    return sum(float(batch.sum()) for batch in loader)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE")
    np.ones(20_000 * SAMPLE, "f4").tofile(sys.argv[1])
    print(train(sys.argv[1], 20_000))
