"""Predicts a recorded run on a described machine: its files as flows, other stripes, more ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pario import wording
from pario.prove.model.load import Cost, Flow, Phase, call, cost, situation_on
from pario.prove.model.machine import Machine
from pario.see.analyze.split import Times
from pario.see.tables.model import FILE_LAYERS, LAYERS, Job

#: Limits of warnings: ranks per target, seconds for which each target is busy, seconds for which
#: the metadata server is busy.
CROWD, BUSY_SECONDS, METADATA_SECONDS = 256, 30.0, 10.0
#: Bytes per system call of stdio if the size of its buffer is unknown.
STDIO_BUFFER = 4096

#: Requests below this many bytes are small, so that the cost of each of them matters. A cost that
#: a machine lacks matters if, at PLAUSIBLE seconds each, it exceeds MATTERS of the known seconds.
SMALL, PLAUSIBLE, MATTERS = 64 << 10, 1e-3, 0.02

_LOW, _MPIIO = len(FILE_LAYERS), LAYERS.index("mpiio")

Manner = Literal["shared", "own files", "one rank"]
Way = Literal["as it is", "collective"]


@dataclass(frozen=True)
class Use:
    """The accesses of a run, in one direction, to a shared file, to files of one rank each, or to
    the files of one rank."""

    what: str
    manner: Manner
    writes: bool
    users: int  # ranks
    files: int
    bytes: int
    requests: int
    opens: int
    interleaved: bool = False  # most requests do not begin where the rank's last one ended
    # Ranks that access the file by MPI-IO, and the bytes that they pass to it, if the library made
    # the requests; else 0.
    callers: int = 0
    called: int = 0

    @property
    def sharers(self) -> int:
        """The ranks whose calls on one file can be collective; 0: the file is not shared."""
        return self.callers if self.callers > 1 else self.users if self.manner == "shared" else 0

    def of_ranks(self, factor: float) -> Use:
        """The same bytes by ``factor`` times as many ranks. Accesses of one rank stay with it."""
        if self.manner == "one rank" and not self.sharers:
            return self
        names = (*(() if self.manner == "one rank" else ("users", "opens")), "callers")
        grown = {
            name: max(round(value * factor), 1) for name in names if (value := getattr(self, name))
        }
        return replace(
            self,
            **grown,
            files=max(round(self.files * factor), 1) if self.manner == "own files" else self.files,
        )


@dataclass(frozen=True)
class Outcome:
    """The prediction of a run."""

    stripes: int  # 0: as recorded
    way: Way
    io: float
    beside: float  # seconds without I/O
    bound: str  # the resource that limits most of the I/O
    warnings: tuple[str, ...] = ()
    aggregators: int = 0  # of collective calls; 0: pario's choice
    requests: int = 0
    bytes: int = 0
    handovers: int | None = None  # of locks; None: as recorded, not known
    # Costs that the machine's description lacks and that matter: without them, ``io`` is only the
    # known part of the seconds, and comparable with no other outcome.
    lacks: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The time of the whole run."""
        return self.io + self.beside


def uses_of(job: Job) -> list[Use]:
    """The uses of the program's files, in each direction in which bytes moved; files of launchers
    do not count."""
    times = Times(job)
    job = times.job
    found: list[Use] = []
    alone: dict[bool, list[tuple[int, Use]]] = {False: [], True: []}
    for file in map(int, np.flatnonzero(times.storage)):
        every = job.records[(job.records["file"] == file) & (job.records["layer"] < _LOW)]
        rows = _find_lowest(every)
        for writes in (False, True):
            size = "bytes_written" if writes else "bytes_read"
            moved = rows[rows[size] > 0]
            if len(moved) == 0:
                continue
            use = _use(job.path(file), rows, moved, writes)
            calls = every[(every["layer"] == _MPIIO) & (every[size] > 0)]
            if len(calls) and rows is not every:
                use = replace(use, callers=_count_users(calls), called=int(calls[size].sum()))
            if use.users > 1 or use.sharers:
                found.append(use)
            else:
                alone[writes].append((int(moved["process"][0]), use))
    return found + [use for owned in alone.values() for use in _merge_uses(owned)]


