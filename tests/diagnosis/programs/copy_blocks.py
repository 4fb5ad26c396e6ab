"""Copies a file in blocks of 512 bytes through unbuffered files."""

import shutil
from pathlib import Path

from work import compute, repaired, size

if repaired:
    with Path("original.bin").open("rb") as source, Path("copy.bin").open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
else:
    with (
        Path("original.bin").open("rb", buffering=0) as source,
        Path("copy.bin").open("wb", buffering=0) as target,
    ):
        while block := source.read(512):
            target.write(block)
compute()
print(size, "blocks,", Path("copy.bin").stat().st_size, "bytes")
