"""Trains one epoch of a tiny network from 400 files, with two worker processes."""

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self):
        self.paths = sorted(Path("samples").iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        values = np.fromfile(self.paths[index], dtype="f4")
        return torch.from_numpy(values), torch.tensor(float(index % 2))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    network = torch.nn.Linear(256, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    for values, label in DataLoader(Samples(), batch_size=20, num_workers=2, shuffle=True):
        loss = torch.nn.functional.mse_loss(network(values).squeeze(1), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")
    torch.save(network.state_dict(), "network.pt")
    print(torch.load("network.pt", weights_only=True)["weight"].sum().item())


if __name__ == "__main__":
    main()