def _find_lowest(rows: np.ndarray) -> np.ndarray:
    """The records of a file at the layer nearest to the file system."""
    below: np.ndarray = rows[rows["layer"] != _MPIIO]
    return below if (below["bytes_read"].sum() + below["bytes_written"].sum()) > 0 else rows


def _count_users(moved: np.ndarray) -> int:
    of_all = moved[moved["process"] < 0]
    return int(of_all["ranks"].max()) if len(of_all) else len(np.unique(moved["process"]))


def _use(path: str, rows: np.ndarray, moved: np.ndarray, writes: bool) -> Use:
    way, size = ("writes", "bytes_written") if writes else ("reads", "bytes_read")
    users = _count_users(moved)
    buffers = np.maximum(moved["buffer_size"], STDIO_BUFFER)
    requests = int(
        np.where(
            moved["layer"] == LAYERS.index("stdio"), -(-moved[size] // buffers), moved[way]
        ).sum()
    )
    interleaved = 2 * int(moved[f"consecutive_{way}"].sum()) < requests - users
    return Use(
        path,
        "shared" if users > 1 else "one rank",
        writes,
        users,
        1,
        int(moved[size].sum()),
        max(requests, 1),
        int(rows["opens"].sum()),
        interleaved,
    )


def _merge_uses(owned: list[tuple[int, Use]]) -> Iterator[Use]:
    """Merge the uses of files of one rank each; files of several ranks are used at the same
    time."""
    if not owned:
        return
    owners, uses = len({owner for owner, _ in owned}), [use for _, use in owned]
    what = (
        uses[0].what if len(uses) == 1 else f"{len(uses)} files of {wording.plural(owners, 'rank')}"
    )
    sums = [sum(getattr(use, name) for use in uses) for name in ("bytes", "requests", "opens")]
    yield Use(
        what, "own files" if owners > 1 else "one rank", uses[0].writes, owners, len(uses), *sums
    )


def phase_of(machine: Machine, use: Use, stripes: int, way: Way, aggregators: int = 0) -> Phase:
    """The phase of a use on a machine, with ``stripes`` stripes per file; ``way`` collective: by
    ``aggregators`` aggregators, 0: by pario's choice."""
    stripes = min(
        stripes, int(machine.values["targets"]), -(-use.bytes // (use.files * machine.unit))
    )
    created = use.files if use.writes else 0
    if way == "collective" and use.sharers:
        part = -(-(use.called or use.bytes) // use.sharers)
        hints = {"romio_cb_write": "enable", "romio_cb_read": "enable"} | (
            {"cb_nodes": str(aggregators)} if aggregators else {}
        )
        phase = call(
            situation_on(machine, use.sharers, stripes),
            use.writes,
            True,
            str(part),
            range(0, part * use.sharers, part),
            hints,
        )
        return replace(phase, opens=use.opens - min(created, use.opens), creates=created)
    nodes = math.ceil(use.users / machine.ranks_per_node) if use.manner != "one rank" else 1
    targets = (
        min(stripes * use.files, int(machine.values["targets"]))
        if use.manner == "own files"
        else stripes
    )
    return Phase(
        use.writes,
        tuple(_flows(use, nodes, targets, _count_in_flight(machine, use, targets))),
        use.opens - min(created, use.opens),
        created,
    )


def _count_in_flight(machine: Machine, use: Use, targets: int) -> int:
    """The number of requests that a rank has in flight: one, or those read ahead or in one call.
    Writes in the background continue on further targets until one has ``in_flight`` of them."""
    if not use.writes:
        at_once = -(-use.bytes // (use.requests * machine.unit))
        return max(
            min(int(machine.values.get("read_ahead", 1)), at_once if use.interleaved else targets),
            1,
        )
    waiting = int(machine.values.get("in_flight", 0))
    if use.interleaved or not waiting:
        return 1
    # Requests to one target before those to the next one.
    in_a_row = max(machine.unit * use.requests // use.bytes, 1)
    return (
        targets if in_a_row <= waiting else max(min(targets, in_a_row // (in_a_row - waiting)), 1)
    )


def _flows(use: Use, nodes: int, targets: int, depth: int) -> Iterator[Flow]:
    """Yield one flow per node; the work is divided evenly."""
    locks = use.requests if use.interleaved else use.users
    handovers = locks if use.writes and use.manner == "shared" else 0
    for node in range(nodes):
        bytes, requests, changes, ranks = (
            _part(total, node, nodes) for total in (use.bytes, use.requests, handovers, use.users)
        )
        yield Flow(node, ranks, 0, targets, 1, bytes, requests, changes, depth)


def _part(total: int, number: int, parts: int) -> int:
    return total * (number + 1) // parts - total * number // parts


def outcome(
    machine: Machine,
    uses: Iterable[Use],
    stripes: int,
    way: Way,
    beside: float,
    aggregators: int = 0,
) -> Outcome:
    """Predict a run that takes ``beside`` seconds without its I/O; its uses follow each other."""
    phases = [(use, phase_of(machine, use, stripes, way, aggregators)) for use in uses]
    costs = [(use, cost(machine, phase)) for use, phase in phases]
    longest = max((found for _, found in costs), key=lambda found: found.seconds, default=None)
    warnings = [
        text
        for use, found in costs
        for text in _warnings(use, found, min(stripes, int(machine.values["targets"])))
    ]
    seconds = sum(found.seconds for _, found in costs)
    lacks = [text for _, phase in phases for text in _find_lacks(machine, phase, seconds)]
    return Outcome(
        stripes,
        way,
        seconds,
        beside,
        longest.bound if longest else "nothing",
        tuple(warnings),
        aggregators,
        sum(phase.requests for _, phase in phases),
        sum(phase.bytes for _, phase in phases),
        sum(phase.handovers for _, phase in phases),
        tuple(dict.fromkeys(lacks)),
    )


def _warnings(use: Use, found: Cost, stripes: int) -> Iterator[str]:
    targets = stripes if use.manner != "own files" else stripes * use.files
    if use.users >= CROWD * targets and found.busiest_target >= BUSY_SECONDS:
        yield (
            f"{use.what}: {use.users:,} ranks on {wording.plural(targets, 'target')} keep each busy"
            f" for {wording.seconds(found.busiest_target)}; other jobs wait for its server"
            " meanwhile"
        )
    if found.metadata >= METADATA_SECONDS:
        yield (
            f"{use.what}: {use.opens:,} opens keep the metadata server busy for"
            f" {wording.seconds(found.metadata)}; other jobs wait for it"
        )


def _find_lacks(machine: Machine, phase: Phase, seconds: float) -> Iterator[str]:
    """Yield the costs of a phase that the machine's description lacks, if they matter beside the
    known seconds of the run."""
    known = set(machine.values)
    ranks = max(sum(flow.ranks for flow in phase.flows), 1)

    def matters(count: int) -> bool:
        return count / ranks * PLAUSIBLE > MATTERS * seconds

    rate, word = ("write_rate", "writing") if phase.writes else ("read_rate", "reading")
    if phase.bytes and not known & {rate, "node_rate", "network_rate"}:
        yield f"{machine.name} has no rate for {word}"
    small = phase.bytes < SMALL * phase.requests
    if small and not known & {"request_seconds", "round_trip"} and matters(phase.requests):
        yield (
            f"{machine.name} has no cost for a request in addition to its bytes, and"
            f" {wording.count(phase.requests)} requests move"
            f" {wording.exact_size(phase.bytes // phase.requests)} each"
        )
    if phase.handovers > ranks and "handover_seconds" not in known and matters(phase.handovers):
        yield (
            f"{machine.name} has no cost for lock hand-overs, and ranks take locks from each other"
            f" {wording.count(phase.handovers)} times"
        )


def scale_computation(beside: float, before: int, ranks: int) -> float:
    """Scale the seconds without I/O to another number of ranks."""
    return beside * before / ranks
