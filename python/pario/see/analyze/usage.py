"""The I/O of a run in a few numbers: calls by kind, files and bytes, as the table of files counts
them, without the files that hold the program itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pario.see.analyze.arrays import Floats, Mask, sums
from pario.see.analyze.call_sites import CallSites
from pario.see.analyze.cells import METADATA
from pario.see.analyze.facts import Facts
from pario.see.analyze.scope import PROGRAM

#: The counters of each number; those of kinds of calls are of the program's own calls.
COUNTERS: dict[str, tuple[str, ...]] = {
    "reads": ("reads",),
    "writes": ("writes",),
    "opens": ("opens",),
    "seeks": ("seeks",),
    "stats": ("stats",),
    "syncs": ("syncs",),
    "metadata": METADATA,
}
BYTES = ("bytes_read", "bytes_written")
FILES = "files"
NAMES: tuple[str, ...] = (*COUNTERS, *BYTES, FILES)
#: The kinds of call sites of each number.
_KINDS = {"reads": ("read",), "writes": ("write",), "bytes_read": ("read",),
          "bytes_written": ("write",), "opens": ("open",), "seeks": ("seek",), "stats": ("stat",),
          "syncs": ("sync",), FILES: ("open",),
          "metadata": ("close", "seek", "stat", "sync", "list", "other")}  # fmt: skip

#: Files of the program, its libraries and its interpreter.
_CODE = re.compile(
    r"^/(usr|lib\w*|etc|bin|sbin)/|/(site|dist)-packages(/|$)|/lib/python3[^/]*(/|$)"
    r"|\.(py|pyc|so|pth|cfg)$|\.so\.[\d.]+$|/bin/[^/]*$"
)


@dataclass(frozen=True)
class Usage:
    """One number of a run."""

    name: str
    total: int
    worst: str  # path of the file with most; empty: none
    most: int  # of that file
    place: str  # line of the program that makes most of the calls; empty: not known


def is_code(path: str) -> bool:
    """Tell whether a file belongs to the program, its libraries or its interpreter, not to its
    data."""
    return _CODE.search(path) is not None


def usage(facts: Facts, name: str, selects: Callable[[str], bool]) -> Usage:
    """Return one of ``NAMES`` for the program's files in storage that ``selects`` accepts."""
    chosen = _select_files(facts, selects)
    values = _per_file(facts, name) * chosen
    if not values.any():
        return Usage(name, 0, "", 0, "")
    worst = int(np.argmax(values))
    place = CallSites(facts).busiest_place(_KINDS[name], chosen)
    return Usage(name, int(values.sum()), facts.path(worst), int(values[worst]), place)


def _select_files(facts: Facts, selects: Callable[[str], bool]) -> Mask:
    own = facts.times.scope.origin == PROGRAM
    wanted = [selects(path) and not is_code(path) for path in facts.job.paths]
    return np.asarray(own & np.array(wanted or [False])[facts.job.files["path"]])


def _per_file(facts: Facts, name: str) -> Floats:
    if name in BYTES:
        return facts.per_file(np.where(facts.stored, facts.asked_bytes(name), 0.0))
    if name == FILES:
        used = sum(facts.calls(kind) for kind in ("opens", "reads", "writes"))
        return np.asarray(facts.per_file(np.where(facts.stored, used, 0.0)) > 0, np.float64)
    calls = sum((facts.calls(kind) for kind in COUNTERS[name]), np.zeros(len(facts.records)))
    return sums(facts.file[facts.stored], calls[facts.stored], len(facts.job.files))
