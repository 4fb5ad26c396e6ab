"""Rules about collective MPI-IO: calls that should be collective, exchange, waiting."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze.arrays import Floats, Ints, Mask, counts, ratio, sums, unique_pairs
from pario.see.analyze.cells import POSIX, READS, WRITES, Direction
from pario.see.analyze.facts import Facts, compute_once
from pario.see.analyze.ledger import WAITING, Claim, claim_all
from pario.see.analyze.model import Fix
from pario.see.analyze.nesting import find_submitted_below
from pario.see.analyze.rules import repairs
from pario.see.analyze.rules.base import (
    Candidate,
    Rule,
    Scene,
    code,
    fact,
    scene,
    setting,
    sum_seconds,
)
from pario.see.analyze.rules.calling import find_running_shares
from pario.see.analyze.rules.small_calls import SMALL_CALL
from pario.see.analyze.rules.storage import Storage, find_storage
from pario.see.analyze.waiting import COMMUNICATION
from pario.see.tables.model import EVENT_KINDS, LAYERS

SMALL_INDEPENDENT = 1 << 20
MANY_CALLS = 50
CUT = 2.0  # pieces per call of calls that views cut
IN_A_ROW = 0.9  # of the calls that begin where the last one of their rank ended
DENSE = 0.5  # of a file's bytes written by all ranks together: their pieces lie side by side
COLLECTIVE_COST = 4.0
#: Seconds of a piece in an exchange, apart from its bytes: its place in lists. MPICH 5 needs 0.16
#: to 0.21 us of processor time for each piece of 8 and of 64 bytes, 0.39 to 0.47 of 256 bytes.
PIECE_SECONDS = 0.17e-6
LATE_CALLS, LATE_SHARE = 5, 0.8
EXCHANGE_SHARE = 0.3
EXCHANGE_RATE = 1e9
_DATA = tuple(EVENT_KINDS.index(kind) for kind in ("read", "write"))
COLLECTIVE_FIX = code(
    "Describe each rank's part as a file view (MPI_Type_create_subarray, MPI_File_set_view) and"
    " call MPI_File_write_all / read_all; HDF5: H5Pset_dxpl_mpio(..., H5FD_MPIO_COLLECTIVE);"
    " netCDF: nc_var_par_access(..., NC_COLLECTIVE)."
)


def sharers(facts: Facts, mask: Mask) -> Ints:
    """Return the number of ranks in the rows of a mask, per file."""
    rows = mask & (facts.lane >= 0)  # a rank may have rows of several layers
    own = counts(unique_pairs(facts.file[rows], facts.lane[rows])[0], len(facts.job.files))
    np.maximum.at(
        own, facts.file[mask & (facts.lane < 0)], facts.records["ranks"][mask & (facts.lane < 0)]
    )
    return own


def collective_share(facts: Facts, word: str) -> Floats:
    """Return the part of the time of each row's reads or writes in collective calls; of the calls
    if the log has no such time. A library that writes its own small records alone, as HDF5 does,
    makes more independent calls than collective ones, in hardly any time."""
    calls = ratio(facts.column(f"collective_{word}s"), facts.column(f"{word}s"))
    together = facts.column(f"collective_{word}_time")
    time = ratio(together, facts.column(f"{word}_time"))
    return np.where(together > 0, time, calls)


def independent_calls(facts: Facts, direction: Direction) -> Floats:
    """Return the number of calls per row that are not collective."""
    return facts.column(direction.calls) - facts.column(f"collective_{direction.calls}")


def pieces(facts: Facts, direction: Direction) -> Floats:
    """Return the number of independent MPI-IO calls per row, or of the library's calls if views cut
    a densely filled file into many pieces."""
    calls = independent_calls(facts, direction)
    below = facts.find_in_layer(np.arange(len(facts.records)), POSIX)
    nested = facts.records[f"nested_{direction.calls}"]
    split = np.where(facts.mpiio & (below >= 0), nested[below], 0)
    return np.where(dense(facts, direction)[facts.file], np.maximum(calls, split), calls)


def dense(facts: Facts, direction: Direction) -> Mask:
    """Return, per file, True if the ranks' pieces fill most of it."""
    extent = np.zeros(len(facts.job.files))
    np.maximum.at(extent, facts.file, facts.column(direction.end))
    filled = facts.per_file(facts.column(direction.bytes), facts.mpiio)
    return np.asarray(filled >= DENSE * extent)


