"""Cases of test_quotas.py: operations that need more space than a quota grants.

usage: python -m tests.filesystems.quotas CASE DIRECTORY

Prints the outcome of the case in DIRECTORY, one JSON value.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pario import checkpoint
from pario.checkpoint.geometry import Box, whole
from pario.cli import main as pario
from pario.ranks import Ranks
from tests.python.support import threads

MIB = 1 << 20
#: Bytes that each quota grants.
LIMIT = 8 * MIB
_RANKS = 3
Outcome = dict[str, Any]


def list_files(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


# ---- checkpoints


def make_part(ranks: Ranks, mebibytes: int, axis: int) -> checkpoint.arrays.Saved:
    """Returns a rank's share along an axis: of axis 1 it has short rows."""
    shape = (mebibytes * 1024, 128)
    begin, size = [0, 0], list(shape)
    begin[axis] = shape[axis] * ranks.rank // ranks.size
    size[axis] = shape[axis] * (ranks.rank + 1) // ranks.size - begin[axis]
    box = Box(tuple(begin), tuple(size))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    return checkpoint.block(array[box.within(whole(shape))], shape, box.begin)


def save(place: Path, *, axis: int = 0, files: int | str = 1, background: bool = False) -> Outcome:
    """Saves a small checkpoint, one that is larger than the quota, and a small one again."""
    errors: list[list[str]] = [[] for _ in range(_RANKS)]

    def program(ranks: Ranks) -> None:
        with checkpoint.Writer(ranks, place / "ck", files=files) as writer:
            for step, mebibytes in ((1, 1), (2, 12), (3, 2)):
                try:
                    arrays = {"T": make_part(ranks, mebibytes, axis)}
                    if background:
                        writer.save_async(step, arrays).result()
                    else:
                        writer.save(step, arrays)
                except checkpoint.CheckpointError as error:
                    errors[ranks.rank].append(f"{step}: {error}")

    for one in threads.run_on_nodes([0] * _RANKS, program):
        if isinstance(one, Exception):
            raise one
    loaded = {}
    for step in (1, 3):
        loaded[step] = float(checkpoint.load(None, place / "ck", step=step)["T"].sum())
    return {"errors": errors, "loaded": loaded, "files": list_files(place / "ck")}


# ---- commands


def run(*words: object) -> Outcome:
    """Runs a command; returns its status and error."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        status = pario(list(map(str, words)))
    return {"status": status, "error": error.getvalue()}


def run_twice(place: Path, command: tuple[object, ...], extra: Path) -> Outcome:
    """Runs a command that exceeds the quota, and again without the file `extra`."""
    first = run(*command)
    left = list_files(place)
    extra.unlink()
    return {"first": first, "left": left, "again": run(*command), "files": list_files(place)}


def fill(place: Path, mebibytes: int) -> Path:
    """Makes a file that leaves that much of the quota beside the other files."""
    used = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    extra = place / "extra"
    extra.write_bytes(bytes(LIMIT - used - mebibytes * MIB))
    return extra


def make_bytes(mebibytes: int) -> bytes:
    return np.random.default_rng(1).bytes(mebibytes * MIB)


def pack(place: Path) -> Outcome:
    (place / "tree").mkdir()
    (place / "tree" / "data").write_bytes(make_bytes(3))
    extra = fill(place, 1)
    return run_twice(place, ("pack", place / "tree", "-o", place / "out"), extra)


def unpack(place: Path) -> Outcome:
    (place / "tree").mkdir()
    (place / "tree" / "data").write_bytes(make_bytes(3))
    assert run("pack", place / "tree", "-o", place / "packed")["status"] == 0
    (place / "tree" / "data").unlink()
    extra = fill(place, 1)
    return run_twice(place, ("unpack", place / "packed", "-o", place / "out"), extra)


def shuffle(place: Path) -> Outcome:
    (place / "lines.txt").write_text("".join(f"{number:0100}\n" for number in range(20_000)))
    command = ("records", "shuffle", place / "lines.txt", "-o", place / "out.txt", "--seed")
    assert run(*command, 1)["status"] == 0
    before = (place / "out.txt").read_bytes()
    extra = fill(place, 1)
    outcome = run_twice(place, (*command, 2), extra)
    after = (place / "out.txt").read_bytes()
    return outcome | {"changed": after != before, "same": sorted(after) == sorted(before)}


def stage(place: Path) -> Outcome:
    (place / "shared").mkdir()
    (place / "shared" / "data").write_bytes(make_bytes(3))
    extra = fill(place, 1)
    command = ("stage", "in", place / "shared", "--to", place / "node")
    return run_twice(place, command, extra)


def facts(place: Path) -> Outcome:
    from pario import _native

    return {"quotas": _native.quotas_of(bytes(place))}


#: For each case, the quota (quotas.sh) and the work.
CASES: dict[str, tuple[str, Callable[[Path], Outcome]]] = {
    "facts": ("user", facts),
    "save": ("user", save),
    "save-columns": ("user", lambda place: save(place, axis=1)),
    "save-parts": ("user", lambda place: save(place, files="rank")),
    "save-async": ("user", lambda place: save(place, background=True)),
    "save-in-directory": ("directory", save),
    "save-unforeseen": ("owner", save),
    "save-columns-unforeseen": ("owner", lambda place: save(place, axis=1)),
    "save-parts-unforeseen": ("owner", lambda place: save(place, files="rank")),
    "save-async-unforeseen": ("owner", lambda place: save(place, background=True)),
    "pack": ("user", pack),
    "unpack": ("user", unpack),
    "shuffle": ("user", shuffle),
    "stage": ("user", stage),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of h5py
    print(json.dumps(CASES[sys.argv[1]][1](Path(sys.argv[2]))))
