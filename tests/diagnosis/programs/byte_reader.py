"""Decodes a stream of messages with an unbuffered file, a few bytes at a time."""

from pathlib import Path

from work import compute, repaired, size

total = 0
with Path("messages.bin").open("rb", buffering=-1 if repaired else 0) as file:
    if repaired:
        data = file.read(8 * size)
        total = sum(data[at] for at in range(0, len(data), 8))
    else:
        for _ in range(size):
            total += file.read(8)[0]
compute()
print(size, "messages, sum", total)