def independent_function(facts: Facts, rows: Ints, word: str) -> str:
    """Return the name of the independent MPI-IO function that the processes of the rows call most,
    as it stands in the source; a general name if the log has none."""
    called = facts.job.select_functions(re.compile(rf"MPI_File_i?{word}(_at|_shared)?").fullmatch)
    functions = facts.job.functions
    own = np.isin(functions["process"], facts.records["process"][rows])
    own &= called[functions["name"]]
    if not own.any():
        return f"independent MPI-IO {word}"
    most = np.bincount(functions["name"][own], functions["calls"][own])
    return facts.job.function_names[int(np.argmax(most))]


def _missing_collectives(facts: Facts) -> Iterator[Candidate]:
    for direction in (WRITES, READS):
        mask = find_joinable(facts, direction)
        if mask.any():
            subject = scene(facts, mask, facts.cells[:, direction.kind])
            yield _independent(facts, subject, pieces(facts, direction), direction)


@compute_once
def find_joinable(facts: Facts, direction: Direction) -> Mask:
    """Return, per row, True for small independent calls of several ranks on one file: collective
    calls join them at a profit."""
    count = pieces(facts, direction)
    mask = (
        facts.mpiio
        & (collective_share(facts, direction.word) <= 0.5)
        & (count >= MANY_CALLS)
        & (ratio(facts.column(direction.bytes), count, np.inf) < SMALL_INDEPENDENT)
    )
    mask &= sharers(facts, mask)[facts.file] >= 2
    if direction is READS and _suit_sieving(facts, np.flatnonzero(mask), count):
        mask[:] = False
    return mask


def _suit_sieving(facts: Facts, rows: Ints, pieces: Floats) -> bool:
    """True for reads so small that their exchange would cost most of the seconds that it saves:
    one read of each rank through a view, by data sieving, needs none (tiny-independent-calls)."""
    took = sum_seconds(facts, rows, READS.kind)
    small = facts.column("bytes_read")[rows].sum() < SMALL_CALL * pieces[rows].sum()
    exchange = _exchange_seconds(facts, rows, pieces, READS)
    return bool(small and exchange.sum() > 0.5 * took)


PNETCDF = LAYERS.index("pnetcdf")


def _pnetcdf_variables(facts: Facts, rows: Ints, direction: Direction) -> list[str]:
    """Return the variables of the files of rows whose PnetCDF calls are independent."""
    alone = independent_calls(facts, direction) - facts.column("nonblocking_calls")
    found = facts.library & (facts.records["layer"] == PNETCDF) & (alone > 0)
    paths = sorted({facts.path(int(file)) for file in facts.file[found]})
    files = {facts.path(int(file)) for file in facts.file[rows]}
    return [path for path in paths if any(path.startswith(f"{file}:") for file in files)]


def _pnetcdf_fix(variables: list[str], direction: Direction) -> tuple[Fix, ...]:
    if not variables:
        return ()
    verb = "put" if direction is WRITES else "get"
    return (
        code(
            f"PnetCDF: ncmpi_{verb}_vara_all on all ranks, outside of ncmpi_begin_indep_data, for"
            f" {', '.join(map(wording.name, variables[:3]))}; or ncmpi_i{verb}_vara for each part"
            " and one ncmpi_wait_all."
        ),
    )


def _whole_part(word: str) -> Fix:
    return code(
        f"Collect the values of a rank in an array, and {word} 1 MiB or more of them with each"
        f" call, best of all the whole part with one MPI_File_{word}_at_all."
    )


