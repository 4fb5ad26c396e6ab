"""Rules about how ranks share the work: one for all, all for one, stragglers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Mask, counts, ratio, sums
from pario.see.analyze.cells import READ, READS, WRITE, WRITES, Direction
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMMUNICATION, Claim, claim_all
from pario.see.analyze.model import Evidence
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    fact,
    scene,
    sum_seconds,
)
from pario.see.analyze.rules.broadcasts import is_broadcast
from pario.see.analyze.rules.imports import find_packages

ALMOST_ALL = 0.9
WHOLE = 0.8
JOINED = 0.5  # bytes written for each byte read of other ranks' files
ENOUGH_BYTES = 8 << 20
MANY_MESSAGES = 10_000  # that the one rank receives
PICKLED = 5.0  # bytes of messages for each byte written: names and types of objects
ANSWERED = 0.1  # messages sent for each one received: more are no collection of data
_JOIN_MESSAGES = code(
    "Send many records with one message: lists of them, or arrays (mpi4py: Send and Gatherv pass"
    " buffers without pickling); or let every rank write a file of its own."
)
_RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv")
_SENDS = ("MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Issend")
USEFUL_WRITERS = 16
STRAGGLER_FACTOR = 2.0


def _one_rank_for_all(facts: Facts) -> Iterator[Candidate]:
    if facts.ranks < 2 or not facts.lanes.mpi:
        return
    yield from _find_joins(facts)
    if not facts.has("per_rank"):
        return
    for direction in (WRITES, READS):
        own = facts.stored & (facts.lane >= 0)
        moved = facts.asked_bytes(direction.bytes)
        if direction is READS:  # a rank that reads its own output does not read for the others
            moved = np.where(_are_own_output(facts), 0.0, moved)
        by_rank = sums(facts.lane[own], moved[own], facts.ranks)
        total = float(by_rank.sum() + moved[facts.stored & (facts.lane < 0)].sum())
        rank = int(np.argmax(by_rank))
        collected = 0.0
        if direction is WRITES:
            collected = _count_collected(facts, rank, float(by_rank[rank]))
        if (
            (by_rank[rank] >= ENOUGH_BYTES or collected)
            and by_rank[rank] > ALMOST_ALL * total
            and not (direction is READS and is_broadcast(facts, rank, float(by_rank[rank])))
        ):
            seconds = facts.cells[:, direction.kind]
            subject = scene(facts, own & (facts.lane == rank) & (seconds > 0), seconds)
            yield _one_rank(subject, rank, by_rank, direction, collected)


def _count_collected(facts: Facts, rank: int, moved: float) -> float:
    """Return the messages in which a rank receives the bytes that it writes, such as objects of
    mpi4py; 0 if they are few, or if it answers many of them."""
    table = facts.job.functions
    own = (facts.lanes.of(table["process"]) == rank) & (table["category"] == "p2p")

    def add_up(names: tuple[str, ...], column: str) -> float:
        chosen = own & facts.job.select_functions(names.__contains__)[table["name"]]
        return float(table[column][chosen].sum())

    calls, size = (add_up(_RECEIVES, column) for column in ("calls", "bytes"))
    few = moved / facts.ranks <= size <= PICKLED * moved
    many = calls >= MANY_MESSAGES and add_up(_SENDS, "calls") <= ANSWERED * calls
    return calls if many and few else 0.0


def _are_own_output(facts: Facts) -> Mask:
    """True for rows of files that their rank alone has written."""
    written = np.where(facts.stored & (facts.lane >= 0), facts.asked_bytes("bytes_written"), 0.0)
    key = facts.file * facts.ranks + np.maximum(facts.lane, 0)
    mine = sums(key, written, len(facts.job.files) * facts.ranks)[key]
    return np.asarray((mine > 0) & (mine >= facts.per_file(written, facts.stored)[facts.file]))


def _one_rank(
    subject: Scene, rank: int, by_rank: Floats, direction: Direction, collected: float
) -> Candidate:
    """Return the finding; ``collected``: the messages in which the rank receives the bytes, if
    they are many."""
    facts, kind, word = subject.facts, direction.kind, direction.word
    useful = min(facts.ranks, USEFUL_WRITERS)
    moved, share = float(by_rank[rank]), wording.percent(float(by_rank[rank]), float(by_rank.sum()))
    others = wording.plural(facts.ranks - 1, "rank")
    return subject.candidate(
        title=(
            f"rank {rank} {word}s {share} of all bytes ({wording.size(moved)}) for {facts.ranks}"
            " ranks"
        ),
        cause=(
            f"The bytes arrive in {wording.count(collected)} messages, each of which takes time of"
            " both ranks regardless of its bytes."
            if collected
            else "One process uses one process's bandwidth, and the data pass through it, while"
            f" {others} {'waits' if facts.ranks == 2 else 'wait'}."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"rank {rank} {word}s {wording.size(moved)} in"
                f" {wording.seconds(sum_seconds(facts, subject.rows, kind))}, the others together"
                f" {wording.size(float(by_rank.sum() - moved))}",
                share=moved / float(by_rank.sum()),
                **{direction.calls: float(subject.total(direction.calls))},
            ),
            _describe_waiting(facts),
        ),
        fixes=(
            *((_JOIN_MESSAGES,) if collected else ()),
            code(
                f"Let every rank {word} its own part of the file: MPI_File_{word}_at_all with a"
                " subarray view, or HDF5 with H5Pset_fapl_mpio and H5Pset_dxpl_mpio(...,"
                " H5FD_MPIO_COLLECTIVE)."
            ),
            code("Or a file per node or per rank, where the readers can live with that."),
        ),
        claims=[
            *claim_all(facts, subject.rows, (kind,), 1.0 - 1.0 / useful),
            _transfers(facts, rank, moved, PICKLED if collected else 1.0),
        ],
        method=(
            f"time of rank {rank} in these calls divided among {useful} ranks, and the time of the"
            " ranks in the messages that carry the data"
        ),
    )


def _find_joins(facts: Facts) -> Iterator[Candidate]:
    """Find the rank that reads the files of the others to write their bytes once more."""
    if facts.ranks < 2 or not facts.lanes.mpi:
        return
    own = facts.stored & (facts.lane >= 0)
    read, written = facts.asked_bytes("bytes_read"), facts.asked_bytes("bytes_written")
    by_all = facts.per_file(written, facts.stored)
    lane = np.maximum(facts.lane, 0)
    key = facts.file * facts.ranks + lane
    mine = sums(key[own], written[own], len(by_all) * facts.ranks)[key]
    foreign = own & (read > 0) & (by_all[facts.file] > mine)
    by_rank = sums(lane[foreign], read[foreign], facts.ranks)
    rank = int(np.argmax(by_rank))
    target = own & (lane == rank) & (written > 0) & (by_all[facts.file] <= mine) & (read == 0)
    output = float(written[target].sum())
    enough = by_rank[rank] >= ENOUGH_BYTES and by_rank[rank] > ALMOST_ALL * by_rank.sum()
    if enough and output >= JOINED * by_rank[rank]:
        source = own & (lane == rank) & (read > 0) & (foreign | (mine > 0))
        again = min(float(read[source].sum()) / output, 1.0)
        seconds = np.where(source, facts.cells[:, READ], 0.0)
        subject = scene(facts, source | target, seconds + target * facts.cells[:, WRITE])
        yield _join(subject, rank, float(by_rank[rank]), (source, target, again))


def _join(subject: Scene, rank: int, moved: float, parts: tuple[Mask, Mask, float]) -> Candidate:
    """Return the finding; ``parts``: rows that are read and rows that are written, and the share
    of the latter that was read."""
    facts, (source, target, again) = subject.facts, parts
    took = float(facts.cells[source, READ].sum() + facts.cells[target, WRITE].sum())
    return subject.candidate(
        title=(
            f"rank {rank} joins {wording.size(moved)} that other ranks have written to files of"
            " their own"
        ),
        cause=(
            "The bytes are written twice and read once, and the second time by one process, while"
            " the others wait."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.seconds(took)} in these reads and writes of rank {rank}",
                bytes=moved,
                seconds=took,
            ),
            _describe_waiting(facts),
        ),
        fixes=(
            code(
                "Write one file together: MPI_File_write_at_all with the offset of each rank's part"
                " (MPI_Exscan of the sizes), or HDF5 with H5Pset_fapl_mpio."
            ),
            code("Or leave a file per rank, where the readers can live with that."),
        ),
        claims=[
            *claim_all(facts, np.flatnonzero(source), (READ,)),
            *claim_all(facts, np.flatnonzero(target), (WRITE,), again),
        ],
        method=f"time of rank {rank} in reads of the parts and in writes of their bytes",
    )


def _transfers(facts: Facts, rank: int, moved: float, each: float) -> Claim:
    """Claim the communication that carries the data, in proportion to their part of the bytes of
    the functions: of the rank, and of the others, which wait inside their messages for it.
    ``each``: the most bytes of messages for each byte of the file."""
    table, lanes = facts.job.functions, np.arange(facts.ranks)
    of = facts.lanes.of(table["process"])
    talk = np.isin(table["category"], ("p2p", "collective", "rma")) & (of >= 0)
    carried = sums(of[talk], table["bytes"][talk].astype(float), facts.ranks)
    data = np.where(lanes == rank, moved, moved / facts.ranks)
    least = 0.5 * data * np.where(lanes == rank, (facts.ranks - 1) / facts.ranks, 1.0)
    known = np.where(carried >= least, np.minimum(ratio(each * data, carried, 0.0), 1.0), 0.0)
    known *= known[rank] > 0
    return Claim(lanes, COMMUNICATION, facts.times.lane_times.communication * known)


def _describe_waiting(facts: Facts) -> Evidence:
    waiting = float(np.median(facts.times.lane_times.waiting))
    return fact(f"ranks wait {wording.seconds(waiting)} for others (median)", waiting=waiting)


def _all_read_one(facts: Facts) -> Iterator[Candidate]:
    mask, size = find_common_reads(facts)
    if mask.any():
        yield _all_readers(facts, scene(facts, mask, facts.cells.sum(axis=1)), size)


def find_common_reads(facts: Facts) -> tuple[Mask, Floats]:
    """Return the rows of files that (nearly) all ranks read as a whole and none writes, and the
    size of each file."""
    reads = (
        facts.stored
        & ~facts.mpiio
        & (facts.reads > 0)
        & (facts.column("bytes_written") == 0)
        & (facts.column("bytes_read") > 0)
    )
    size = np.zeros(len(facts.job.files))
    if facts.ranks < 2 or not facts.lanes.mpi:
        return np.zeros_like(reads), size
    np.maximum.at(size, facts.file[reads], facts.column("end_read")[reads])
    many = np.maximum(facts.column("ranks"), 1)
    whole = (facts.read_extent >= WHOLE * size[facts.file]) & (
        facts.column("bytes_read") >= WHOLE * size[facts.file] * many
    )
    readers = counts(facts.file[reads & whole & (facts.lane >= 0)], len(facts.job.files))
    shared = reads & (facts.lane < 0)
    np.maximum.at(readers, facts.file[shared], facts.records["ranks"][shared])
    common = readers[facts.file] >= max(2, 0.75 * facts.ranks)
    return reads & whole & common, size


def _all_readers(facts: Facts, subject: Scene, size: Floats) -> Candidate:
    kinds = tuple(range(facts.cells.shape[1]))
    took = float(facts.cells[subject.rows].sum())
    moved, unique = subject.total("bytes_read"), float(size[subject.files].sum())
    return subject.candidate(
        title=f"all {facts.ranks} ranks read the same {wording.size(unique)}: {subject.place}",
        cause=(
            f"{facts.ranks} ranks ask the file system for the same bytes; one read and a broadcast"
            " moves them once."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.size(moved)} read of {wording.size(unique)},"
                f" {wording.seconds(took)}{facts.over_all}",
                bytes=moved,
            ),
        ),
        fixes=(
            code(
                "Import before starting workers: forked processes have the modules already; or"
                " install the software on a local disk, or in one image file (SquashFS)."
            )
            if find_packages(facts)[subject.rows].all()
            else code(
                "Where a rank needs a part, let it read this part. Where all need all: read on rank"
                " 0 and MPI_Bcast (HDF5: H5Pset_all_coll_metadata_ops; Fortran namelists: read on"
                " rank 0, broadcast)."
            ),
        ),
        claims=claim_all(facts, subject.rows, kinds, 1.0 - 1.0 / facts.ranks),
        method=(
            "time of the ranks on these files, less one rank's share of it: storage serves the"
            " readers one after the other"
        ),
    )


def _stragglers(facts: Facts) -> Iterator[Candidate]:
    if facts.ranks < 4 or not facts.lanes.mpi or not facts.has("per_rank"):
        return
    own = facts.stored & (facts.lane >= 0)
    moved = facts.column("bytes_written") + facts.column("bytes_read")
    seconds = facts.cells[:, READ] + facts.cells[:, WRITE]
    by_rank = sums(facts.lane[own], seconds[own], facts.ranks)
    amount = sums(facts.lane[own], moved[own], facts.ranks)
    usual, bytes_each = float(np.median(by_rank)), float(np.median(amount))
    slow = (by_rank > STRAGGLER_FACTOR * usual) & (amount < 2 * bytes_each) & (usual > 0)
    if slow.any() and slow.sum() <= max(1, facts.ranks // 4):
        mask = own & slow[np.maximum(facts.lane, 0)]
        excess = np.where(slow, 1.0 - usual / np.maximum(by_rank, 1e-12), 0.0)[
            np.maximum(facts.lane, 0)
        ]
        yield _straggler(facts, scene(facts, mask, seconds), by_rank, usual, excess)


def _straggler(
    facts: Facts, subject: Scene, by_rank: Floats, usual: float, excess: Floats
) -> Candidate:
    worst, rows = int(np.argmax(by_rank)), subject.rows
    hosts = facts.job.processes["host"][facts.records["process"][rows]]
    where = ", ".join(
        sorted({facts.job.hosts[host] for host in hosts.tolist() if host < len(facts.job.hosts)})[
            :4
        ]
    )
    return subject.candidate(
        title=(
            f"rank {worst} needs {by_rank[worst] / usual:.2g} times as long as the others for the"
            " same amount of I/O"
        ),
        cause=(
            "One slow rank holds up all others at the next meeting; its node, network link or"
            " storage target is slower or shared."
        ),
        confidence="low",
        evidence=(
            fact(
                f"rank {worst}: {wording.seconds(float(by_rank[worst]))} in reads and writes,"
                f" median {wording.seconds(usual)}",
                factor=float(by_rank[worst] / usual),
            ),
            fact(f"on {where}" if where else "host not known"),
        ),
        fixes=(
            code(
                "Look at that node and at its other programs; run again: if another rank is slow"
                " then, the storage is shared with other jobs."
            ),
        ),
        claims=[
            Claim(rows, kind, facts.cells[rows, kind] * excess[rows]) for kind in (READ, WRITE)
        ],
        method="time of the slow ranks' reads and writes beyond the median rank's",
    )


ALL_READ_ONE = Rule(
    name="all-ranks-read-one-file",
    remedy="reading on one rank and broadcasting",
    sees="Every rank reads the whole of the same file.",
    threshold=(
        f"Three quarters of the ranks (at least 2) read {wording.share(WHOLE)} or more of a file"
        " that they do not write."
    ),
    estimate=(
        "The ranks' time on the files minus one rank's share: storage serves the readers one after"
        " the other."
    ),
    advice="Read on one rank and broadcast.",
    control="Rank 0 reads and broadcasts.",
    find=_all_read_one,
    why_not="each rank asks for the whole file",
    repairs=(repairs.READ_ONCE,),
)
ONE_RANK = Rule(
    name="one-rank-for-all",
    remedy="letting every rank do its own I/O",
    sees="One rank moves (nearly) all bytes while the others wait.",
    threshold=(
        f"More than {wording.share(ALMOST_ALL)} of all bytes, at least {ENOUGH_BYTES >> 20} MiB"
        f" (or fewer that the writer receives in {MANY_MESSAGES:,} messages or more), in a job of 2"
        " or more ranks; not bytes read that the rank broadcasts: all ranks need them."
    ),
    estimate=(
        f"That rank's time in the calls divided among the ranks (at most {USEFUL_WRITERS}), and the"
        " time of all ranks in the messages that carry the data."
    ),
    advice="Let every rank do its own part, collectively.",
    control="The same bytes written by all ranks.",
    find=_one_rank_for_all,
    why_not=(
        "the data are in other ranks' memory, and only the program knows their places in the file"
    ),
    repairs=(repairs.SMALL_INDEPENDENT[0],),
)
STRAGGLER = Rule(
    name="straggler",
    remedy="finding out why a rank is slow",
    sees="A few ranks that take much longer than the others for the same amount of I/O.",
    threshold=(
        f"At least 4 ranks, at most a quarter of which take {STRAGGLER_FACTOR:.0f} times the"
        " median's time for less than twice its bytes."
    ),
    estimate="Time of the slow ranks' reads and writes minus the median rank's time.",
    advice="Check the node; run again.",
    control="Ranks that take about the same time.",
    find=_stragglers,
)
