"""The table of functions: from the log's counters by function, otherwise from its counters by
file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario.see.analyze.arrays import Floats, Mask, Table, sums
from pario.see.analyze.cells import KINDS, POSIX
from pario.see.analyze.counted import PEERS
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import FunctionRow
from pario.see.analyze.scope import IN_MPI, IN_MPI_IO
from pario.see.tables.model import LAYER_NAMES, LAYERS

#: The row of all waiting for other ranks: in barriers, and before the last rank arrives.
WAITING = "waiting for other ranks"
#: Kind of call, and its counters of calls and bytes.
COUNTED = (
    ("read", "reads", "bytes_read"),
    ("write", "writes", "bytes_written"),
    ("open", "opens", ""),
    ("close", "closes", ""),
    ("seek", "seeks", ""),
    ("stat", "stats", ""),
    ("sync", "syncs", ""),
    ("flush", "flushes", ""),
    ("map", "maps", ""),
    ("list", "lists", ""),
    ("other", "others", ""),
)


def functions(facts: Facts) -> tuple[FunctionRow, ...]:
    """Return calls and seconds by function, most seconds first; with MPI, whose libraries wait for
    events in threads of their own, those of waiting for other processes last."""
    by_function = np.isin(facts.job.functions["category"], LAYERS).any()
    source = [
        *_read_function_counters(facts),
        *(() if by_function else _read_file_counters(facts)),
    ]
    rows = (*source, *_waiting_row(facts))
    last = PEERS if facts.lanes.mpi else ""
    return tuple(sorted(rows, key=lambda row: (row.category == last, -row.seconds, row.name)))


def _waiting_row(facts: Facts) -> Iterator[FunctionRow]:
    """Yield a row with the waiting for other ranks, which is a part of the rows of MPI calls."""
    by_lane = facts.times.lane_times.waiting
    if not facts.lanes.mpi or not by_lane.any():
        return
    yield _row(
        facts,
        WAITING,
        "waiting",
        by_lane,
        busiest=by_lane,
        calls=len(facts.times.waits.lane),
        bytes=0,
        waiting=float(by_lane.sum()),
        inside={"MPI": float(by_lane.sum())},
    )


def _read_function_counters(facts: Facts) -> Iterator[FunctionRow]:
    names = facts.job.function_names
    table = _join_copies(facts)
    waiting, inside = (
        _waiting(facts),
        {"MPI-IO": _inside(facts, IN_MPI_IO), "MPI": _inside(facts, IN_MPI)},
    )
    order = np.argsort(table["name"], kind="stable")
    for rows in (
        np.split(table[order], np.flatnonzero(np.diff(table["name"][order])) + 1)
        if len(table)
        else ()
    ):
        number = int(rows["name"][0])
        by_lane = sums(facts.lanes.of(rows["process"]), rows["seconds"], facts.ranks)
        yield _row(
            facts,
            names[number],
            str(rows["category"][0]),
            by_lane,
            busiest=_busiest_threads(facts, rows),
            calls=int(rows["calls"].sum()),
            bytes=int(rows["bytes"].sum()),
            waiting=float(waiting[number]),
            inside={word: float(seconds[number]) for word, seconds in inside.items()},
        )


def _join_copies(facts: Facts) -> Table:
    """Return the counters of functions that were called. The log counts a copy within the kernel
    twice, with half of its time on the file that is read (``sendfile_source``) and half on the one
    that is written: here it is one call."""
    table, names = facts.job.functions, facts.job.function_names
    table = table[table["calls"] > 0]
    called = {names[number]: int(number) for number in np.unique(table["name"])}
    for name, number in called.items():
        copied = name.removesuffix("_source")
        target = called.get(copied, called.get(copied + "64"))
        if name == copied or target is None:
            continue
        sources = table["name"] == number
        for counter in ("calls", "bytes"):
            table[counter][sources] = 0
        table["name"][sources] = target
    return table


def _busiest_threads(facts: Facts, rows: Table) -> Floats:
    """Return seconds by lane: the sum of the busiest threads of its processes."""
    threads, of_row = np.unique(rows[["process", "thread"]], return_inverse=True)
    busiest = np.zeros(len(facts.job.processes))
    np.maximum.at(busiest, threads["process"], sums(of_row, rows["seconds"], len(threads)))
    return facts.lanes.sum_processes(busiest)


def _share(facts: Facts, busiest: Floats) -> float:
    """Return the share of the wall time: the mean over ranks; without MPI the largest of a lane, as
    in the verdict, because other lanes may be short helpers."""
    return float(busiest.mean() if facts.lanes.mpi else busiest.max()) / facts.wall


def _waiting(facts: Facts) -> Floats:
    waits = facts.times.waits
    return sums(
        facts.job.events["function"][waits.event],
        waits.seconds,
        max(len(facts.job.function_names), 1),
    )


def _inside(facts: Facts, flag: int) -> Floats:
    """Return the seconds of calls inside MPI calls, per function."""
    events = facts.job.events
    rows = np.flatnonzero(events["flags"] & flag)
    return sums(
        events["function"][rows], events["duration"][rows], max(len(facts.job.function_names), 1)
    )


def _read_file_counters(facts: Facts) -> Iterator[FunctionRow]:
    """Yield rows such as "POSIX write" for the calls to storage."""
    for number, layer in enumerate(LAYERS):
        rows = (facts.stored | facts.library) & (facts.records["layer"] == number)
        for kind, calls, moved in COUNTED:
            seconds = np.nan_to_num(facts.column(kind + "_time"))
            count = int(facts.column(calls)[rows].sum())
            if not count and not seconds[rows].any():
                continue
            nested = (
                (seconds - facts.times.cells[:, KINDS.index(kind)])[rows].sum()
                if number == POSIX
                else 0.0
            )
            by_lane = _by_lane(facts, seconds, rows)
            yield _row(
                facts,
                f"{LAYER_NAMES[layer]} {kind}",
                layer,
                by_lane,
                busiest=by_lane,
                calls=count,
                bytes=int(facts.column(moved)[rows].sum()) if moved else 0,
                waiting=0.0,
                inside={"MPI-IO": float(nested)},
                known=bool(seconds[rows & (facts.lane >= 0)].any()),
            )


def _by_lane(facts: Facts, seconds: Floats, rows: Mask) -> Floats:
    own = rows & (facts.lane >= 0)
    shared = float(seconds[rows & (facts.lane < 0)].sum())
    return sums(facts.lane[own], seconds[own], facts.ranks) + shared / facts.ranks


def _row(
    facts: Facts,
    name: str,
    category: str,
    by_lane: Floats,
    *,
    busiest: Floats,
    calls: int,
    bytes: int,
    waiting: float,
    inside: dict[str, float],
    known: bool = True,
) -> FunctionRow:
    """Return a row of the table; ``known``: the seconds of single ranks are known."""
    slowest = int(np.argmax(by_lane))
    mean, total = float(by_lane.mean()), float(by_lane.sum())
    most = float(by_lane[slowest]) if known else mean
    around = max(inside, key=lambda word: inside[word])
    return FunctionRow(
        name=name,
        category=category,
        calls=calls,
        seconds=total,
        share=_share(facts, busiest),
        mean=mean,
        slowest=most,
        slowest_rank=facts.lanes.rank(slowest) if known else -1,
        imbalance=(most - mean) / most if most > 0 else 0.0,
        waiting=waiting,
        bytes=bytes,
        inside=around if inside[around] > 0.5 * total else "",
        inside_seconds=sum(inside.values()),
    )
