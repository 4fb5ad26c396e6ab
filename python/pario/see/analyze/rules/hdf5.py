"""Rules about calls of HDF5 on datasets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, ratio, sums
from pario.see.analyze.cells import HDF5, POSIX, WRITE, find_rows
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.model import Fix
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    command,
    direction,
    fact,
    setting,
    sum_seconds,
)
from pario.see.tables.model import EVENT_KINDS, Dataset

MANY_CALLS = 1000
SMALL_CALL = 4 << 10
#: Bytes of a chunk that a repair proposes.
USUAL_CHUNK, LARGEST_CHUNK = 256 << 10, 1 << 20
MANY_VISITS = 2.0  # of a chunk
#: The most time between two calls in a row that counts as h5py's own, on a slow processor.
H5PY_CALL = 300e-6
_UNFILTERED = 2.0  # bytes moved for each byte asked


def _words(writing: bool) -> tuple[int, str, str, str]:
    """Return the kind of cells of a direction, its word, its counter of bytes and its
    preposition."""
    kind, word = direction(writing)
    return kind, word, "bytes_written" if writing else "bytes_read", "to" if writing else "from"


def _of_datasets(facts: Facts) -> tuple[Ints, list[Dataset]]:
    """Return the rows of datasets with known properties, and these."""
    known = {dataset.file: dataset for dataset in facts.job.datasets}
    rows = np.flatnonzero(facts.hdf5 & (facts.lane >= 0))
    rows = rows[[int(file) in known for file in facts.file[rows]]] if len(rows) else rows
    return rows, [known[int(file)] for file in facts.file[rows]]


def _rows_below(facts: Facts, rows: Ints) -> Ints:
    """Return the POSIX row of the file of each dataset's row, -1 for none."""
    numbers = {facts.job.path(file): file for file in range(len(facts.job.files))}
    files = [numbers.get(facts.path(int(file)).rpartition(":")[0], -1) for file in facts.file[rows]]
    return find_rows(facts.records, facts.records["process"][rows], np.array(files), POSIX)


def _claims(facts: Facts, rows: Ints, kind: int, share: Floats) -> list[Claim]:
    """Return claims of a share of the time inside HDF5, and of that of the POSIX calls which these
    calls made."""
    _, word = direction(kind == WRITE)
    inner = sums(
        _rows_below(facts, rows) + 1,
        facts.column(f"inner_{word}_time")[rows] * share,
        len(facts.records) + 1,
    )[1:]
    below = np.flatnonzero(inner)
    return [Claim(rows, kind, facts.cells[rows, kind] * share), Claim(below, kind, inner[below])]


def _chunk_bytes(dataset: Dataset) -> int:
    return math.prod(dataset.chunk) * dataset.element


