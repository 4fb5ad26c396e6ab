"""The rule about thousands of objects of HDF5: groups, attributes and datasets of single values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints
from pario.see.analyze.cells import KINDS, POSIX
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    all_but_one,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.call_words import name_functions
from pario.see.analyze.rules.calling import LIBRARY_WORK, claim_work
from pario.see.tables.model import LAYERS

OPEN, CLOSE, OTHER = (KINDS.index(kind) for kind in ("open", "close", "other"))
HDF5 = LAYERS.index("hdf5")
MANY_OBJECTS = 1000
SMALL_OBJECT = 4 << 10  # bytes moved for each of the calls


_FIXES = (
    code(
        "Keep many values in one dataset, with a row for each (a compound type or several columns),"
        " instead of a group or attribute for each value."
    ),
    code(
        "Set the extent of a dataset for many rows at a time, and cut it at the end; h5py:"
        " dataset.resize once per block."
    ),
)


def _object_storms(facts: Facts) -> Iterator[Candidate]:
    calls = facts.column("others")
    mask = facts.library & (facts.records["layer"] == HDF5) & (facts.lane >= 0)
    transfers = facts.column("reads") + facts.column("writes")
    moved = facts.column("bytes_read") + facts.column("bytes_written")
    mask &= (calls >= MANY_OBJECTS) & (calls > 0.5 * transfers) & (moved < SMALL_OBJECT * calls)
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, OTHER])
    rows, count = subject.rows, float(calls[mask].sum())
    took = sum_seconds(facts, rows, OPEN, CLOSE, OTHER)
    words = name_functions(facts, rows, "other") or "H5Gcreate, H5Acreate and similar"
    needless = all_but_one(calls[rows])
    yield subject.candidate(
        title=f"{wording.count(count)} {words} calls on {subject.place}",
        cause=(
            "HDF5 makes, finds and stores each group, attribute or extent as an object of its own"
            f" ({wording.seconds(took / count)} inside the library), however few bytes it holds."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.seconds(took)} inside HDF5"
                f"{facts.over_all}",
                calls=count,
            ),
        ),
        fixes=_FIXES[::-1] if words.startswith("H5Dset_extent") else _FIXES,
        claims=[
            *claim_all(facts, rows, (OPEN, CLOSE, OTHER), needless),
            *_claim_work(facts, rows, needless),
        ],
        method=(
            "time of these calls inside HDF5, and the program's time between them, at most"
            f" {LIBRARY_WORK.text} for each"
        ),
    )


def _claim_work(facts: Facts, rows: Ints, needless: Floats) -> list[Claim]:
    """Return claims of the time between calls, which are those on the files below, too."""
    below = facts.find_in_layer(rows, POSIX)
    known = below >= 0
    every = np.append(rows, below[known])
    return claim_work(facts, every, LIBRARY_WORK, np.append(needless, needless[known]))


OBJECTS = Rule(
    name="hdf5-objects",
    remedy="making fewer groups, attributes and extents",
    sees="Thousands of groups or attributes of HDF5, or a dataset extended for each element.",
    threshold=(
        f"At least {MANY_OBJECTS:,} calls such as H5Gcreate, H5Acreate or H5Dset_extent per process"
        " and file or dataset, one per two reads or writes or more, each with less than"
        f" {SMALL_OBJECT >> 10} KiB."
    ),
    estimate=(
        "Time of these calls, opens and closes inside HDF5, and the program's time between them, at"
        f" most {LIBRARY_WORK.text} for each (needs events)."
    ),
    advice="One dataset with a row per value.",
    control="The same values in one dataset.",
    find=_object_storms,
    why_not="only the program decides how its values are divided into objects",
)
