"""A training loop over small files. Prints the samples in their order, with the first word of each
file, the number of files that the workers opened on another file system than the files', a random
number, and the cache of the node. Arguments: directory, workers, kind of dataset."""

# ruff: noqa: PTH116, PTH118, PTH123, PTH208, B905

import json
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Files(Dataset):
    def __init__(self, folder, pairs):
        self.folder = folder
        names = sorted(os.listdir(folder))
        self.samples = [(os.path.join(folder, name), 1) for name in names] if pairs else names

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        name = self.samples[index]
        path = name[0] if isinstance(name, tuple) else os.path.join(self.folder, name)
        with open(path, "rb") as file:
            elsewhere = os.fstat(file.fileno()).st_dev != os.stat(self.folder).st_dev
            return index, int(file.read().split()[0]), elsewhere


def wait_for_copies(cache, count):
    """Waits until so many files of the epoch have been copied ahead of the workers."""
    while sum(map(is_copy, os.scandir(f"{cache}/ahead"))) < count:
        time.sleep(0.01)


def is_copy(entry):
    return "-" not in entry.name and entry.is_file(follow_symlinks=False)


def main(folder, workers, kind):
    cache = os.environ.get("PARIO_NODE_CACHE", "")
    torch.manual_seed(1)
    data = Files(folder, kind == "pairs")
    if kind == "subset":
        data = Subset(data, range(len(data)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=int(workers))
    seen, copies, changed = [], 0, {}
    for epoch in range(2):
        for number, (indices, words, elsewhere) in enumerate(loader):
            seen += zip(indices.tolist(), words.tolist())
            copies += int(elsewhere.sum())
            if cache and number == 0:
                # The last batch is not copied ahead; two workers have opened 5 batches at most.
                wait_for_copies(cache, len(data) - 6 * 8)
            if epoch == 1 and number == 0 and kind == "change":
                # Files of samples that no worker has opened, and that may be copied already.
                had = {index for index, _ in seen[len(data) :]}
                changed = {index: 10_000 + index for index in range(len(data))}
                left = [index for index in changed if index not in had]
                for index in left:
                    with open(os.path.join(folder, data.samples[index]), "w") as file:
                        file.write(str(changed[index]))
    random = torch.rand(1).item()
    print(json.dumps([seen, copies, random, cache]))


main(*sys.argv[1:])