def _chunk_count(dataset: Dataset) -> int:
    """Return the number of chunks of a dataset."""
    sizes = zip(dataset.shape, dataset.chunk, strict=True)
    return math.prod(-(-extent // chunk) for extent, chunk in sizes)


def _chunk_thrash(facts: Facts) -> Iterator[Candidate]:
    rows, datasets = _of_datasets(facts)
    for writing in (False, True):
        _, word, name, _ = _words(writing)
        for row, dataset in zip(rows, datasets, strict=True):
            visits, calls = (
                float(facts.column(column)[row]) for column in (_chunks(word), f"{word}s")
            )
            if not dataset.chunk or len(dataset.chunk) != len(dataset.shape) or calls < 2:
                continue
            crossed = visits / calls
            asked, moved = (float(facts.column(n)[row]) for n in (name, f"inner_{name}"))
            worked = dataset.filters or moved > _UNFILTERED * asked
            again = visits > MANY_VISITS * min(_chunk_count(dataset), visits)
            if worked and again and crossed * _chunk_bytes(dataset) > dataset.cache > 0:
                yield _thrash(facts, int(row), dataset, writing)


def _chunks(word: str) -> str:
    """Return the name of the counter of chunks of a direction."""
    return "chunks_written" if word == "write" else "chunks_read"


def _thrash(facts: Facts, row: int, dataset: Dataset, writing: bool) -> Candidate:
    kind, word, name, preposition = _words(writing)
    rows = np.array([row])
    subject = Scene(facts, rows, facts.cells[rows, kind])
    visits = float(facts.column(_chunks(word))[row])
    calls, asked = float(facts.column(f"{word}s")[row]), float(facts.column(name)[row])
    unpacked = visits * _chunk_bytes(dataset)
    needless = np.array([1.0 - _chunk_count(dataset) / visits])
    took = sum_seconds(facts, rows, kind) + float(facts.column(f"inner_{word}_time")[row])
    crossed, size = visits / calls, _chunk_bytes(dataset)
    filters = f", filters {' and '.join(dataset.filters)}" if dataset.filters else ""
    return subject.candidate(
        title=(
            f"HDF5 goes through {wording.size(unpacked)} of chunks for {wording.size(asked)} that"
            f" the program {word}s {preposition} {subject.place}"
        ),
        cause=(
            f"A call crosses {wording.count(crossed)}"
            f" {'chunk' if round(crossed) == 1 else 'chunks'} of {wording.size(size)}, which do not"
            f" fit into the chunk cache of {wording.size(dataset.cache)}: HDF5"
            f" {'reads and unpacks' if not writing else 'reads, changes and packs'} each chunk"
            f" anew for every call, {wording.count(visits / _chunk_count(dataset))} times."
        ),
        confidence="high" if dataset.filters else "medium",
        evidence=(
            fact(
                f"{wording.count(calls)} H5D{word} calls, {wording.seconds(took)}{facts.over_all};"
                f" shape {_shape(dataset.shape)}, chunks {_shape(dataset.chunk)}{filters}",
                calls=calls,
                chunks=visits,
                asked=asked,
                unpacked=unpacked,
            ),
        ),
        fixes=_thrash_fixes(dataset, writing, subject.paths[0]),
        claims=_claims(facts, rows, kind, needless),
        method="time of the calls times the share of visits of chunks beyond the first of each",
    )


def _shape(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def _thrash_fixes(dataset: Dataset, writing: bool, path: str) -> tuple[Fix, ...]:
    box = dataset.write_box if writing else dataset.read_box
    word = "Write" if writing else "Read"
    sides = zip(box, dataset.chunk, strict=False)
    crossed = max(math.prod(-(-extent // chunk) for extent, chunk in sides), 1)
    wanted, slots = proposed_cache(crossed * _chunk_bytes(dataset)), 100 * crossed + 1
    fixes = [
        code(
            f"{word} as much with one call as the memory holds: all rows that lie in the same"
            " chunks."
        ),
        setting(
            f"a chunk cache that holds the chunks of a call: h5py.File(..., rdcc_nbytes={wanted},"
            f" rdcc_nslots={slots}), or H5Pset_chunk_cache(dapl, {slots}, {wanted}, 1.0)"
        ),
    ]
    if chunk := proposed_chunk(box, dataset):
        file, _, name = path.rpartition(":")
        folder, _, base = file.rpartition("/")
        shape, layout = _shape(chunk), f"{name.lstrip('/')}:CHUNK={_shape(chunk)}"
        fixes += [
            setting(f"chunks of the shape of a call: {shape} instead of {_shape(dataset.chunk)}"),
            command("h5repack", "-l", layout, file, f"{folder}/new-{base}"),
        ]
    return tuple(fixes)


def proposed_cache(needed: int) -> int:
    """Return the bytes of a chunk cache for the chunks of a call: whole MiB."""
    return -(-needed // (1 << 20)) << 20


def proposed_chunk(box: tuple[int, ...], dataset: Dataset) -> tuple[int, ...]:
    """Return a shape of chunks of which calls with the selection ``box`` use all bytes, or
    nearly: the box, cut to at most LARGEST_CHUNK or extended along the first dimensions to about
    USUAL_CHUNK. Empty if nothing is known."""
    if len(box) != len(dataset.shape) or not dataset.element:
        return ()
    chunk = [min(extent, whole) for extent, whole in zip(box, dataset.shape, strict=True)]

    def size() -> int:
        return math.prod(chunk) * dataset.element

    while size() > LARGEST_CHUNK and max(chunk) > 1:
        longest = chunk.index(max(chunk))
        chunk[longest] = -(-chunk[longest] // 2)
    for place, whole in enumerate(dataset.shape):
        factor = max(USUAL_CHUNK // max(size(), 1), 1)
        chunk[place] = min(chunk[place] * factor, whole)
    return tuple(chunk)


def _small_calls(facts: Facts) -> Iterator[Candidate]:
    rows, _ = _of_datasets(facts)
    for writing in (True, False):
        _, word, name, _ = _words(writing)
        calls = facts.column(f"{word}s")[rows]
        size = ratio(facts.column(name)[rows], calls, np.inf)
        chosen = rows[(calls >= MANY_CALLS) & (size < SMALL_CALL)]
        if len(chosen):
            yield _describe_small(facts, chosen, writing)


def _describe_small(facts: Facts, rows: Ints, writing: bool) -> Candidate:
    kind, word, name, preposition = _words(writing)
    subject = Scene(facts, rows, facts.cells[rows, kind])
    calls, moved = (float(facts.column(column)[rows].sum()) for column in (f"{word}s", name))
    inner = facts.column(f"inner_{word}_time")[rows]
    whole = facts.cells[rows, kind] + inner
    took = float(whole.sum())
    needed = facts.column(name)[rows] * (1 / facts.reference.row_rate(writing)[rows])
    share = np.clip(1.0 - ratio(needed, whole, 0.0), 0.0, 1.0)
    between = _between_calls(facts, rows, kind)
    python = float(between.sum())
    return subject.candidate(
        title=(
            f"{wording.count(calls)} HDF5 {word}s of {wording.size(moved / calls)}"
            f" {preposition} {subject.place}"
        ),
        cause=(
            f"Each call costs {wording.seconds((took + python) / calls)} for its selection and its"
            " look-up in the library, regardless of its bytes."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(calls)} H5D{word} calls of {wording.size(moved / calls)} on"
                f" average, {wording.seconds(took)} in them"
                + (f", {wording.seconds(python)} in h5py before them" if python else "")
                + facts.over_all,
                calls=calls,
                mean_bytes=moved / calls,
                seconds=took,
                between=python,
            ),
        ),
        fixes=(
            code(
                f"{word.capitalize()} many elements with one call: h5py: dataset[first:last] ="
                " array or array = dataset[first:last]; C: one hyperslab"
                f" (H5Sselect_hyperslab) for all of them. Collect the elements in an array of 1 MiB"
                " or more."
            ),
        ),
        claims=[
            *_claims(facts, rows, kind, share),
            Claim(facts.lane[rows], COMPUTE, between),
        ],
        method=(
            f"time of the calls minus {wording.size(moved)} at the rate of large calls"
            + (
                ", and the usual time between two calls in a row, at most"
                f" {wording.seconds(H5PY_CALL)} each, in which h5py prepares them"
                if python
                else ""
            )
        ),
    )


def _between_calls(facts: Facts, rows: Ints, kind: int) -> Floats:
    """Return, per row of a Python program, the time that h5py spends on preparing the calls: the
    time from the end of one to the start of the next that three of four exceed, for each."""
    job, events = facts.job, facts.job.events
    _, word = direction(kind == WRITE)
    found = np.zeros(len(rows))
    own = (events["layer"] == HDF5) & (events["kind"] == EVENT_KINDS.index(word))
    for place, row in enumerate(rows):
        record: Any = facts.records[row]
        program = job.programs[job.processes["exe"][record["process"]]]
        if not program.rpartition("/")[2].startswith("python"):
            continue
        its = events[own & (events["process"] == record["process"])
                     & (events["file"] == record["file"]) & (events["count"] == 1)]  # fmt: skip
        gaps = its["start"][1:] - (its["start"] + its["duration"])[:-1]
        gaps = gaps[(its["thread"][1:] == its["thread"][:-1]) & (gaps >= 0)]
        if len(gaps):
            usual = min(float(np.percentile(gaps, 25)), H5PY_CALL)
            found[place] = usual * float(record[f"{word}s"])
    return found


CHUNK_THRASH = Rule(
    name="chunk-thrash",
    remedy="visiting each chunk of HDF5 once",
    sees=(
        "HDF5 reads or writes that cross chunks which do not fit into the chunk cache together, so"
        " that each call reads and decompresses (or compresses) the same chunks again."
    ),
    threshold=(
        "Per process and dataset: the chunks that a call crosses are larger than the chunk cache,"
        f" each chunk is visited more than {MANY_VISITS:.0f} times on average, and the dataset has"
        f" filters or its calls move {_UNFILTERED:.0f} times the bytes that they ask for."
    ),
    estimate="Time of the calls times the share of visits of chunks beyond the first of each.",
    advice=(
        "Larger selections, a larger chunk cache (rdcc_nbytes), or chunks of the shape of a call"
        " (h5repack)."
    ),
    control="The whole dataset with one call.",
    find=_chunk_thrash,
    why_not="the chunks and their cache belong to the dataset and the program",
)
CALLS = Rule(
    name="hdf5-calls",
    remedy="moving many elements with one call of HDF5",
    sees="Many H5Dread or H5Dwrite calls of a few elements each.",
    threshold=(
        f"Per process and dataset at least {MANY_CALLS:,} calls of less than"
        f" {SMALL_CALL >> 10} KiB on average."
    ),
    estimate=(
        "Time of the calls beyond their bytes at the reference rate. In Python programs also the"
        " time between two calls in a row that three of four exceed, at most"
        f" {wording.seconds(H5PY_CALL)} per call, in which h5py prepares the next."
    ),
    advice="One hyperslab for many elements.",
    control="One call for the whole dataset.",
    find=_small_calls,
    why_not="the time is spent inside HDF5, above all files",
)
