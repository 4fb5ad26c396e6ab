"""Two small scenarios for the campaigns' own tests: one keeps its promise, the other does not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.faults.campaign import main
from tests.faults.scenario import Problems, Scenario


def prepare(root: Path) -> None:
    (root / "a").write_text("old")


def write_in_place(root: Path) -> int:
    try:
        (root / "a").write_text("new")
    except OSError as error:
        print(f"error: {root}: {error}")
        return 2
    return 0


def write_aside(root: Path) -> int:
    try:
        with (root / "aside").open("w") as file:
            file.write("new")
            file.flush()
            os.fsync(file.fileno())
        (root / "aside").replace(root / "a")
        directory = os.open(root, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
    except OSError as error:
        print(f"error: {root}: {error}")
        return 2
    return 0


def check(root: Path, done: bool) -> Problems:
    text = (root / "a").read_text()
    if text not in (("new",) if done else ("old", "new")):
        yield f"the file holds {text!r}"


EXAMPLES = (
    Scenario("in-place", prepare, write_in_place, check, frozenset({"a"})),
    Scenario("aside", prepare, write_aside, check, frozenset({"a"})),
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], EXAMPLES))
