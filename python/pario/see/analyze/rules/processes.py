"""The rule about programs that are started again and again for little work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.accounts import image_seconds
from pario.see.analyze.arrays import Floats, Ints, Mask, counts, sums, unique_pairs
from pario.see.analyze.cells import KINDS
from pario.see.analyze.facts import Facts, compute_once
from pario.see.analyze.intervals import Intervals, IntervalSet
from pario.see.analyze.lanes import lane_words
from pario.see.analyze.ledger import COMPUTE, Claim, claim_all
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, fact
from pario.see.analyze.rules.calling import find_running_shares

MANY_STARTS = 50
#: Most seconds of processor time of a start with all processes below it: more is work, such as a
#: compilation. Interpreters need longer to start.
SHORT, SHORT_INTERPRETED = 0.01, 0.04
COMMON = 0.5  # of the processes of a storm that open a file
_STARTERS = ("fork", "vfork", "posix_spawn", "posix_spawnp", "popen", "system")
_INTERPRETERS = ("python", "perl", "ruby", "node", "java", "Rscript", "julia")
_NAMED, _WORTH_NAMING = 3, 0.05  # programs of a title, and their part of the starts


@dataclass(frozen=True)
class _Families:
    """The processes of a job: images that follow one another by exec are one. A family is a process
    that the run has started, with all processes below it."""

    of_image: Ints  # process of each row of Job.processes
    image_seconds: Floats  # of each row of Job.processes alone
    parent: Ints  # per process; -1: none of the run
    seconds: Floats  # of the family, per process
    interpreted: Mask  # per process: the family contains an interpreter


def _process_storms(facts: Facts) -> Iterator[Candidate]:
    families = _find_families(facts)
    for parent, children in _find_storms(families):
        yield _storm(facts, families, children, np.flatnonzero(families.of_image == parent))


def _find_storms(families: _Families) -> Iterator[tuple[int, Ints]]:
    """Yield each process that starts many short ones, and these."""
    starts = np.bincount(families.parent[families.parent >= 0], minlength=len(families.parent))
    for parent in np.flatnonzero(starts >= MANY_STARTS).tolist():
        children = np.flatnonzero(families.parent == parent)
        most = np.where(families.interpreted[children], SHORT_INTERPRETED, SHORT)
        if families.seconds[children].sum() <= most.sum():
            yield parent, children


def find_common_files(facts: Facts) -> Mask:
    """True for rows of files that most processes of a storm open, such as an index or settings: one
    process would open them once."""
    found = np.zeros(len(facts.records), bool)
    if len(facts.job.processes) >= MANY_STARTS:
        families = _find_families(facts)
        for _, children in _find_storms(families):
            found[_find_common_rows(facts, families, children)] = True
    return found


def _find_common_rows(facts: Facts, families: _Families, children: Ints) -> Ints:
    below = np.isin(families.of_image, _with_all_below(families, children))
    process = facts.records["process"]
    own = facts.stored & (process >= 0) & (facts.calls("opens") > 0)
    own &= np.append(below, False)[process]
    rows = np.flatnonzero(own)
    files = unique_pairs(facts.file[rows], families.of_image[process[rows]])[0]
    users = counts(files, len(facts.job.files))
    return rows[users[facts.file[rows]] >= COMMON * len(children)]


@compute_once
def _find_families(facts: Facts) -> _Families:
    processes = facts.job.processes
    keys = list(zip(processes["host"].tolist(), processes["pid"].tolist(), strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    of_image = np.array([numbers[key] for key in keys], np.int64)
    parent = np.full(len(numbers), -1)
    born = np.full(len(numbers), np.inf)
    np.minimum.at(born, of_image, processes["start"])
    own = facts.lanes.of_process >= 0
    for number, host, above in zip(
        of_image[own], processes["host"][own].tolist(), processes["parent"][own].tolist(),
        strict=True,
    ):  # fmt: skip
        parent[number] = numbers.get((host, above), -1)
    alone = _image_seconds(facts)
    seconds = sums(of_image, alone, len(numbers))
    slow = np.array([name.startswith(_INTERPRETERS) for name in _programs(facts)] or [False])
    interpreted = sums(of_image, slow[processes["exe"]].astype(float), len(numbers))
    for number in np.argsort(-born, kind="stable").tolist():  # children before their parents
        if parent[number] >= 0 and born[parent[number]] < born[number]:
            seconds[parent[number]] += seconds[number]
            interpreted[parent[number]] += interpreted[number]
    return _Families(of_image, alone, parent, seconds, interpreted > 0)


def _programs(facts: Facts) -> list[str]:
    return [PurePath(program).name for program in facts.job.programs]


def _image_seconds(facts: Facts) -> Floats:
    """Return the seconds of images that work in their parent would not need: processor time, at
    most their life, without their I/O on storage, which other rules judge. The tracer leaves its
    own start and end out."""
    processes = facts.job.processes
    used = np.nan_to_num(processes["cpu_user"] + processes["cpu_system"])
    records = facts.records["process"]
    single = records >= 0
    io = sums(records[single], facts.cells[single].sum(axis=1), len(processes))
    own = np.minimum(image_seconds(facts.job), used) - io
    return np.asarray(np.maximum(own, 0.0))


def _storm(facts: Facts, families: _Families, children: Ints, parents: Ints) -> Candidate:
    images = np.flatnonzero(np.isin(families.of_image, _with_all_below(families, children)))
    rows = facts.job.processes[images]
    started = rows["parent_image"] == 0
    seconds = families.image_seconds[images]
    forked = ~np.isin(families.of_image[images], families.of_image[images[started]])
    each = [idioms.measure_start(), _measure_forks(facts, parents) / len(children)]
    starting = np.select([started, forked], each, 0.0)
    lanes, granted = _sum_by_lane(facts, images, seconds, starting)
    count = len(children)
    common = _find_common_rows(facts, families, children)
    over = f", over all {lane_words(mpi=True)[1]}" if facts.lanes.mpi else ""
    return Candidate(
        title=_title(facts, count, rows["exe"][started]),
        cause=(
            f"Each costs {wording.seconds(float(granted.sum()) / count)}: the kernel copies a"
            f" process,{' loads a program and its libraries,' * bool(started.any())} and removes it"
            f" again.{_describe_common(facts, common)}"
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} starts by one process,"
                f" {wording.seconds(float(seconds.sum()))} of processor time in them{over}",
                starts=float(count),
                seconds=float(seconds.sum()),
            ),
        ),
        fixes=(
            code(
                "Do the work in the program itself: a function of the language (Python: instead of"
                " subprocess; C: instead of system and popen; shell: ${name##*/}, read, printf)."
            ),
            code(
                "Or start one program for all items: one awk, sed or grep -f over the whole file,"
                " xargs with many names per start, a worker that reads items from a pipe."
            ),
        ),
        claims=[
            Claim(lanes, COMPUTE, granted),
            *claim_all(facts, common, tuple(range(len(KINDS))), 1.0 - 1.0 / count),
        ],
        method=(
            "processor time of these processes outside I/O, the time of their calls on files that"
            " most of them open, and"
            f" {wording.seconds(idioms.measure_start())} for each start, as a program that does"
            " nothing needs on this machine (without a program: time in fork); at most the time in"
            " which any of them lived"
        ),
        functions=_STARTERS,
        processes=tuple(parents.tolist()),
    )


def _describe_common(facts: Facts, rows: Ints) -> str:
    """Return a sentence on the calls on files that most processes open; empty without them."""
    if not len(rows):
        return ""
    seconds = facts.cells[rows].sum(axis=1)
    place, took = Scene(facts, rows, seconds).place, wording.seconds(float(seconds.sum()))
    return f" Most of them open {place}: {took} in these calls."


def _title(facts: Facts, count: int, programs: Ints) -> str:
    """Return the title; ``programs``: those that were started, of ``count`` processes."""
    if not len(programs):
        return f"{wording.count(count)} processes forked for little work each"
    names = _name_programs(facts, programs)
    return f"{wording.count(count)} starts of programs for little work each: {names}"


def _measure_forks(facts: Facts, parents: Ints) -> float:
    """Return the seconds of parents in fork."""
    functions = facts.job.functions
    forks = facts.job.select_functions(("fork", "_Fork").__contains__)[functions["name"]]
    own = np.isin(functions["process"], parents)
    return float(functions["seconds"][forks & own].sum())


def _sum_by_lane(
    facts: Facts, images: Ints, seconds: Floats, starting: Floats
) -> tuple[Ints, Floats]:
    """Return the lanes of images, and the seconds that each lane would save without them: those in
    them and those to start them. Images that run at the same time, as in a pipeline, take the lane
    no more than the time in which any of them lives. Without ranks all are of one lane: a process
    that waits for another one lives at the same time, but does not work."""
    lane = facts.lanes.of_process[images]
    own = lane >= 0
    images, seconds, starting, lane = images[own], seconds[own], starting[own], lane[own]
    if not facts.lanes.mpi:
        lane = np.full_like(lane, lane.min(initial=0))
    lanes = np.unique(lane)
    cost = sums(lane, seconds + starting, facts.ranks)[lanes]
    cost /= find_running_shares(facts, lanes)  # processor time takes longer where others use them
    start = facts.job.processes["start"][images]
    life = Intervals(start - starting, start + image_seconds(facts.job)[images], lane)
    return lanes, np.minimum(cost, IntervalSet(life, facts.wall).measure(lanes, 0.0, facts.wall))


def _with_all_below(families: _Families, processes: Ints) -> Ints:
    """Return processes and all that they and their children have started."""
    found = level = processes
    while len(level):
        level = np.setdiff1d(np.flatnonzero(np.isin(families.parent, level)), found)
        found = np.union1d(found, level)
    return found


def _name_programs(facts: Facts, programs: Ints) -> str:
    names = _programs(facts)
    most = Counter(names[program] for program in programs.tolist()).most_common(_NAMED)
    worth = [(name, count) for name, count in most if count >= _WORTH_NAMING * len(programs)]
    return ", ".join(f"{name} {wording.count(count)}" for name, count in worth)


STORM = Rule(
    name="process-storm",
    remedy="doing the work in one process",
    sees="Short programs that are started again and again: for each line, item or step.",
    threshold=(
        f"A process starts at least {MANY_STARTS} others, each with at most"
        f" {wording.seconds(SHORT)} of processor time on average, with all processes that it"
        f" starts ({wording.seconds(SHORT_INTERPRETED)} with an interpreter such as Python)."
    ),
    estimate=(
        "Processor time of these processes outside I/O, time of their calls on files that most of"
        " them open, and for each start that of a program that"
        " does nothing (measured on this machine; without a program: time in fork); processes that"
        " run at the same time, as in a pipeline, cost at most the time in which any of them lives."
    ),
    advice="A function instead of a program, or one program for all items.",
    control="The same work in one process.",
    find=_process_storms,
    why_not="only the program decides which work it gives to other programs",
)