def _independent(facts: Facts, subject: Scene, pieces: Floats, direction: Direction) -> Candidate:
    rows, kind, word = subject.rows, direction.kind, direction.word
    calls = float(independent_calls(facts, direction)[rows].sum())
    count, moved = float(pieces[rows].sum()), facts.records[direction.bytes][rows]
    name = independent_function(facts, rows, word)
    called = wording.plural(calls, f"{name} call")
    cut = count >= CUT * calls
    in_a_row = _are_in_a_row(facts, rows, direction)
    exchanged = _exchange_seconds(facts, rows, pieces, direction)
    together = float(facts.column(f"collective_{word}s")[rows].sum())
    among = (
        f"beside {wording.plural(together, 'collective one')}" if together else "none collective"
    )
    made = f" that MPI-IO made of {called} through file views" if cut else ""
    became = f"{called} became {wording.count(count)} {word}s" if cut else called
    return subject.candidate(
        title=(
            f"{became} of {wording.size(float(moved.sum()) / max(count + together, 1))}"
            f" {direction.preposition} {subject.place}, {among}"
        ),
        cause=(
            f"Each rank {word}s a part of the file in small pieces, one after the other, and"
            " passes through the MPI library for each of them."
            if in_a_row
            else "The ranks' small pieces lie side by side in one file; a collective call would"
            " join them into a few large ones."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} {word}s{made},"
                f" {wording.seconds(sum_seconds(facts, rows, kind))}{facts.over_all}",
                pieces=count,
                **{direction.calls: calls},
            ),
        ),
        fixes=(
            *_pnetcdf_fix(_pnetcdf_variables(facts, rows, direction), direction),
            *((_whole_part(word),) if in_a_row else ()),
            COLLECTIVE_FIX,
            setting(
                "hint romio_cb_write=enable (romio_cb_read for reads), once the calls are"
                " collective"
            ),
        ),
        claims=[
            Claim(rows, kind, facts.cells[rows, kind] - exchanged),
            *_claim_requests(facts, rows, kind),
        ],
        method=(
            f"time of the calls minus {COLLECTIVE_COST:.0f} times that of their bytes at the rate"
            " of large calls"
            + ("" if in_a_row else f" and {wording.seconds(PIECE_SECONDS)} for each piece")
            + ": the price of the exchange"
        ),
    )


def _claim_requests(facts: Facts, rows: Ints, kind: int) -> list[Claim]:
    """Return the claim of the asynchronous requests by which MPI-IO makes nonblocking calls."""
    below = facts.find_below(rows)[1]
    below = below[find_submitted_below(facts.job)[below]]
    return claim_all(facts, below, (kind,)) if len(below) else []


def _are_in_a_row(facts: Facts, rows: Ints, direction: Direction) -> bool:
    """True if each rank's pieces lie one after the other: no exchange has to join them."""
    in_a_row = facts.column(f"consecutive_{direction.word}s")[rows].sum()
    return bool(in_a_row >= IN_A_ROW * independent_calls(facts, direction)[rows].sum())


def _exchange_seconds(facts: Facts, rows: Ints, pieces: Floats, direction: Direction) -> Floats:
    """Return the seconds in which collective calls would exchange the pieces of rows; longer for
    ranks that wait for processors, as their calls are."""
    cost = COLLECTIVE_COST * facts.reference.cost(rows, direction)
    if _are_in_a_row(facts, rows, direction):
        return np.asarray(cost)
    return np.asarray(
        cost + PIECE_SECONDS * pieces[rows] / find_running_shares(facts, facts.lane[rows])
    )


def _exchange(facts: Facts) -> Iterator[Candidate]:
    if len(facts.job.hosts) == 1:
        return
    for direction in (WRITES, READS):
        mask = facts.mpiio & (collective_share(facts, direction.word) > 0.5)
        rows = np.flatnonzero(mask)
        took, storage = facts.cells[rows, direction.kind], find_storage(facts, rows)
        stored = storage.inside(facts, rows, direction)
        exchange = took - stored
        heavy = (stored > 0) & (exchange > EXCHANGE_SHARE * took)
        if heavy.any():
            yield _slow_exchange(
                facts, rows[heavy], exchange[heavy], storage.select(heavy), direction
            )


