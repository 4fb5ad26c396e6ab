"""Reads fixed records at random with seek and read on an unbuffered file."""

from pathlib import Path

from work import compute, repaired, size

RECORD = 128
path = Path("records.bin")
count = path.stat().st_size // RECORD
total = 0
with path.open("rb", buffering=0) as file:
    data = file.read() if repaired else b""
    for number in range(size):
        at = (number * 2654435761 + 12345) % count * RECORD
        if repaired:
            total += data[at]
        else:
            file.seek(at)
            total += file.read(RECORD)[0]
compute()
print(size, "records, sum", total)
