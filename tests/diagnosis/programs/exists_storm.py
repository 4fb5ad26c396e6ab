"""Checks for each key whether its cache entry exists, for the same few keys."""

from pathlib import Path

from work import compute, repaired, size

keys = [f"entry{number}" for number in range(50)]
known: dict[str, bool] = {}
hits = 0
for number in range(size):
    key = keys[number % len(keys)]
    if repaired:
        if key not in known:
            known[key] = Path("cache", key).exists()
        hits += known[key]
    else:
        hits += Path("cache", key).exists()
compute()
print(size, "lookups,", hits, "hits")