def _slow_exchange(
    facts: Facts, rows: Ints, exchange: Floats, storage: Storage, direction: Direction
) -> Candidate:
    kind, word = direction.kind, direction.word
    subject = Scene(facts, rows, exchange)
    stored = storage.inside(facts, rows, direction)
    own = facts.mpiio & np.isin(facts.file, subject.files)
    moved = facts.column(direction.bytes)[own].sum()
    per_writer = float(moved / storage.processes.sum()) / EXCHANGE_RATE
    waiting = "" if facts.has("sync") else " or waiting for other ranks"
    lanes = facts.lane[rows]
    among = "" if (lanes < 0).any() else wording.plural(len(np.unique(lanes)), "aggregator") + ": "
    return subject.candidate(
        title=(
            f"collective {word}s of {subject.place} spend"
            f" {wording.percent(float(exchange.sum()), float((exchange + stored).sum()))} of their"
            f" time exchanging data{waiting}, not storing it"
        ),
        cause=(
            "Before anything reaches the file, all ranks send their pieces to a few aggregators,"
            " and these do not write meanwhile."
            if direction is WRITES
            else "A few aggregators read from the file, and send each rank its pieces afterwards."
        ),
        confidence="low",
        evidence=(
            fact(
                f"{among}{wording.seconds(float(exchange.sum()))} in exchange{waiting},"
                f" {wording.seconds(float(stored.sum()))} in storage",
                exchange=float(exchange.sum()),
                storage=float(stored.sum()),
            ),
        ),
        fixes=(
            setting(
                "hint cb_nodes: at least one aggregator per node (or per stripe target);"
                " cb_buffer_size=16777216"
            ),
            setting(
                f"hint romio_cb_{word}=disable where each rank's part is already one large piece (1"
                " MiB or more)"
            ),
            code(
                "Let each rank own whole rows or planes, so that pieces are large, before the"
                " collective call."
            ),
        ),
        claims=[Claim(rows, kind, exchange - per_writer * storage.scale)],
        method=(
            "aggregators' time in collective calls outside storage, minus their bytes at"
            f" {wording.rate(EXCHANGE_RATE)}"
        ),
    )


def _late_arrivals(facts: Facts) -> Iterator[Candidate]:
    """Find waiting in collective reads and writes for a rank that is nearly always the last, and
    not because of its I/O."""
    waits, events = facts.times.waits, facts.job.events[facts.times.waits.event]
    chosen = np.flatnonzero((events["layer"] != COMMUNICATION) & np.isin(events["kind"], _DATA))
    meetings, first = np.unique(waits.last_start[chosen], return_index=True)
    times_last = counts(waits.last_lane[chosen][first], facts.ranks)
    worst = int(np.argmax(times_last))
    if len(meetings) < LATE_CALLS or times_last[worst] < LATE_SHARE * len(meetings):
        return
    chosen = chosen[waits.last_lane[chosen] == worst]
    rows = np.flatnonzero(facts.mpiio & np.isin(facts.file, np.unique(events["file"][chosen])))
    if len(rows):
        yield _late(
            facts, Scene(facts, rows, facts.cells[rows].sum(axis=1)), worst, chosen, len(meetings)
        )


def _late(facts: Facts, subject: Scene, worst: int, chosen: Ints, calls: int) -> Candidate:
    waits = facts.times.waits
    seconds, start = waits.seconds[chosen], waits.start[chosen]
    busy = facts.times.between(waits.last_lane[chosen], start, start + seconds).io
    lost = sums(waits.lane[chosen], np.maximum(seconds - busy, 0.0), facts.ranks)
    imbalance = np.minimum(lost, _more_work(facts, worst))
    lost = np.maximum(lost - _queue_seconds(facts, worst), imbalance)
    return subject.candidate(
        title=(
            f"rank {worst} comes late to collective I/O on {subject.place}: the others wait"
            f" {wording.seconds(float(lost.mean()))} (mean)"
        ),
        cause=(
            "A collective call begins when the last rank arrives: computation delays this rank,"
            " not the storage."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"rank {worst} is the last in most of {wording.plural(calls, 'call')} with waiting",
                calls=calls,
            ),
            fact(
                f"waiting for it: up to {wording.seconds(float(lost.max()))} per rank",
                mean=float(lost.mean()),
            ),
        ),
        fixes=(
            code(
                "Balance the work between outputs; or start the output with MPI_File_iwrite_all and"
                " go on computing."
            ),
        ),
        claims=[Claim(np.arange(facts.ranks), WAITING, lost)],
        **_find_callers(facts, waits.event[chosen]),
        method=(
            f"mean over ranks of the matched waiting for rank {worst} in collective MPI-IO calls,"
            " without waiting for its I/O and for processors"
        ),
    )


