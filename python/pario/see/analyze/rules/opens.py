"""Rules about opens: files opened again and again, and opens that queue."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, sums
from pario.see.analyze.cells import KINDS, LIBRARIES, READ, READS, STDIO, WRITES
from pario.see.analyze.facts import Facts, compute_once
from pario.see.analyze.folded import files_of_rows
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.rules import databases, repairs
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
from pario.see.analyze.rules.calling import (
    LIBRARY_WORK,
    LONGEST_PARSING,
    MANY_PARSED,
    PARSING,
    SMALL_INPUT,
    TEXT_WORK,
    Work,
    are_parsed_often,
    claim_computation,
    claim_work,
    find_parsing,
    find_parsing_after,
    find_repeated_work,
    find_setup,
)
from pario.see.analyze.rules.small_calls import claim_excess

OPEN, CLOSE, SEEK, OTHER = (KINDS.index(kind) for kind in ("open", "close", "seek", "other"))
MANY_OPENS = 20
LARGE_OPEN = 1 << 20  # bytes moved for each open
FEW_WRITES = 4  # per open: no buffer can collect them
SEARCHED = 1.5  # times the bytes of the file that its opens have read
FAILING = 0.5  # of the opens of a file that a program waits for
REMOVED = 0.9  # of the opens of a file that is removed, or renamed, after each
QUEUE_SPREAD = 4.0
OPEN_WORK = Work(idioms.read_a_file, "reading an empty file")
#: A program that frees its memory after each line needs several times the time of the idiom.
COMPRESSED_WORK = Work(idioms.append_compressed, "appending a line to a compressed file", times=4)
_REMOVALS = ("unlink", "unlinkat", "remove")
_RENAMES = ("rename", "renameat", "renameat2")
OF_HANDLES = 0.5  # of the claims: kept handles, which save opens and closes, double the speed
_IN_PROGRAM = "most of the time passes in the program and in other calls, not in open and close"
_NEW_FILES = "each open makes a new file, which is renamed once it is written"
_COMPRESSED = (".gz", ".bz2", ".xz")


@compute_once
def find_open_loops(facts: Facts) -> Mask:
    """True for rows of files that a process opens and closes again and again."""
    opens = _count_opens(facts)
    mask = facts.stored & (_per_rank(facts, opens) >= MANY_OPENS)
    return np.asarray(mask & ~_move_much(facts, opens))


def _count_opens(facts: Facts) -> Floats:
    return facts.calls("opens") + facts.calls("failed_opens")


def _per_rank(facts: Facts, opens: Floats) -> Floats:
    return np.asarray(opens / np.maximum(facts.column("ranks"), 1) / files_of_rows(facts))


def _open_close_loops(facts: Facts) -> Iterator[Candidate]:
    mask = find_open_loops(facts)
    if not mask.any():
        return
    opens = _count_opens(facts)
    per_rank = _per_rank(facts, opens)
    subject = scene(facts, mask, facts.meta_seconds)
    rows, count = subject.rows, float(opens[mask].sum())
    needless = all_but_one(per_rank[rows])
    kinds = (OPEN, CLOSE, OTHER)
    alone = facts.writes[rows] <= FEW_WRITES * opens[rows]
    library, in_library = _library_rows(facts, rows)
    streams = _find_streams(facts, rows[alone])
    parsing = np.where(in_library, 0.0, _find_parsing(facts, rows))
    parsed = _measure_parsed(facts, rows, parsing)
    took = sum_seconds(facts, rows, *kinds) + sum_seconds(facts, library, *kinds)
    named = float(facts.column("opens")[library].sum()) if in_library.all() else count
    named = named or count
    claims = [
        *claim_all(facts, rows, kinds, needless),
        *claim_all(facts, library, kinds, all_but_one(facts.column("opens")[library])),
        *_claim_transfers(facts, rows, alone, in_library),
        *_claim_search(facts, rows, needless),
        *claim_excess(facts, streams, WRITES),
        *claim_computation(facts, rows, parsing * needless),
        *_claim_work(facts, rows, (library, streams), needless, in_library, parsing > 0),
    ]
    yield subject.candidate(
        **_describe_opens(subject, named, took / named, parsed),
        confidence="high",
        why_not=_why_not(subject, count, parsed, claims),
        evidence=(
            fact(
                f"{wording.count(count)} opens of {wording.plural(len(subject.files), 'file')}, "
                f"{wording.seconds(took)} in open and close{facts.over_all}",
                opens=count,
            ),
        ),
        fixes=(
            *databases.fixes_of_sqlite(subject, _advise_sqlite(subject)),
            _advise_opens(subject, count, parsed),
        ),
        claims=claims,
        method=(
            "time in open and close (of HDF5, too) of all but one open per process and file, in the"
            " few small writes between them, in calls by which HDF5 opens and closes a file, and"
            " in those that search an archive for its end; of small files that are read each time"
            " also the computation while they are open, which parses the same bytes again (of text"
            f" also that after the close, at most {TEXT_WORK.text}); and the"
            f" program's time between calls, at most {OPEN_WORK.text} for each"
        ),
    )


def _move_much(facts: Facts, opens: Floats) -> Mask:
    """True for rows of files that each open reads or writes as a whole, without a library: their
    bytes matter, not the opens, which may free those of the file before (O_TRUNC)."""
    moved = facts.column("bytes_read") + facts.column("bytes_written")
    in_library = np.zeros(len(opens), bool)
    rows = np.flatnonzero(moved >= LARGE_OPEN * opens)
    in_library[rows] = _library_rows(facts, rows)[1]
    return np.asarray((moved >= LARGE_OPEN * opens) & (moved > 0) & ~in_library)


def _measure_parsed(facts: Facts, rows: Ints, parsing: Floats) -> float:
    """Return the seconds in which the bytes are parsed again after each open, if this takes longer
    than all calls on the files; otherwise 0."""
    seconds = float(parsing.sum())
    return seconds if seconds > float(facts.cells[rows].sum()) else 0.0


def _describe_opens(subject: Scene, count: float, each: float, parsed: float) -> dict[str, str]:
    """Return title and cause; ``count``: opens, ``each``: seconds of one, ``parsed``: seconds of
    parsing, if they are most."""
    if _mostly_fail(subject, count):
        return {
            "title": f"{wording.count(count)} opens of {subject.place}, most of which failed",
            "cause": (
                f"Each attempt costs {wording.seconds(each)}; the program tries again at once while"
                " the file is missing or may not be opened."
            ),
        }
    if _are_renamed(subject, count):
        return {
            "title": f"{wording.count(count)} small files made as {subject.place}, then renamed",
            "cause": (
                f"Each open makes a new file: it costs {wording.seconds(each)} with the close, and"
                " the rename comes on top."
            ),
            "remedy": "making fewer files",
        }
    if parsed:
        return {
            "title": f"{subject.place} opened and parsed {wording.count(count)} times",
            "cause": (
                f"After each open the program computes for {wording.seconds(parsed / count)} on the"
                f" same bytes again; open and close themselves cost {wording.seconds(each)}."
            ),
            "remedy": (
                "keeping files open between changes"
                if _are_changed(subject, count)
                else "reading and parsing each file once"
            ),
        }
    return {
        "title": f"{subject.place} opened and closed {wording.count(count)} times",
        "cause": (
            f"Each open and close costs {wording.seconds(each)} and empties the buffers; the same"
            " file is needed again at once."
        ),
    }


def _advise_sqlite(subject: Scene) -> str:
    """The repair for files that SQLite opens: a journal is one of a transaction, a database one of
    a connection."""
    if databases.has_journal(subject):
        return (
            "many statements in one transaction, or PRAGMA journal_mode=WAL, which keeps its file."
        )
    return "one connection for all statements, which opens and parses the database once."


def _advise_opens(subject: Scene, count: float, parsed: float) -> Fix:
    if _mostly_fail(subject, count):
        return code(
            "Wait for the file with inotify, or a message from the program that writes it; or sleep"
            " between attempts."
        )
    if _are_renamed(subject, count):
        return code(
            "Keep many records in one file: an archive, SQLite, HDF5 datasets, or one binary file"
            " with an index of offsets. Where the same file is replaced each time: replace it less"
            " often."
        )
    if parsed and _are_changed(subject, count):
        return code(
            "Keep the file open between the changes, with what was read from it: an archive then"
            " reads and writes its index once. Python: one zipfile.ZipFile or tarfile.open around"
            " the loop."
        )
    if parsed:
        return code(
            "Read and parse the file once before the loop, and keep the result. Where the file"
            " grows: keep it open and read on where the last read ended."
        )
    moved = subject.total("bytes_read") + subject.total("bytes_written")
    if not moved and count_removals(subject) >= REMOVED * count:
        return code(
            "Lock a file that stays open (flock, fcntl) instead of making and removing a lock file,"
            " or hold the lock for many accesses."
        )
    return code(
        "Open the file once before the loop, keep the descriptor (or FILE*, or HDF5 file id) and"
        " close it after the loop."
    )


def count_removals(subject: Scene) -> float:
    """Return the calls by which the processes of a finding remove files."""
    return _count_calls(subject, _REMOVALS)


def _count_calls(subject: Scene, names: tuple[str, ...]) -> float:
    """Return the calls of functions by the processes of a finding."""
    functions = subject.facts.job.functions
    own = np.isin(functions["process"], subject.facts.records["process"][subject.rows])
    own &= subject.facts.job.select_functions(names.__contains__)[functions["name"]]
    return float(functions["calls"][own].sum())


def _are_changed(subject: Scene, count: float) -> bool:
    """True if the opens are for reading and writing, and the program writes in each of them."""
    flags = np.bitwise_or.reduce(subject.facts.records["open_flags"][subject.rows])
    return bool(flags & os.O_RDWR) and subject.total("writes") >= REMOVED * count


def _are_renamed(subject: Scene, count: float) -> bool:
    """True if the program writes a file anew for each open, and renames it."""
    renamed = _count_calls(subject, _RENAMES) >= REMOVED * count
    return renamed and subject.total("others") >= REMOVED * count and subject.total("writes") > 0


def _why_not(subject: Scene, count: float, parsed: float, claims: list[Claim]) -> str:
    if databases.is_of_sqlite(subject):
        return databases.WHY_NOT
    if _mostly_fail(subject, count):
        return "an open that fails leaves nothing to keep open"
    if _are_renamed(subject, count):
        return _NEW_FILES
    if parsed:
        return "the time is spent inside the program, which parses the bytes"
    seconds = [(claim.kind in (OPEN, CLOSE), float(claim.seconds.sum())) for claim in claims]
    saved = sum(each for is_saved, each in seconds if is_saved)
    return _IN_PROGRAM if saved < OF_HANDLES * sum(each for _, each in seconds) else ""


def _mostly_fail(subject: Scene, count: float) -> bool:
    return subject.total("failed_opens") > FAILING * count


def _claim_transfers(facts: Facts, rows: Ints, alone: Mask, in_library: Mask) -> list[Claim]:
    """Return claims of the transfers that an open makes necessary: few small writes, and the reads
    and writes by which HDF5 loads and stores its own data about the file."""
    return [
        *claim_excess(facts, rows, WRITES, share=(alone | in_library).astype(float)),
        *claim_excess(facts, rows, READS, share=in_library.astype(float)),
    ]


def _claim_search(facts: Facts, rows: Ints, needless: Floats) -> list[Claim]:
    """Return claims of the seeks and reads by which each open looks for its place in a file that
    the open before has written: archives are extended so."""
    moved, written = facts.column("bytes_read")[rows], facts.column("bytes_written")[rows]
    again = (moved > SEARCHED * facts.read_extent[rows]) & (written > 0)
    again &= facts.calls("seeks")[rows] >= facts.calls("opens")[rows]
    return claim_all(facts, rows[again], (SEEK, READ), needless[again])


def _find_streams(facts: Facts, rows: Ints) -> Ints:
    """Return the rows of streams whose descriptor is the one opened again, and that make few
    writes: shells redirect their output so."""
    streams = facts.find_in_layer(rows, STDIO)
    streams = streams[streams >= 0]
    return np.asarray(streams[facts.records["opens"][streams] == 0])


def _claim_work(
    facts: Facts,
    rows: Ints,
    above: tuple[Ints, Ints],
    needless: Floats,
    in_library: Mask,
    parsed: Mask,
) -> list[Claim]:
    """Return claims of the program's work for the calls: of HDF5 for files with such calls, and of
    compression. ``above``: the rows of HDF5 and of streams on the same files. ``parsed``: of files
    whose computation while they are open is claimed already."""
    computed = np.zeros(len(facts.records), bool)
    computed[rows[parsed]] = True
    library, streams = above
    packed = np.array([facts.path(file).endswith(_COMPRESSED) for file in facts.file[rows]])
    packed &= ~in_library
    plain = ~in_library & ~packed
    return [
        *claim_work(
            facts,
            np.append(rows[plain], streams),
            OPEN_WORK,
            np.append(needless[plain], np.ones(len(streams))),
            parsed=computed,
        ),
        *claim_work(facts, rows[packed], COMPRESSED_WORK, needless[packed], parsed=computed),
        *claim_work(
            facts,
            np.append(rows[in_library], library),
            LIBRARY_WORK,
            np.append(needless[in_library], all_but_one(facts.column("opens")[library])),
        ),
    ]


def _find_parsing(facts: Facts, rows: Ints) -> Floats:
    """Return, per row, the seconds of computation that parses the same bytes after each open: all
    while a small file is open whose bytes are read each time, the time after reads of places that
    an earlier open read, or that in which a library sets up a mapping."""
    records = facts.records[rows]
    again = are_parsed_often(facts, rows)
    again &= records["bytes_read"] >= 0.5 * MANY_PARSED * facts.read_extent[rows]
    whole, repeated, set_up = np.zeros((3, len(rows)))
    whole[again] = find_parsing(facts, rows[again])
    whole[again] += find_parsing_after(facts, rows[again], claimed=OPEN_WORK)
    often = records["opens"] >= MANY_PARSED
    repeated[often] = find_repeated_work(facts, rows[often])
    mapped = records["maps"] >= MANY_PARSED
    if mapped.any():
        set_up[mapped] = find_setup(facts, rows[mapped])
    return np.maximum(np.maximum(whole, repeated), set_up)


def _library_rows(facts: Facts, rows: Ints) -> tuple[Ints, Mask]:
    """Return the rows of calls of a library on the same files, each once, and the mask of the rows
    that have one."""
    above = np.max([facts.find_in_layer(rows, library) for library in LIBRARIES], axis=0)
    return np.unique(above[above >= 0]), np.asarray(above >= 0)


def _queues_at_open(facts: Facts) -> Iterator[Candidate]:
    """Find opens of many ranks that finish one after the other: the slowest takes many times as
    long as the fastest."""
    if facts.ranks < 4 or not facts.lanes.mpi or not facts.has("per_rank"):
        return
    opens = facts.stored & (facts.lane >= 0) & (facts.calls("opens") > 0)
    per_lane = sums(facts.lane[opens], facts.cells[opens, OPEN], facts.ranks)
    count = sums(facts.lane[opens], facts.calls("opens")[opens], facts.ranks)
    each = per_lane[count > 0] / count[count > 0]
    if (
        len(each) < facts.ranks / 2
        or each.min() <= 0
        or np.percentile(each, 90) < QUEUE_SPREAD * each.min()
    ):
        return
    subject = scene(facts, opens, facts.cells[:, OPEN])
    rows = subject.rows
    yield subject.candidate(
        title=(
            f"opens of {wording.count(len(each))} ranks queue: {wording.seconds(float(each.min()))}"
            f" for the first, {wording.seconds(float(each.max()))} for the last"
        ),
        cause=(
            f"All ranks {'open or create' if subject.total('bytes_written') else 'open'} files at"
            " the same moment, and the metadata server (or the directory's lock) serves one after"
            " the other."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.seconds(float(np.median(each)))} per open on the median rank",
                opens=float(count.sum()),
            ),
        ),
        fixes=(
            code(
                "Let one rank open and broadcast, open shared files with MPI_File_open, or open"
                " files before they are needed, ranks staggered."
            ),
            code("Spread files of many ranks over subdirectories (one per node or per 100 ranks)."),
        ),
        claims=[
            Claim(
                rows,
                OPEN,
                np.maximum(
                    facts.cells[rows, OPEN] - float(each.min()) * facts.records["opens"][rows], 0.0
                ),
            )
        ],
        method="time in open minus the time of as many opens by the fastest rank",
    )


LOOP = Rule(
    name="open-close-loop",
    remedy="opening each file once",
    sees="The same file opened and closed again and again by the same process.",
    threshold=(
        f"At least {MANY_OPENS} opens per process and file, each with less than"
        f" {LARGE_OPEN >> 20} MiB read or written, or of a file of a library."
    ),
    estimate=(
        "Time in open and close, except one of each per process and file, and in small "
        f"writes if an open has at most {FEW_WRITES} of them. If a file of at most"
        f" {SMALL_INPUT >> 20} MiB is read in each of {MANY_PARSED} opens or more, also the"
        " computation while it is open and not written, as parsing (at most"
        f" {wording.seconds(LONGEST_PARSING)} each, or {wording.seconds(PARSING)} for each"
        " byte; of files of text, by their names, also that after the close, at most"
        f" {TEXT_WORK.text}), and of any file opened so often that after reads at places which an"
        " earlier open read, or between its mapping and the close of its descriptor, if the mapping"
        " stays. Of HDF5 files also the reads and writes of the library, and of files that are read"
        " and extended in each open the reads and seeks. With events also the program's time"
        " between the calls, at most"
        f" {OPEN_WORK.text} for each, {LIBRARY_WORK.text} for calls of HDF5, and"
        f" {COMPRESSED_WORK.text} for compressed files."
    ),
    advice="Open once, before the loop.",
    control="One open before the loop, the same writes.",
    find=_open_close_loops,
    repairs=(repairs.KEPT_HANDLES, repairs.CLOSED_BEHIND),
    why_not="a program that closes a file expects others to see its bytes from then on",
)
QUEUE = Rule(
    name="metadata-queue",
    remedy="opening files on one rank first",
    sees="Opens of many ranks that the server handles one after the other.",
    threshold=(
        f"At least 4 MPI ranks; the 90th percentile of time per open is {QUEUE_SPREAD:.0f} times"
        " that of the fastest rank."
    ),
    estimate="Time in open minus the time of as many opens on the fastest rank.",
    advice="Open on one rank and broadcast, MPI_File_open, subdirectories.",
    control="Opens that take the same time on all ranks.",
    find=_queues_at_open,
)
