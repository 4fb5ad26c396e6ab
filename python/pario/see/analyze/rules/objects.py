"""The rule about thousands of objects of HDF5: groups, attributes and datasets of single values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, sums
from pario.see.analyze.cells import KINDS, POSIX, READS, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    all_but_one,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.call_words import name_functions
from pario.see.analyze.rules.calling import LIBRARY_WORK, claim_work
from pario.see.analyze.rules.hdf5 import CALLS_PER_OPEN, opens_of_files, rows_below
from pario.see.tables.model import LAYERS

OPEN, CLOSE, OTHER = (KINDS.index(kind) for kind in ("open", "close", "other"))
HDF5 = LAYERS.index("hdf5")
MANY_OBJECTS = 1000
SMALL_OBJECT = 4 << 10  # bytes moved for each of the calls
SMALL_DATASET = 256  # bytes moved for each open: fewer than HDF5 keeps about the dataset


AGAIN = 2  # opens of a dataset by a process
_KEEP_OPEN = code("Keep datasets open that are used again.")
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
    yield from _many_calls(facts)
    yield from _many_opens(facts)


def _many_opens(facts: Facts) -> Iterator[Candidate]:
    """Find files whose processes open many datasets of few bytes, or a few of them again and
    again."""
    rows = np.flatnonzero(
        facts.library & (facts.records["layer"] == HDF5) & (facts.lane >= 0)
        & (facts.column("opens") > 0)
    )  # fmt: skip
    names = [facts.path(file).rpartition(":")[0] for file in facts.file[rows].tolist()]
    rows = rows[np.array([bool(name) for name in names], bool)]  # of datasets, not of files
    numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
    of_file = np.array([numbers[name] for name in names if name], np.int64)
    place = of_file * len(facts.job.processes) + facts.records["process"][rows]
    opens, moved, transfers = (
        sums(place, sum(facts.column(name)[rows] for name in counters), 0)
        for counters in (("opens",), ("bytes_read", "bytes_written"), ("reads", "writes"))
    )
    many = (opens >= MANY_OBJECTS) & (moved < SMALL_DATASET * opens) & (opens > 0.5 * transfers)
    many = many[place] & (opens[place] >= CALLS_PER_OPEN * opens_of_files(facts, rows))
    for number, name in enumerate(numbers):
        own = many & (of_file == number)
        if own.any():
            yield _describe_opens(facts, rows[own], name)


def _describe_opens(facts: Facts, rows: Ints, path: str) -> Candidate:
    subject = Scene(facts, rows, facts.cells[rows].sum(axis=1))
    opens, count = facts.column("opens")[rows], len(np.unique(facts.file[rows]))
    moved = subject.total("bytes_read") + subject.total("bytes_written")
    took, each = float(facts.cells[rows].sum()), moved / float(opens.sum())
    needless = np.full(len(rows), 1.0 - 1.0 / float(opens.sum()))
    again = opens.sum() >= AGAIN * len(rows)
    datasets = wording.plural(count, "dataset")
    return subject.candidate(
        title=(
            f"{wording.count(float(opens.sum()))} opens of {datasets} in {wording.name(path)}, of"
            f" {wording.size(each)} each time"
        ),
        cause=(
            "HDF5 looks up, opens and closes each dataset as an object of its own"
            f" ({wording.seconds(took / float(opens.sum()))} inside the library), however few bytes"
            " it holds."
        ),
        confidence="medium",
        remedy="keeping small datasets in one",
        evidence=(
            fact(
                f"{datasets}, {wording.seconds(took)} inside HDF5{facts.over_all}",
                calls=float(opens.sum()),
            ),
        ),
        fixes=(_FIXES[0], *((_KEEP_OPEN,) if again else ())),
        claims=[
            *claim_all(facts, rows, (OPEN, CLOSE, OTHER, READS.kind, WRITES.kind), needless),
            *_claim_below(facts, rows, needless),
            *_claim_work(facts, rows, needless),
        ],
        method=(
            "time of the calls on these datasets, inside HDF5 and of its reads and writes of the"
            f" file, and the program's time between them, at most {LIBRARY_WORK.text} for each"
        ),
    )


def _claim_below(facts: Facts, rows: Ints, needless: Floats) -> list[Claim]:
    """Return claims of the calls on the file that HDF5 makes to find, read and write datasets."""
    below = rows_below(facts, rows)
    inner = {
        way.kind: facts.column(f"inner_{way.word}_time")[rows] * needless for way in (READS, WRITES)
    }
    reads = facts.column("bytes_read")[rows].sum() >= facts.column("bytes_written")[rows].sum()
    looking_up = READS.kind if reads else WRITES.kind
    inner[looking_up] = inner[looking_up] + facts.column("inner_other_time")[rows] * needless
    seconds = {kind: sums(below + 1, of, len(facts.records) + 1)[1:] for kind, of in inner.items()}
    return [Claim(np.flatnonzero(of), kind, of[np.flatnonzero(of)]) for kind, of in seconds.items()]


def _many_calls(facts: Facts) -> Iterator[Candidate]:
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
    sees=(
        "Thousands of groups, attributes or small datasets of HDF5, or a dataset extended for each"
        " element."
    ),
    threshold=(
        f"At least {MANY_OBJECTS:,} calls such as H5Gcreate, H5Acreate or H5Dset_extent per process"
        " and file or dataset, one per two reads or writes or more, each with less than"
        f" {SMALL_OBJECT >> 10} KiB; or as many opens of datasets of a file, {CALLS_PER_OPEN} or"
        f" more for each open of the file, each for less than {SMALL_DATASET} bytes."
    ),
    estimate=(
        "Time of these calls, opens and closes inside HDF5 (of opened datasets also reads, writes,"
        " and the reads of files below), and the program's time between them, at"
        f" most {LIBRARY_WORK.text} for each (needs events)."
    ),
    advice="One dataset with a row per value.",
    control="The same values in one dataset.",
    find=_object_storms,
    why_not="only the program decides how its values are divided into objects",
)