def _find_callers(facts: Facts, events: Ints) -> dict[str, tuple[str, ...] | tuple[int, ...]]:
    """Return the functions and processes of the calls of events, whose lines are those of a
    finding."""
    calls = facts.job.events[events]
    names = {facts.job.function_names[number] for number in calls["function"].tolist()}
    return {
        "functions": tuple(sorted(names)),
        "processes": tuple(np.unique(calls["process"]).tolist()),
    }


def _queue_seconds(facts: Facts, lane: int) -> float:
    """Return the seconds in which a rank waited for a processor: no change of the program saves
    these."""
    own = facts.job.processes[facts.lanes.of_process == lane]
    return 1e-9 * float(np.maximum(own["run_queue_delay"], 0).max(initial=0))


def _more_work(facts: Facts, lane: int) -> Floats:
    """Return, per rank, the seconds that a late rank computes longer because it has more work:
    ranks with the same work that wait for processors differ in their waiting alone."""
    times, running = facts.times.lane_times, find_running_shares(facts, np.arange(facts.ranks))
    rest = facts.wall - times.io - times.waiting - times.communication
    work = np.maximum(rest, 0.0) * running
    return np.asarray(np.maximum(work[lane] - work, 0.0) / float(running[lane]))


MISSING = Rule(
    name="missing-collectives",
    remedy="making small MPI-IO calls collective",
    sees="Ranks that each write small pieces of a shared file with independent MPI-IO calls.",
    threshold=(
        f"At least {MANY_CALLS} independent calls of less than {SMALL_INDEPENDENT >> 20} MiB "
        "per rank on a file of two or more ranks; calls through a view count as the pieces of the "
        f"library if at least {wording.share(DENSE)} of the file is filled."
    ),
    estimate=(
        "Time of the calls minus four times the time of their bytes at the reference rate, and"
        f" {wording.seconds(PIECE_SECONDS)} for each piece that is not next to the one before (the"
        " cost of exchanging small pieces)."
    ),
    advice="A file view and collective calls.",
    control="One collective call per step through a view.",
    find=_missing_collectives,
    by_calls=True,
    repairs=repairs.SMALL_INDEPENDENT,
)
EXCHANGE = Rule(
    name="collective-exchange",
    remedy="exchanging less data in collective I/O",
    sees="Collective calls whose time goes into moving data between ranks.",
    threshold=(
        f"More than {wording.share(EXCHANGE_SHARE)} of the aggregators' time in collective calls is"
        " outside POSIX calls and not waiting for ranks to arrive; not on a single host."
    ),
    estimate=f"That time minus the bytes per aggregator at {wording.rate(EXCHANGE_RATE)}.",
    advice=(
        "pario's MPI-IO, more aggregators, larger pieces per rank, or no collective buffering where"
        " pieces are large."
    ),
    control="A collective write of large contiguous parts that spends its time in POSIX writes.",
    find=_exchange,
    repairs=(repairs.OWN_MPIIO,),
)
LATE = Rule(
    name="collective-waiting",
    remedy="balancing the work before collective I/O",
    sees="A rank that arrives late at collective I/O again and again while all others wait.",
    threshold=(
        f"The same rank is the last in {wording.share(LATE_SHARE)} or more of at least {LATE_CALLS}"
        " collective reads and writes with waiting."
    ),
    estimate=(
        "Matched waiting for that rank (mean over ranks), without waiting for its I/O and for"
        " processors."
    ),
    advice="Balance the work, or use non-blocking collective I/O.",
    control="Ranks that arrive together, or late in turn.",
    find=_late_arrivals,
)
