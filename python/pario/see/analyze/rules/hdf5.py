"""Rules about calls of libraries on datasets and variables: HDF5, netCDF, PnetCDF, ADIOS2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, ratio, sums
from pario.see.analyze.cells import MPIIO, POSIX, READS, WRITES, Direction, find_rows
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.model import Fix
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    command,
    fact,
    setting,
    sum_seconds,
)
from pario.see.analyze.rules.calling import find_outer_calls
from pario.see.tables.model import EVENT_KINDS, LAYERS, Dataset, Job


@dataclass(frozen=True)
class Library:
    """The words of a library for its calls."""

    name: str
    read: str  # its functions
    write: str
    python: str  # the package for Python
    advice: str  # how to move many elements with one call
    cache: str  # how to set the chunk cache of {bytes} and {slots}

    def function(self, direction: Direction) -> str:
        """Return the function of a direction."""
        return self.read if direction is READS else self.write


_CACHE_OF_HDF5 = (
    "h5py.File(..., rdcc_nbytes={bytes}, rdcc_nslots={slots}), or H5Pset_chunk_cache(dapl,"
    " {slots}, {bytes}, 1.0)"
)
_CACHE_OF_NETCDF = (
    "nc_set_var_chunk_cache(file, variable, {bytes}, {slots}, 1.0), or"
    " variable.set_var_chunk_cache({bytes}, {slots}, 1.0) in Python"
)
_ARRAY = "Collect the elements in an array of 1 MiB or more."
LIBRARIES = {
    "hdf5": Library(
        "HDF5",
        "H5Dread",
        "H5Dwrite",
        "h5py",
        "h5py: dataset[first:last] = array or array = dataset[first:last]; C: one hyperslab"
        f" (H5Sselect_hyperslab) for all of them. {_ARRAY}",
        _CACHE_OF_HDF5,
    ),
    "netcdf": Library(
        "netCDF",
        "nc_get_var*",
        "nc_put_var*",
        "netCDF4",
        "C: one nc_put_vara or nc_get_vara for all of them; Fortran: nf90_put_var with start and"
        " count; Python: variable[first:last] = array or array = variable[first:last]."
        f" {_ARRAY}",
        _CACHE_OF_NETCDF,
    ),
    "pnetcdf": Library(
        "PnetCDF",
        "ncmpi_get_var*",
        "ncmpi_put_var*",
        "pnetcdf",
        "one ncmpi_put_vara_all or ncmpi_get_vara_all for all of them, or ncmpi_iput_vara for each"
        f" and one ncmpi_wait_all. {_ARRAY}",
        "",
    ),
    "adios2": Library(
        "ADIOS2",
        "Get",
        "Put",
        "adios2",
        "a variable with shape, start and count, of which one Put or Get moves a whole block. One"
        " time step of several belongs into one variable with a dimension for the time, or many"
        f" steps into one BeginStep and EndStep. {_ARRAY}",
        "",
    ),
}
MANY_CALLS = 1000
SMALL_CALL = 4 << 10
CALLS_PER_OPEN = 10  # with fewer, the file is opened for each call: open-close-loop
#: Bytes of a chunk that a repair proposes.
USUAL_CHUNK, LARGEST_CHUNK = 256 << 10, 1 << 20
MANY_VISITS = 2.0  # of a chunk
#: The most time between two calls in a row that counts as h5py's own, on a slow processor.
H5PY_CALL = 300e-6
_UNFILTERED = 2.0  # bytes moved for each byte asked


def datasets_of(facts: Facts) -> tuple[Ints, list[Dataset]]:
    """Return the rows of datasets with known properties, and these."""
    known = {dataset.file: dataset for dataset in facts.job.datasets}
    rows = np.flatnonzero(facts.library & (facts.lane >= 0))
    rows = rows[[int(file) in known for file in facts.file[rows]]] if len(rows) else rows
    return rows, [known[int(file)] for file in facts.file[rows]]


def rows_below(facts: Facts, rows: Ints) -> Ints:
    """Return the MPI-IO row, otherwise the POSIX row, of the file of each dataset's row, -1 for
    none."""
    numbers = {facts.job.path(file): file for file in range(len(facts.job.files))}
    files = [numbers.get(facts.path(int(file)).rpartition(":")[0], -1) for file in facts.file[rows]]
    process = facts.records["process"][rows]
    parallel, serial = (
        find_rows(facts.records, process, np.array(files, np.int64), layer)
        for layer in (MPIIO, POSIX)
    )
    return np.where(parallel >= 0, parallel, serial)


def claims_of_calls(facts: Facts, rows: Ints, direction: Direction, share: Floats) -> list[Claim]:
    """Return claims of a share of the time inside the library, and of that of the calls on files
    which these calls made."""
    kind = direction.kind
    inner = sums(
        rows_below(facts, rows) + 1,
        facts.column(f"inner_{direction.word}_time")[rows] * share,
        len(facts.records) + 1,
    )[1:]
    below = np.flatnonzero(inner)
    return [Claim(rows, kind, facts.cells[rows, kind] * share), Claim(below, kind, inner[below])]


def chunk_bytes(dataset: Dataset) -> int:
    """Return the bytes of a chunk of a dataset."""
    return math.prod(dataset.chunk) * dataset.element


def _chunk_count(dataset: Dataset) -> int:
    """Return the number of chunks of a dataset."""
    sizes = zip(dataset.shape, dataset.chunk, strict=True)
    return math.prod(-(-extent // chunk) for extent, chunk in sizes)


def _chunk_thrash(facts: Facts) -> Iterator[Candidate]:
    rows, datasets = datasets_of(facts)
    for direction in (READS, WRITES):
        name = direction.bytes
        for row, dataset in zip(rows, datasets, strict=True):
            visits, calls = (
                float(facts.column(column)[row]) for column in (_chunks(direction), direction.calls)
            )
            if not dataset.chunk or len(dataset.chunk) != len(dataset.shape) or calls < 2:
                continue
            crossed = visits / calls
            asked, moved = (float(facts.column(n)[row]) for n in (name, f"inner_{name}"))
            worked = dataset.filters or moved > _UNFILTERED * asked
            again = visits > MANY_VISITS * min(_chunk_count(dataset), visits)
            if worked and again and crossed * chunk_bytes(dataset) > dataset.cache > 0:
                yield _thrash(facts, int(row), dataset, direction)


def _chunks(direction: Direction) -> str:
    """Return the name of the counter of chunks of a direction."""
    return direction.bytes.replace("bytes", "chunks")


def _thrash(facts: Facts, row: int, dataset: Dataset, direction: Direction) -> Candidate:
    kind, word, rows = direction.kind, direction.word, np.array([row])
    subject = Scene(facts, rows, facts.cells[rows, kind])
    visits, calls, asked = (
        float(facts.column(column)[row])
        for column in (_chunks(direction), direction.calls, direction.bytes)
    )
    unpacked = visits * chunk_bytes(dataset)
    needless = np.array([1.0 - _chunk_count(dataset) / visits])
    took = sum_seconds(facts, rows, kind) + float(facts.column(f"inner_{word}_time")[row])
    library = _library_of(facts, rows)
    crossed, size = visits / calls, chunk_bytes(dataset)
    filters = f", filters {' and '.join(dataset.filters)}" if dataset.filters else ""
    return subject.candidate(
        title=(
            f"HDF5 goes through {wording.size(unpacked)} of chunks for {wording.size(asked)} that"
            f" the program {word}s {direction.preposition} {subject.place}"
        ),
        cause=(
            f"A call crosses {wording.count(crossed)}"
            f" {'chunk' if round(crossed) == 1 else 'chunks'} of {wording.size(size)}, which do not"
            f" fit into the chunk cache of {wording.size(dataset.cache)}: HDF5"
            f" {'reads and unpacks' if direction is READS else 'reads, changes and packs'} each"
            f" chunk anew for every call, {wording.count(visits / _chunk_count(dataset))} times."
        ),
        confidence="high" if dataset.filters else "medium",
        evidence=(
            fact(
                f"{wording.count(calls)} {library.function(direction)} calls,"
                f" {wording.seconds(took)}{facts.over_all};"
                f" shape {_shape(dataset.shape)}, chunks {_shape(dataset.chunk)}{filters}",
                calls=calls,
                chunks=visits,
                asked=asked,
                unpacked=unpacked,
            ),
        ),
        fixes=_thrash_fixes(dataset, direction, subject.paths[0], library),
        claims=claims_of_calls(facts, rows, direction, needless),
        method="time of the calls times the share of visits of chunks beyond the first of each",
    )


def _shape(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def _thrash_fixes(
    dataset: Dataset, direction: Direction, path: str, library: Library
) -> tuple[Fix, ...]:
    box = dataset.read_box if direction is READS else dataset.write_box
    sides = zip(box, dataset.chunk, strict=False)
    crossed = max(math.prod(-(-extent // chunk) for extent, chunk in sides), 1)
    wanted, slots = proposed_cache(crossed * chunk_bytes(dataset)), 100 * crossed + 1
    fixes = [
        code(
            f"{direction.word.capitalize()} as much with one call as the memory holds: all rows"
            " that lie in the same chunks."
        ),
        setting(
            "a chunk cache that holds the chunks of a call: "
            + library.cache.format(bytes=wanted, slots=slots)
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


def _library_of(facts: Facts, rows: Ints) -> Library:
    return LIBRARIES[LAYERS[int(facts.records["layer"][rows[0]])]]


def _small_calls(facts: Facts, layers: Sequence[str]) -> Iterator[Candidate]:
    for layer in layers:
        yield from _small_calls_of(facts, LAYERS.index(layer))


def _small_calls_of(facts: Facts, layer: int) -> Iterator[Candidate]:
    rows = np.flatnonzero(facts.library & (facts.records["layer"] == layer))
    ranks = np.maximum(facts.column("ranks")[rows], 1)  # of rows that sum all ranks
    for direction in (WRITES, READS):
        calls, size = facts.column(direction.calls)[rows], facts.mean_size(direction)[rows]
        many = calls >= np.maximum(MANY_CALLS * ranks, CALLS_PER_OPEN * opens_of_files(facts, rows))
        chosen = rows[many & (size < SMALL_CALL)]
        if len(chosen):
            yield _describe_small(facts, chosen, direction)


def opens_of_files(facts: Facts, rows: Ints) -> Floats:
    """Return the number of opens of the file of each dataset's row by the same process."""
    below = rows_below(facts, rows)
    return np.where(below >= 0, facts.calls("opens")[below], 0.0)


