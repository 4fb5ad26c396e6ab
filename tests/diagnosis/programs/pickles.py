"""Keeps each result in a pickle of its own and reads all of them back."""

import pickle
from pathlib import Path

from work import compute, repaired, size

results = [{"number": number, "loss": number / 3} for number in range(size)]
if repaired:
    with Path("results.pickle").open("wb") as file:
        pickle.dump(results, file)
    with Path("results.pickle").open("rb") as file:
        back = pickle.load(file)
else:
    Path("results").mkdir()
    for number, result in enumerate(results):
        with Path("results", f"{number}.pickle").open("wb") as file:
            pickle.dump(result, file)
    back = []
    for number in range(size):
        with Path("results", f"{number}.pickle").open("rb") as file:
            back.append(pickle.load(file))
compute()
print(sum(result["number"] for result in back))
