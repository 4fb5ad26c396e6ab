"""Rewrites the whole state as JSON after each of its steps."""

import json
from pathlib import Path

from work import compute, repaired, size


def save(state: dict[str, list[int]]) -> None:
    with Path("state.json").open("w") as file:
        json.dump(state, file)


state: dict[str, list[int]] = {"steps": []}
for step in range(size):
    state["steps"].append(step * step)
    if not repaired:
        save(state)
save(state)
compute()
print(len(state["steps"]), "steps")
