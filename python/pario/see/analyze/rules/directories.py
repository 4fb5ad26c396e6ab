"""Rules about directories: thousands of names asked for, made or removed, and repeated listings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, Mask, counts, ratio, sums
from pario.see.analyze.cells import KINDS, events_of_rows
from pario.see.analyze.facts import Facts
from pario.see.analyze.folded import files_of_rows
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
from pario.see.analyze.rules.calling import Work, claim_work
from pario.see.analyze.rules.small_files import find_installed
from pario.see.tables.model import EVENT_KINDS

STAT, OTHER, OPEN, LIST = (KINDS.index(kind) for kind in ("stat", "other", "open", "list"))
MANY_NAMES = 500
LISTED = 2e-6  # seconds per name of one listing
MANY_LISTS = 20
_CHANGES = frozenset(
    f"{name}{suffix}"
    for name in ("mkdir", "rmdir", "unlink", "remove", "rename", "link", "symlink", "chmod")
    for suffix in ("", "at", "at2")
)
_ATTRIBUTES = _CHANGES | {
    *("fchmod", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "lutimes", "futimes"),
    *("utimensat", "futimens", "setxattr", "lsetxattr", "fsetxattr", "removexattr"),
    *("lremovexattr", "fremovexattr"),
}
#: Calls on an open descriptor, such as the output that a program inherits: no listing answers them.
_OF_DESCRIPTORS = frozenset(
    "fstat fstat64 __fxstat __fxstat64 fstatfs fstatfs64 fgetxattr flistxattr dup dup2 dup3 fcntl"
    " fcntl64 ioctl isatty posix_fadvise posix_fadvise64".split()
)
_STORM_FIXES = (
    code(
        "List the directory once (os.scandir, readdir with d_type) and keep the answers, instead of"
        " asking for each name."
    ),
    code(
        "Make, rename and remove fewer names: keep scratch files in one file or in memory; spread"
        " files that must exist over subdirectories."
    ),
)
NAME_WORK = Work(idioms.select_a_name, "selecting a name")
CHANGE_WORK = Work(idioms.ask_for_a_name, "asking for a name")
MANY_CHANGES, MANY_CHANGES_OF_RUN = 20, 1000


def _directory_storms(facts: Facts) -> Iterator[Candidate]:
    if not len(facts.records):
        return
    named = {kind: _share_of_names(facts, kind) for kind in ("stat", "other")}
    calls = sum(facts.calls(f"{kind}s") * share for kind, share in named.items())
    calls = calls + facts.calls("failed_opens")
    asked = facts.stored & (calls > 0) & (calls >= facts.calls("opens"))
    asked &= ~find_installed(facts)[facts.file]
    directory = facts.directory[facts.file]
    names = _count_names(facts, np.flatnonzero(asked))
    mask = asked & (names >= MANY_NAMES)[directory]
    if mask.any():
        yield _directory_storm(facts, mask, calls, named)


def _share_of_names(facts: Facts, kind: str) -> Floats:
    """Return, per row, the part of the calls of a kind that concern a name, not a descriptor, by
    events; 1 without events."""
    chosen, row = events_of_rows(facts.job, kind)
    events, rows = facts.job.events[chosen], len(facts.records)
    count = events["count"].astype(float)
    of_name = ~facts.job.select_functions(_OF_DESCRIPTORS.__contains__)[events["function"]]
    return ratio(sums(row, count * of_name, rows), sums(row, count, rows), 1.0)


def _count_names(facts: Facts, rows: np.ndarray) -> np.ndarray:
    """Return the names per directory; a name that several processes use counts once."""
    most = np.zeros(len(facts.job.files))
    np.maximum.at(most, facts.file[rows], files_of_rows(facts)[rows])
    return sums(facts.directory, most, len(facts.directories))


def _directory_storm(
    facts: Facts, mask: np.ndarray, calls: np.ndarray, named: dict[str, Floats]
) -> Candidate:
    seconds = {kind: facts.cells[:, KINDS.index(kind)] * share for kind, share in named.items()}
    subject = scene(facts, mask, seconds["stat"] + seconds["other"])
    rows = subject.rows
    directory = facts.directory[facts.file[rows]]
    busiest = int(np.argmax(counts(directory, len(facts.directories))))
    several = len(np.unique(directory))
    where = wording.name(facts.directories[busiest])
    if several > 1:
        where = f"{wording.count(several)} directories ({where}, ...)"
    count, names = float(calls[rows].sum()), float(_count_names(facts, rows).sum())
    stats, others = (float((facts.calls(f"{kind}s") * named[kind])[rows].sum()) for kind in named)
    took = float(subject.weight.sum()) + sum_seconds(facts, rows, OPEN)
    changes = float(seconds["other"][rows].sum()) > 0.5 * took
    slow = _slowest_changes(facts, rows) if changes else ""
    return subject.candidate(
        title=(
            f"{wording.count(count)} calls on {wording.count(names)} names in {where}, one name"
            f" at a time{slow}"
        ),
        cause=(
            f"Each stat, create, rename or unlink is a request of its own"
            f" ({wording.seconds(took / max(count, 1))}), and the directory's lock serves one"
            " after the other."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(stats)} stat, access or similar calls,"
                f" {wording.count(others)} unlink, rename, mkdir and similar"
                f" calls, {wording.count(subject.total('failed_opens'))} failed opens,"
                f" {wording.seconds(took)}{facts.over_all}",
                calls=count,
                names=names,
            ),
        ),
        fixes=tuple(reversed(_STORM_FIXES)) if changes else _STORM_FIXES,
        claims=_claim_names(facts, rows, seconds),
        method=(
            f"time in these calls, of stat and similar ones minus {wording.seconds(LISTED)} per"
            " name, as in one listing"
        ),
    )


def _claim_names(facts: Facts, rows: np.ndarray, seconds: dict[str, Floats]) -> list[Claim]:
    """Return claims of the calls on names, without the time of a listing, and of opens that fail,
    whose names no listing has."""
    failed = facts.calls("failed_opens")[rows]
    share = ratio(failed, failed + facts.calls("opens")[rows])
    listed = LISTED * files_of_rows(facts)[rows]
    return [
        *(Claim(rows, KINDS.index(kind), its[rows] - listed) for kind, its in seconds.items()),
        Claim(rows, OPEN, facts.cells[rows, OPEN] * share),
    ]


def _slowest_changes(facts: Facts, rows: np.ndarray) -> str:
    """Return the function that makes, moves or removes names and takes most time, with its calls
    and its part of the time of all of them: ``; 1,200 rmdir take 94 % of it``."""
    table, names = facts.job.functions, facts.job.function_names
    chosen = facts.job.select_functions(_CHANGES.__contains__)
    own = table[np.isin(table["process"], facts.records["process"][rows]) & chosen[table["name"]]]
    if not len(own):
        return ""
    seconds = np.bincount(own["name"], own["seconds"], len(names))
    most = int(np.argmax(seconds))
    count = int(own["calls"][own["name"] == most].sum())
    part = wording.percent(float(seconds[most]), float(seconds.sum()))
    return f"; {wording.count(count)} {names[most]} calls take {part} of the time"


def _repeated_listings(facts: Facts) -> Iterator[Candidate]:
    lists = facts.column("lists")
    mask = facts.stored & (lists >= MANY_LISTS * np.maximum(facts.column("ranks"), 1))
    mask &= files_of_rows(facts) == 1
    if not mask.any():
        return
    subject = scene(facts, mask, facts.cells[:, LIST])
    rows, count = subject.rows, subject.total("lists")
    entries, took = subject.total("entries"), sum_seconds(facts, subject.rows, LIST)
    names = facts.column("entries")[rows]
    yield subject.candidate(
        title=(
            f"{subject.place} listed {wording.count(count)} times,"
            f" {wording.count(entries / max(count, 1))} names each"
        ),
        cause=(
            f"Each listing reads all names again ({wording.seconds(took / max(count, 1))}), from"
            " the metadata server on a network file system."
        ),
        confidence="high",
        evidence=(
            fact(
                f"{wording.count(count)} listings, {wording.count(entries)} names,"
                f" {wording.seconds(took)}{facts.over_all}",
                lists=count,
                names=entries,
            ),
        ),
        fixes=(
            code("List the directory once before the loop, and keep the names in a set or map."),
            code("Wait for new files with inotify, or a message from their writer."),
        ),
        claims=[
            *claim_all(facts, rows, (LIST,), all_but_one(lists[rows])),
            *claim_work(
                facts,
                rows,
                NAME_WORK,
                all_but_one(lists[rows]),
                (names, names / lists[rows]),
            ),
        ],
        method=(
            "time in listings, of all but one per process and directory, and the program's time"
            f" between their calls, at most {NAME_WORK.text} for each name"
        ),
    )


def _mostly_change(facts: Facts) -> Mask:
    """Return, per file, False if most of its other calls change nothing, such as fcntl and ftell,
    by events; True without events of such calls."""
    events, files = facts.job.events, len(facts.job.files)
    events = events[(events["kind"] == EVENT_KINDS.index("other")) & (events["file"] >= 0)]
    changing = facts.job.select_functions(_ATTRIBUTES.__contains__)[events["function"]]
    every = sums(events["file"], events["count"].astype(float), files)
    return sums(events["file"], events["count"] * changing.astype(float), files) >= 0.5 * every


def _repeated_changes(facts: Facts) -> Iterator[Candidate]:
    """Find names whose attributes are changed, or that are made and removed, again and again."""
    changes, several = facts.column("others"), files_of_rows(facts)
    mask = facts.stored & (facts.lane >= 0) & (changes >= MANY_CHANGES * several)
    mask &= (changes > 2 * facts.calls("opens")) & _mostly_change(facts)[facts.file]
    if changes[mask].sum() < MANY_CHANGES_OF_RUN:
        return
    # The time of calls that set a file's size is in the same counter.
    share = ratio(changes, changes + facts.column("truncates"))
    subject = scene(facts, mask, facts.cells[:, OTHER] * share)
    rows, count = subject.rows, float(changes[mask].sum())
    took = float(subject.weight.sum())
    needless = share[rows] * all_but_one(changes[rows] / several[rows])
    words = name_functions(facts, rows, "other") or "chmod, utime or similar"
    failed = float(facts.column("failed")[rows].sum())
    kind = "rename" if words.startswith("rename") else "attribute"
    kind = "mkdir" if words.startswith("mkdir") and failed > 0.5 * count else kind
    kind = "link" if words.startswith(("link", "symlink")) else kind
    cause, fix = _CHANGE_TEXTS[kind]
    removed = _find_removed(facts, rows) if kind == "link" else rows[:0]
    yield subject.candidate(
        title=f"{wording.count(count)} {words} calls on {subject.place}",
        cause=f"Each call ({wording.seconds(took / count)}) {cause}",
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.seconds(took)}{facts.over_all}",
                calls=count,
            ),
        ),
        fixes=(code(fix), *([] if kind == "rename" else [_STORM_FIXES[1]])),
        claims=[
            *claim_all(facts, rows, (OTHER,), needless),
            *claim_all(facts, removed, (OTHER,)),
            *claim_work(facts, rows, CHANGE_WORK, needless),
        ],
        method=(
            "time in these calls of all but one per process and file,"
            f"{' and in those that remove the new names,' * bool(len(removed))} and the program's"
            f" time between them, at most {CHANGE_WORK.text} for each"
        ),
    )


def _find_removed(facts: Facts, rows: Ints) -> Ints:
    """Return the rows of the same processes with names that are made and removed, but never
    opened."""
    processes = facts.records["process"]
    never = facts.per_file(facts.calls("opens"))[facts.file] == 0
    few = (facts.column("others") > 0) & (facts.column("others") < MANY_CHANGES)
    own = np.isin(processes, np.unique(processes[rows])) & facts.stored
    return np.flatnonzero(own & never & few)


#: By the kind of change: the end of the sentence on a call, and the repair.
_CHANGE_TEXTS = {
    "attribute": (
        "changes the metadata of the file or directory, on a network file system by a request to"
        " the server; the next one replaces the change at once.",
        "Set permissions, times and attributes once, after the last write of a file; keep values"
        " that change often in the memory of the program, or in the file itself.",
    ),
    "link": (
        "gives a file one more name, which changes the directory and the file's own metadata; its"
        " removal changes both again.",
        "Keep such snapshots of names less often, only those that are needed later, or the versions"
        " in one file (an archive, records with their step).",
    ),
    "rename": (
        "gives a file the name of another one. Where it replaces a file, some file systems store"
        " the new bytes on the device first; the next version replaces them at once.",
        "Replace the file every few seconds, or in every hundredth step, instead of each time;"
        " append to one open file where all versions are needed.",
    ),
    "mkdir": (
        "fails, because the directory exists; on a network file system it is a request to the"
        " server.",
        "Make each directory once, before the loop, or keep the names of those that exist (a set).",
    ),
}

LISTING = Rule(
    name="directory-listing",
    remedy="listing a directory once",
    sees="The same directory listed again and again by the same process.",
    threshold=f"At least {MANY_LISTS} listings per process and directory.",
    estimate=(
        "Time in listings, except for one per process and directory, and the program's time between"
        f" their calls, at most {NAME_WORK.text} for each name (needs events)."
    ),
    advice="One listing before the loop.",
    control="Each directory listed once.",
    find=_repeated_listings,
    why_not="each answer may differ, because other programs change the directory, too",
)
STORM = Rule(
    name="directory-storm",
    remedy="asking for, making and removing fewer names",
    sees="Hundreds of names of a directory that are asked for, renamed or removed one by one.",
    threshold=(
        f"At least {MANY_NAMES} names of a directory, without installed software, each with at"
        " least as many such calls as opens."
    ),
    estimate=(
        f"Time in stat and similar calls minus {wording.seconds(LISTED)} per name, and time in"
        " opens that fail."
    ),
    advice="One listing, fewer files, subdirectories.",
    control="One listing of the directory.",
    find=_directory_storms,
    why_not="each answer may differ, because other programs change the directory, too",
)
CHANGES = Rule(
    name="attribute-storm",
    remedy="changing names and metadata less often",
    sees="Names whose attributes are changed, or that are made and removed, again and again.",
    threshold=(
        f"At least {MANY_CHANGES} such calls per process and file, {MANY_CHANGES_OF_RUN:,}"
        " together, and more than two per open."
    ),
    estimate=(
        "Time in these calls beyond the first per process and file (of links also in the removal of"
        " the new names), and the program's time between"
        f" them, at most {CHANGE_WORK.text} for each (needs events)."
    ),
    advice="Set attributes once, after the last write.",
    control="One such call per file.",
    find=_repeated_changes,
    why_not="only the program knows which of the changes others must see",
)
