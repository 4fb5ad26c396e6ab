"""Tasks of a process pool that each load the whole table instead of keeping it."""

import multiprocessing
from pathlib import Path

from work import compute, repaired, size

kept: list[bytes] = []


def look_up(number: int) -> int:
    if repaired and kept:
        table = kept[0]
    else:
        table = Path("table.bin").read_bytes()
        kept[:] = [table]
    return table[number * 4099 % len(table)]


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        total = sum(pool.map(look_up, range(size), chunksize=size // 2 + 1))
        pool.close()
        pool.join()
    compute()
    print(size, "tasks, sum", total)