def _describe_small(facts: Facts, rows: Ints, direction: Direction) -> Candidate:
    kind, word = direction.kind, direction.word
    subject, library = Scene(facts, rows, facts.cells[rows, kind]), _library_of(facts, rows)
    calls, moved = (
        float(facts.column(column)[rows].sum()) for column in (direction.calls, direction.bytes)
    )
    inner = facts.column(f"inner_{word}_time")[rows]
    whole = facts.cells[rows, kind] + inner
    took = float(whole.sum())
    needed = facts.reference.cost(rows, direction)
    share = np.clip(1.0 - ratio(needed, whole, 0.0), 0.0, 1.0)
    between = _between_calls(facts, rows, word)
    python = float(between.sum())
    return subject.candidate(
        title=(
            f"{wording.count(calls)} {library.name} {word}s of {wording.size(moved / calls)}"
            f" {direction.preposition} {subject.place}"
        ),
        cause=(
            f"Each call costs {wording.seconds((took + python) / calls)} for its selection and its"
            " look-up in the library, regardless of its bytes."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(calls)} {library.function(direction)} calls of"
                f" {wording.size(moved / calls)} on average, {wording.seconds(took)} in them"
                + (f", {wording.seconds(python)} in {library.python} before them" if python else "")
                + facts.over_all,
                calls=calls,
                mean_bytes=moved / calls,
                seconds=took,
                between=python,
            ),
        ),
        fixes=(code(f"{word.capitalize()} many elements with one call: {library.advice}"),),
        claims=[
            *claims_of_calls(facts, rows, direction, share),
            *([Claim(facts.lane[rows], COMPUTE, between)] if python else []),
        ],
        method=(
            f"time of the calls minus {wording.size(moved)} at the rate of large calls"
            + (
                ", and the usual time between two calls in a row, at most"
                f" {wording.seconds(H5PY_CALL)} each, in which {library.python} prepares them"
                if python
                else ""
            )
        ),
    )


