"""The rule about many small files, in one directory or over many."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from pario import filesystems, wording
from pario.see.analyze.arrays import Floats, Ints, Mask, counts, ratio, sums, unique_pairs
from pario.see.analyze.cells import KINDS, META, MPIIO, POSIX, READS, STDIO, WRITES
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.libraries import is_installed_program
from pario.see.analyze.model import Evidence, Fix
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    command,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.calling import claim_work
from pario.see.analyze.rules.opens import MANY_OPENS, OPEN_WORK, count_removals
from pario.see.analyze.rules.processes import find_common_files
from pario.see.analyze.rules.sharing import find_common_reads
from pario.see.tables.model import LAYER_NAMES, LAYERS

OPEN, CLOSE, SYNC, STAT, OTHER = (
    KINDS.index(kind) for kind in ("open", "close", "sync", "stat", "other")
)
#: Kinds of calls that need no open, and their counters.
_BESIDE_OPENS = {STAT: ("stats",), OTHER: ("others", "truncates")}
MANY_FILES = 200
SEVERAL_FILES, COSTLY = 50, 0.1  # files of a directory, and a part of the run that opens them
SMALL_FILE = 1 << 20
CALLS_OF_AN_OPEN = 4  # stat and other calls of a kind that belong to an open
NEARLY_ALL = 0.9  # of the directories with small files
SLOW_FILE = 0.2e-3  # seconds, for opening, reading and closing
#: Files of installed programs and libraries, whose number the user does not choose.
_INSTALLED = re.compile(
    r"^/(usr|lib|lib32|lib64|etc|opt|bin|sbin)/|/site-packages/|\.(py|pyc|pth|so[.\d]*)$"
)

#: Programs of the system that put small files into one.
_ARCHIVERS = {"tar", "bsdtar", "zip", "7z", "cpio", "ar"}

_SYNC_ONCE = code(
    "Synchronise once, after the last file (syncfs on their directory), and not each file; many"
    " records in one file need a single fsync."
)


def find_installed(facts: Facts) -> Mask:
    """Return, per file, True for parts of installed software."""
    paths = np.array([_INSTALLED.search(path) is not None for path in facts.job.paths] or [False])
    return np.asarray(paths[facts.job.files["path"]])


def _are_packed(facts: Facts) -> Mask:
    """Return, per row, True for a file that an archiver reads: this repairs their number."""
    packs = facts.are_of_programs(_is_archiver)
    return np.asarray(packs & (facts.column("bytes_written") == 0))


def _is_archiver(path: str) -> bool:
    return is_installed_program(path) and path.rpartition("/")[2] in _ARCHIVERS


def _is_editor(path: str) -> bool:
    return is_installed_program(path) and path.endswith("/sed")


def _is_sort(path: str) -> bool:
    return is_installed_program(path) and path.endswith("/sort")


def _small_file_storms(facts: Facts) -> Iterator[Candidate]:
    many = files_of_rows(facts)
    extent = np.maximum(facts.column("end_written"), facts.column("end_read"))
    moved = (facts.column("bytes_written") + facts.column("bytes_read")) / many
    small = facts.stored & (facts.calls("opens") > 0)
    # Streams that fdopen makes have the bytes of files that POSIX calls open.
    small &= (_find_largest(facts, np.maximum(extent, moved)) < SMALL_FILE)[facts.file]
    small &= facts.calls("failed_opens") <= facts.calls("opens")  # else a search for names
    small &= ~_are_packed(facts)
    # sed -i writes a file for each start and renames it: the starts are the cause.
    small &= ~facts.are_of_programs(_is_editor)
    small &= ~find_common_files(facts)  # each is one file
    small &= (facts.column("lists") == 0) | (moved > 0)  # a listed name is a directory
    small &= facts.calls("opens") < MANY_OPENS * np.maximum(facts.column("ranks"), 1) * many
    if not facts.job.loaders:  # the passes of a training run differ from rank to rank
        small &= ~find_common_reads(facts)[0]
    if not small.any():
        return
    directory = facts.directory[facts.file]
    count = _count_files(facts, small, many)
    crowded = (count >= MANY_FILES) | (count >= SEVERAL_FILES) & _open_at_length(facts, small)
    chosen = small & crowded[directory]
    scattered = small & ~chosen & ~find_installed(facts)[facts.file]
    if len(np.unique(facts.file[scattered])) >= MANY_FILES:
        chosen |= scattered
    if chosen.any():
        yield _small_files(facts, _add_companions(facts, chosen), directory)


def _find_largest(facts: Facts, values: Floats) -> Floats:
    """Return, per file, the largest value of its rows."""
    largest = np.zeros(len(facts.job.files))
    np.maximum.at(largest, facts.file, values)
    return largest


def _add_companions(facts: Facts, chosen: Mask) -> Mask:
    """Return the rows with those of the other layer that moves the bytes of their opens: fdopen
    makes a stream of a descriptor, and C++ writes to the descriptor of a stream."""
    rows = np.flatnonzero(chosen)
    found = np.concatenate([facts.find_in_layer(rows, layer) for layer in (POSIX, STDIO)])
    found = found[found >= 0]
    both = chosen.copy()
    both[found[facts.calls("opens")[found] == 0]] = True
    return both


def _count_files(facts: Facts, small: Mask, many: Floats) -> Floats:
    """Return the number of small files in each directory."""
    directory = facts.directory[facts.file]
    rows = counts(unique_pairs(directory[small], facts.file[small])[0], len(facts.directories))
    return np.asarray(rows + sums(directory[small], many[small] - 1, len(facts.directories)))


def _open_at_length(facts: Facts, small: Mask) -> Mask:
    """Return, per directory, True if its small files cost the mean rank a noticeable part of the
    run to open and close."""
    seconds = facts.cells[:, list(META)].sum(axis=1)[small]
    per_directory = sums(facts.directory[facts.file[small]], seconds, len(facts.directories))
    return np.asarray(per_directory >= COSTLY * facts.job.wall * max(facts.ranks, 1))


def _place(facts: Facts, mask: Mask, directory: Ints) -> tuple[str, str]:
    """Return the directories of the rows in words, and the one to pack: the worst, or the common
    one of many."""
    seconds = sums(directory[mask], facts.cells[mask].sum(axis=1), len(facts.directories))
    used = np.unique(directory[mask])
    worst = facts.directories[int(np.argmax(seconds))]
    if len(used) == 1:
        return wording.name(worst), worst
    several = f"{wording.count(len(used))} directories"
    if len(used) < MANY_FILES:
        return f"{several} ({wording.name(worst)}, ...)", worst
    common = _find_common([facts.directories[number] for number in used], worst)
    if common == "/":
        return f"{several} ({wording.name(worst)}, ...)", worst
    return f"{several} below {wording.name(common)}", common


def _find_common(directories: list[str], worst: str) -> str:
    """Return the deepest directory above the worst one below which nearly all others lie."""
    above = worst
    while sum(one.startswith(f"{above}/") for one in directories) < NEARLY_ALL * len(directories):
        above = above.rpartition("/")[0]
        if not above:
            return "/"
    return above


def _small_files(facts: Facts, mask: Mask, directory: Ints) -> Candidate:
    subject = scene(facts, mask, facts.cells.sum(axis=1))
    where, packed = _place(facts, mask, directory)
    rows, count = (
        subject.rows,
        len(np.unique(facts.file[subject.rows]))
        + round(float((files_of_rows(facts) - 1)[subject.rows].sum())),
    )
    moved = subject.total("bytes_read") + subject.total("bytes_written")
    whole = max(moved, _sum_sizes(facts, rows))
    claims = _claim_metadata(facts, rows)
    claims += [
        Claim(rows, one.kind, facts.cells[rows, one.kind] - facts.reference.cost(rows, one))
        for one in (READS, WRITES)
    ]
    library = _library_rows(facts, rows)
    claims += claim_all(facts, library, (OPEN, CLOSE), 1.0 - 1.0 / max(count, 1))
    took = float(facts.cells[rows].sum())
    each = (took + sum_seconds(facts, library, OPEN, CLOSE)) / max(count, 1)
    first = "Creating" if subject.total("writes") else "Finding"
    synced = sum_seconds(facts, rows, SYNC)
    return subject.candidate(
        title=(
            f"{wording.count(count)} small files in {where}, {wording.size(whole / max(count, 1))}"
            " each"
        ),
        cause=(
            f"fsync of each file takes {wording.seconds(synced / max(count, 1))} of the"
            f" {wording.seconds(took / max(count, 1))} per file."
            if synced > 0.5 * took
            else f"{first}, opening and closing cost {wording.seconds(each)} per file, far more"
            " than its bytes."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} files, {wording.size(whole)} together,"
                f" {wording.seconds(took)}{facts.over_all},"
                f" {wording.percent(sum_seconds(facts, rows, *META), took)} of it in open, close,"
                " stat and similar calls",
                files=count,
                bytes=whole,
                slow_to_open=float(_may_read_ahead(facts, took / max(count, 1))),
            ),
            *_library_evidence(facts, library),
        ),
        fixes=(*((_SYNC_ONCE,) if synced > 0.5 * took else ()), *_fixes(facts, subject, packed)),
        claims=claims,
        method=(
            f"all time on these files minus {wording.size(moved)} at the rate of large calls, and"
            f" the program's time between calls, at most {OPEN_WORK.text} for each"
            + ("; and the time in a library to open and close them" if len(library) else "")
        ),
    )


def _sum_sizes(facts: Facts, rows: Ints) -> float:
    """Return the bytes of the files of rows that any process is known to have moved: a program may
    write to a file that another one has opened for it."""
    many = files_of_rows(facts)
    moved = (facts.column("bytes_written") + facts.column("bytes_read")) / many
    extent = np.maximum(facts.column("end_written"), facts.column("end_read"))
    largest = _find_largest(facts, np.where(many > 1, moved, np.maximum(moved, extent)))
    files = np.unique(facts.file[rows])
    members = _find_largest(facts, many)
    return float((largest * members)[files].sum())


def _claim_metadata(facts: Facts, rows: Ints) -> list[Claim]:
    """Return claims of the calls that move no data, and of the program's work for all calls: of
    stat and similar calls a few for each open, because more of them are no work for finding a
    file."""
    claims = claim_all(facts, rows, tuple(kind for kind in META if kind not in _BESIDE_OPENS))
    opens = facts.per_file(facts.calls("opens"))[facts.file[rows]]
    every = facts.reads[rows] + facts.writes[rows] + opens
    own = every.copy()
    for kind, counters in _BESIDE_OPENS.items():
        calls = np.sum([facts.calls(counter)[rows] for counter in counters], axis=0)
        of_opens = np.minimum(CALLS_OF_AN_OPEN * opens, calls)
        claims += claim_all(facts, rows, (kind,), ratio(of_opens, calls, 1.0))
        own, every = own + of_opens, every + calls
    return [*claims, *claim_work(facts, rows, OPEN_WORK, ratio(own, every, 1.0))]


def _library_rows(facts: Facts, rows: Ints) -> Ints:
    """Return the rows of libraries such as HDF5 that open the files of rows, by the same
    processes."""
    found = [facts.find_in_layer(rows, layer) for layer in range(MPIIO + 1, len(LAYERS))]
    return np.unique(np.concatenate([of_layer[of_layer >= 0] for of_layer in found]))


def _library_evidence(facts: Facts, rows: Ints) -> Iterator[Evidence]:
    """Yield the seconds in which libraries open and close files themselves."""
    took = sum_seconds(facts, rows, OPEN, CLOSE)
    if took > 0:
        spent = facts.cells[rows][:, [OPEN, CLOSE]].sum(axis=1) > 0
        layers = dict.fromkeys(facts.records["layer"][rows[spent]].tolist())
        names = " and ".join(LAYER_NAMES[LAYERS[layer]] for layer in layers)
        yield fact(
            f"{wording.seconds(took)} inside {names} to open and close the files{facts.over_all}",
            library_seconds=took,
        )


def _may_read_ahead(facts: Facts, seconds: float) -> bool:
    """True if a DataLoader of PyTorch reads files that take long to open: from memory it is no
    slower where they do not."""
    return seconds >= SLOW_FILE and any(use.kind == "DataLoader" for use in facts.job.loaders)


def _fixes(facts: Facts, subject: Scene, directory: str) -> Iterator[Fix]:
    if _trains(facts, subject):
        yield code(
            "Pack the files once and read them through pario.records.Loader (docs/training.md):"
            " one file, read ahead in large reads, in any order."
        )
        yield command("pario", "records", "pack", directory, "-o", f"{directory}.prec")
        return
    if "mpiio" in subject.layers:
        yield code(
            "Keep the steps in one file that all ranks open once, each step at an offset of its"
            " own (or a dataset of HDF5, a record of netCDF): every MPI_File_open and"
            " MPI_File_close is a meeting of all ranks."
        )
    if facts.are_of_programs(_is_sort)[subject.rows].all():
        yield code("Give sort a buffer that holds its input: sort -S 50%. It then needs no files.")
        return
    if count_removals(subject) >= NEARLY_ALL * len(np.unique(facts.file[subject.rows])):
        yield code(
            "The program removes these files itself: keep one temporary file open and use it again"
            " (rewind, ftruncate), or memory (memfd_create, internal files of Fortran, BytesIO)."
        )
        return
    yield code(
        "Keep many records in one file: HDF5 datasets, a tar or zip archive, SQLite, or one"
        " binary file with an index of offsets."
    )
    yield code("To stage the files as one file, and read its members from it:")
    yield command("tar", "-cf", f"{directory}.tar", "-C", directory, ".")
    if template := filesystems.of_mount(facts.filesystem_type[subject.files[0]]).unstripe:
        yield command(*filesystems.shell_words(template, directory))


def _trains(facts: Facts, subject: Scene) -> bool:
    """True for a training run: a data loader is known, or Python only reads the files."""
    if facts.job.loaders:
        return True
    python = any("python" in wording.name(program) for program in facts.job.programs)
    return python and not subject.total("writes")


SMALL_FILES = Rule(
    name="many-small-files",
    remedy="keeping many small files in one",
    sees="Hundreds of small files that are created or read, in one directory or over many.",
    threshold=(
        f"At least {MANY_FILES} files below {SMALL_FILE >> 20} MiB in a directory, or"
        f" {SEVERAL_FILES} whose opening takes {wording.share(COSTLY)} of the run; all such"
        " directories together; or as many in all other directories, without installed software."
        " Without those that every rank reads (all-ranks-read-one-file), those that a program such"
        " as tar or zip packs, and those of sed."
    ),
    estimate=(
        "All time on these files (of stat calls and of similar ones at most"
        f" {CALLS_OF_AN_OPEN} per open) minus their bytes at the reference rate; and the program's"
        f" time between calls, at most {OPEN_WORK.text} for each (needs events); and the time in"
        " which a library such as HDF5 opens and closes all but one of them."
    ),
    advice="One container file with an index (HDF5, tar, SQLite); pario records pack for training.",
    control="The same records in one file.",
    find=_small_file_storms,
    repairs=(repairs.LOADER_AHEAD,),
    why_not="the program's purpose is to create or read these files, with their names",
)
