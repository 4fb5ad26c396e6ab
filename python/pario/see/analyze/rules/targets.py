"""Rules about the placement of bytes: a slow target, few stripes for a big file, unaligned shared
writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pario import filesystems, wording
from pario.see.analyze.arrays import Floats, Ints, counts, ratio, sums
from pario.see.analyze.cells import MPIIO, READ, WRITE, find_rows
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import Claim, claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import Candidate, Rule, Scene, code, command, fact, scene, setting
from pario.see.analyze.rules.collective import sharers
from pario.see.analyze.rules.storage import are_covered, find_storage
from pario.see.analyze.stripes import Choice, Expected, choose, files_of
from pario.see.analyze.sweeps import load_sweeps

SLOW_FACTOR = 3.0
MIN_TARGETS = 4
MOST_MOVED = 3
UNALIGNED_SHARE = 0.5
LARGE_CALL = 16 * 1024
SMALL_PART = 0.1  # of a block
ALL_TARGETS = 8  # with all numbers from 0 on: the file system has no others
MORE_STRIPES = 2  # the least factor of stripes that is worth a change
_COLLECTIVE_FIX = setting(
    "hint romio_cb_write=enable, with collective calls: few aggregators write whole blocks; pieces"
    " as small as these cannot be aligned"
)
LOCKING = filesystems.names_with_range_locks()


def _slow_targets(facts: Facts) -> Iterator[Candidate]:
    moved = facts.column("bytes_written") + facts.column("bytes_read")
    seconds = facts.cells[:, READ] + facts.cells[:, WRITE]
    rows = np.flatnonzero(
        facts.stored
        & ~facts.mpiio
        & (moved > 0)
        & (seconds > 0)
        & (facts.job.files["layout"][facts.file] >= 0)
    )
    rows = (
        rows[
            [
                bool(facts.job.layouts[layout].targets)
                for layout in facts.job.files["layout"][facts.file[rows]]
            ]
        ]
        if len(rows)
        else rows
    )
    if len(rows) < 2 * MIN_TARGETS:
        return
    row, target = _placements(facts, rows)
    cost = seconds / np.maximum(moved, 1)
    slow = _slow(cost, row, target, float(np.median(cost[rows])))
    if len(slow) and len(np.unique(target)) >= MIN_TARGETS:
        hit = np.unique(row[np.isin(target, slow)])
        others = np.setdiff1d(rows, hit)
        if len(others) >= len(hit):
            yield _slow_target(facts, hit, others, slow, seconds, moved)


def _placements(facts: Facts, rows: Ints) -> tuple[Ints, Ints]:
    """Return pairs of row and target, as two arrays."""
    targets = [
        facts.job.layouts[layout].targets for layout in facts.job.files["layout"][facts.file[rows]]
    ]
    return np.repeat(rows, [len(own) for own in targets]), np.fromiter(
        (t for own in targets for t in own), np.int64
    )


def _slow(cost: Floats, row: Ints, target: Ints, usual: float) -> Ints:
    """Return the targets most of whose files take several times the usual time per byte."""
    numbers, place = np.unique(target, return_inverse=True)
    files = counts(place, len(numbers))
    slow = sums(place, cost[row] > SLOW_FACTOR * usual, len(numbers))
    return np.asarray(numbers[(files >= 2) & (slow >= 0.75 * files)])


def _slow_target(
    facts: Facts, hit: Ints, others: Ints, slow: Ints, seconds: Floats, moved: Floats
) -> Candidate:
    subject = Scene(facts, hit, seconds[hit])
    kind = facts.job.layouts[facts.job.files["layout"][facts.file[hit[0]]]].kind
    word = filesystems.of_kind(kind).target
    cost = float(np.median(seconds[others] / moved[others]))
    factor = float(np.median(seconds[hit] / moved[hit])) / cost
    usual = np.clip(cost * moved[hit] / seconds[hit], 0.0, 1.0)
    names = f"{word} {wording.ranks(slow.tolist())}"
    return subject.candidate(
        title=(
            f"{names} is slow: {wording.plural(len(subject.files), 'file')} on it take {factor:.0f}"
            " times as long as the others"
        ),
        cause=(
            "A target that is overloaded, rebuilding or failing holds up every rank whose file lies"
            " on it, and all others wait at the next meeting."
        ),
        confidence="high",
        evidence=(
            fact(
                f"files on {names}: up to {wording.seconds(float(seconds[hit].max()))} each, others"
                f" {wording.seconds(float(np.median(seconds[others])))} (median of"
                f" {wording.count(len(others))})",
                factor=factor,
                slowest=float(seconds[hit].max()),
            ),
            fact(
                f"{wording.rate(float(1 / (cost * factor)))} against"
                f" {wording.rate(float(1 / cost))} per file"
            ),
        ),
        fixes=(
            code(
                f"Tell the administrators: {names}, between the first and last access of this job."
                " Until it is repaired, keep new files off it (Lustre: lfs setstripe -i for a"
                " file, a pool without it for a directory)."
            ),
            *_moving(facts, subject, slow),
        ),
        claims=[
            claim for kind in (READ, WRITE) for claim in claim_all(facts, hit, (kind,), 1.0 - usual)
        ],
        method=(
            f"time of the slowest rank on files of {names} minus what their bytes take on the other"
            " targets (median)"
        ),
    )


def _moving(facts: Facts, subject: Scene, slow: Ints) -> list[Fix]:
    """Return repairs that copy the worst files that the job reads to targets that were not slow in
    this job, those with least bytes first. Files that it only writes need no copy."""
    read = facts.per_file(facts.column("bytes_read"))
    files = [file for file in subject.files if read[file] > 0][:MOST_MOVED]
    loads = _loads(facts, slow)
    commands = []
    for file in files:
        layout = facts.job.layouts[facts.job.files["layout"][file]]
        if layout.kind != "lustre" or len(loads) < layout.stripe_count:
            return []
        chosen = sorted(loads, key=lambda target: (loads[target], target))[: layout.stripe_count]
        for target in chosen:
            loads[target] += float(read[file]) / len(chosen)
        places = ",".join(map(str, chosen))
        words = ("lfs", "migrate", "-c", str(len(chosen)), "-o", places, facts.path(file))
        commands.append(command(*words))
    if not commands:
        return []
    return [
        code(
            "Copy files that many more runs will read to other targets; the copy reads each of them"
            " from the slow target once more. The worst:"
        ),
        *commands,
    ]


def _loads(facts: Facts, slow: Ints) -> dict[int, float]:
    """Return the bytes of the job on each target that was not slow."""
    moved = facts.per_file(facts.column("bytes_written") + facts.column("bytes_read"))
    loads: dict[int, float] = {}
    for file, number in enumerate(facts.job.files["layout"]):
        targets = facts.job.layouts[number].targets if number >= 0 else ()
        for target in targets:
            loads[target] = loads.get(target, 0.0) + float(moved[file]) / len(targets)
    return {target: load for target, load in loads.items() if target not in slow}


def _one_stripe(facts: Facts) -> Iterator[Candidate]:
    layout = facts.job.files["layout"]
    stripes = (
        np.array([own.stripe_count for own in facts.job.layouts] + [0])[layout]
        if len(layout)
        else layout
    )
    sweeps = load_sweeps()
    better = {}
    for file, expected in files_of(facts.job, _count_targets(facts)):
        if 0 < stripes[file] < expected.writers:
            now = replace(expected, stripes=int(stripes[file]))
            choice = choose(now, sweeps)
            if choice.count >= MORE_STRIPES * now.stripes:
                better[file] = (now, choice)
    moved = facts.column("bytes_written") + facts.column("bytes_read")
    mask = facts.stored & np.isin(facts.file, list(better)) & (moved > 0)
    if mask.any():
        subject = scene(facts, mask, facts.cells[:, READ] + facts.cells[:, WRITE])
        yield _stripe(facts, subject, *better[int(subject.files[0])])


def _count_targets(facts: Facts) -> int:
    """Return the number of storage targets, 0 if it is not known: a file on many targets that have
    all the numbers from 0 on lies on all of them."""
    used = {target for layout in facts.job.layouts for target in layout.targets}
    whole = any(len(set(layout.targets)) == len(used) for layout in facts.job.layouts)
    return len(used) if whole and len(used) >= ALL_TARGETS and max(used) < len(used) else 0


def _storage_share(facts: Facts, rows: Ints) -> Floats:
    """Return the part of the reads and writes of rows that is spent in storage: less than all in
    MPI-IO, if the log has the calls on storage."""
    seconds = facts.cells[rows][:, [READ, WRITE]].sum(axis=1)
    known = facts.mpiio[rows] & are_covered(facts)[facts.file[rows]]
    return np.where(known, np.minimum(ratio(find_storage(facts, rows).total, seconds), 1.0), 1.0)


def _stripe(facts: Facts, subject: Scene, expected: Expected, choice: Choice) -> Candidate:
    file, users, count, now = (
        int(subject.files[0]),
        expected.writers,
        choice.count,
        expected.stripes,
    )
    system = filesystems.of_kind(facts.job.layouts[facts.job.files["layout"][file]].kind)
    stripe = filesystems.shell_words(system.stripe, subject.directory, count, choice.unit >> 20)
    measured = (fact(choice.reason),) if choice.saves is not None else ()
    saved = 1.0 - now / min(count, users) if choice.saves is None else choice.saves
    shares = wording.plural(now, system.target)
    return subject.candidate(
        title=(
            f"{subject.place}: {wording.count(users)} ranks share"
            f" {f'one {system.target}' if now == 1 else shares}"
        ),
        cause=(
            f"The file has {'one stripe' if now == 1 else wording.plural(now, 'stripe')}, so"
            f" {'one storage target serves' if now == 1 else 'as many storage targets serve'} all"
            " ranks; the others stay idle."
        ),
        confidence="low" if choice.saves is None else "high",
        evidence=(
            fact(
                f"stripe count {now}, {wording.size(expected.size)} used by {users} ranks",
                stripes=count,
                unit_mib=choice.unit >> 20,
            ),
            *measured,
        ),
        fixes=(
            code(
                f"Spread new files over {count} {system.target}s (a file that exists"
                " keeps its layout: copy it):"
            ),
            *([command(*stripe)] if stripe else []),
            _striping_hints(count, choice.unit),
        ),
        claims=claim_all(
            facts, subject.rows, (READ, WRITE), saved * _storage_share(facts, subject.rows)
        ),
        method=(
            f"time in storage divided over {min(count, users)} targets instead of {now}"
            if choice.saves is None
            else "the share of the seconds that a sweep of stripes saved"
        ),
    )


def _striping_hints(count: int, unit: int = 4 << 20) -> Fix:
    """Return the repair by MPI-IO hints."""
    return setting(
        f"hints striping_factor={count}, striping_unit={unit} at MPI_File_open of a new file"
    )


def _unaligned_writes(facts: Facts) -> Iterator[Candidate]:
    writes, unaligned = facts.column("writes"), facts.column("unaligned_writes")
    locking = (
        np.isin(facts.filesystem_type, LOCKING)[facts.file]
        if len(facts.job.files)
        else facts.stored
    )
    mask = (
        facts.posix
        & locking
        & (unaligned > UNALIGNED_SHARE * writes)
        & (facts.write_size >= LARGE_CALL)
        & (facts.column("block_size") >= 4096)
    )
    mask &= sharers(facts, mask)[facts.file] >= 2
    if not mask.any() or not facts.has("alignment"):
        return
    seconds = facts.cells[:, WRITE] + facts.column("nested_write_time")
    subject = scene(facts, mask, seconds)
    rows, count = subject.rows, subject.total("unaligned_writes")
    block = int(facts.records["block_size"][rows].max())
    touched = np.minimum(facts.write_size[rows] / block + 1, 1e9)
    share = unaligned[rows] / np.maximum(writes[rows], 1) * np.minimum(1.0 / touched, 0.5)
    small = bool((facts.write_size[rows] < SMALL_PART * block).all())
    yield subject.candidate(
        title=(
            f"{wording.count(count)} writes to {subject.place} begin inside a"
            f" {wording.block(block)} block that other ranks may write, too"
        ),
        cause=(
            "Two ranks that share a block or stripe pass its lock to and fro, and the file system"
            " reads the rest of the block first."
        ),
        confidence="low",
        evidence=(
            fact(
                f"{wording.percent(count, float(writes[rows].sum()))} of the writes start off a"
                f" border of {wording.block(block)}",
                unaligned=count,
            ),
        ),
        fixes=(
            code(
                f"Start each rank's part at a multiple of {wording.block(block)} (HDF5:"
                f" H5Pset_alignment(fapl, 1048576, {block}); PnetCDF: nc_var_align_size)."
            ),
            *((_COLLECTIVE_FIX,) if small else (_striping_hints(4),)),
        ),
        claims=[
            Claim(rows, WRITE, facts.cells[rows, WRITE] * share),
            *_inside_calls(facts, rows, share),
        ],
        method="the part of the write time that belongs to blocks shared with a neighbour",
    )


def _inside_calls(facts: Facts, rows: Ints, share: Floats) -> list[Claim]:
    """Return claims of the MPI-IO calls that made the writes of rows."""
    records = facts.records
    above = find_rows(records, records["process"][rows], records["file"][rows], MPIIO)
    seconds = records["nested_write_time"][rows] * share
    return [Claim(above[above >= 0], WRITE, seconds[above >= 0])]


SLOW = Rule(
    name="slow-target",
    remedy="avoiding a slow storage target",
    sees="Files on one storage target that take several times as long as files elsewhere.",
    threshold=(
        f"Three quarters of a target's files take more than {SLOW_FACTOR:.0f} times the usual"
        f" seconds per byte; at least {MIN_TARGETS} targets, and fewer slow files than others."
    ),
    estimate=(
        "Time of the slowest rank on these files minus the time of their bytes on the other targets"
        " (median)."
    ),
    advice="Avoid the target; tell the administrators.",
    control="Files that take the same time on all targets.",
    find=_slow_targets,
)
ONE_STRIPE = Rule(
    name="one-stripe",
    remedy="spreading a file over more storage targets",
    sees="A big file of several ranks on a single storage target, or on few.",
    threshold=(
        "Fewer stripes than ranks, and a size for which a kept sweep or the rules of new files give"
        f" at least {MORE_STRIPES} times as many (docs/striping.md)."
    ),
    estimate=(
        "Time in storage, divided over the targets that the ranks could use; with a kept sweep, the"
        " share that it measured."
    ),
    advice="lfs setstripe, ceph.dir.layout, striping_factor.",
    control="The same file on several stripes.",
    find=_one_stripe,
    repairs=(repairs.STRIPES,),
)
UNALIGNED = Rule(
    name="unaligned-shared-writes",
    remedy="aligning writes to blocks",
    sees=(
        "Ranks that write large pieces of a shared file which begin inside a lock block or stripe."
    ),
    threshold=(
        f"More than {wording.share(UNALIGNED_SHARE)} of the writes of {LARGE_CALL >> 10} KiB or"
        f" more unaligned, two or more ranks, on a file system with locks ({', '.join(LOCKING)})."
    ),
    estimate=(
        "The share of the write time, also inside MPI-IO, that belongs to blocks shared with a"
        " neighbour."
    ),
    advice="Align each rank's part.",
    control="The same writes at block borders.",
    find=_unaligned_writes,
)