def _between_calls(facts: Facts, rows: Ints, word: str) -> Floats:
    """Return, per row of a Python program, the time that its package spends on preparing the
    calls: the time from the end of one to the start of the next that three of four exceed, for
    each. Calls with others between them, such as the end of a step, do not tell it."""
    job, found = facts.job, np.zeros(len(rows))
    if not len(job.events):
        return found
    events, first = find_outer_calls(job)
    row = find_rows(job.records, events["process"], events["file"], events["layer"])
    row[(events["kind"] != EVENT_KINDS.index(word)) | (events["count"] > 1)] = -1
    in_a_row = (row[1:] == row[:-1]) & (row[1:] >= 0) & ~first[1:]
    gaps, of = (events["start"][1:] - events["end"][:-1])[in_a_row], row[1:][in_a_row]
    for place, number in enumerate(rows):
        record: Any = facts.records[number]
        if not (of == number).any() or not _is_python(job, int(record["process"])):
            continue
        usual = min(float(np.percentile(gaps[of == number], 25)), H5PY_CALL)
        found[place] = usual * float(record[f"{word}s"])
    return found


def _is_python(job: Job, process: int) -> bool:
    program: str = job.programs[job.processes["exe"][process]]
    return program.rpartition("/")[2].startswith("python")


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
        f" {SMALL_CALL >> 10} KiB on average, {CALLS_PER_OPEN} or more for each time that the file"
        " is opened."
    ),
    estimate=(
        "Time of the calls beyond their bytes at the reference rate. In Python programs also the"
        " time between two calls in a row that three of four exceed, at most"
        f" {wording.seconds(H5PY_CALL)} per call, in which h5py prepares the next."
    ),
    advice="One hyperslab for many elements.",
    control="One call for the whole dataset.",
    find=partial(_small_calls, layers=("hdf5",)),
    by_calls=True,
    why_not="the time is spent inside HDF5, above all files",
)
VARIABLE_CALLS = Rule(
    name="variable-calls",
    remedy="moving many elements with one library call",
    sees="Many calls of netCDF, PnetCDF or ADIOS2 on a variable, of a few elements each.",
    threshold=CALLS.threshold.replace("dataset", "variable"),
    estimate=CALLS.estimate.replace("h5py", "the package"),
    advice=(
        "One nc_put_vara or ncmpi_put_vara_all for many elements, or ncmpi_iput_vara and one wait."
    ),
    control="One call for the whole variable.",
    find=partial(_small_calls, layers=("netcdf", "pnetcdf", "adios2")),
    by_calls=True,
    why_not="the time is spent inside the library, above all files",
)
