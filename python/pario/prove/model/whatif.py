"""What a recorded run would do on a described machine: its files as flows, other stripes, more
ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pario import wording
from pario.prove.model.load import Cost, Flow, Phase, call, cost, job_on
from pario.prove.model.machine import Machine
from pario.see.analyze.split import Times
from pario.see.tables.model import LAYERS, Job

#: A job of so many ranks per target that keeps each target busy for so many seconds makes others
#: wait; likewise the metadata server.
CROWD, BUSY_SECONDS, METADATA_SECONDS = 256, 30.0, 10.0
#: What stdio asks the kernel for at a time, unless its buffer is known.
STDIO_BUFFER = 4096

#: Requests below this are small: what each of them costs matters.
SMALL = 64 << 10

Manner = Literal["shared", "own files", "one rank"]
Way = Literal["as it is", "collective"]


@dataclass(frozen=True)
class Use:
    """What a run did in one direction to a shared file, to files of one rank each, or to the files
    of one rank."""

    what: str
    manner: Manner
    writes: bool
    users: int  # ranks
    files: int
    bytes: int
    requests: int
    opens: int
    interleaved: bool = False  # most requests do not begin where the rank's last one ended

    def of_ranks(self, factor: float) -> Use:
        """The same bytes by ``factor`` times as many ranks. What one rank does stays its own."""
        if self.manner == "one rank":
            return self
        grown = {name: max(round(getattr(self, name) * factor), 1) for name in ("users", "opens")}
        return replace(
            self,
            **grown,
            files=max(round(self.files * factor), 1) if self.manner == "own files" else self.files,
        )


@dataclass(frozen=True)
class Outcome:
    """A run as it would be."""

    stripes: int  # 0: as it was
    way: Way
    io: float
    beside: float  # seconds without I/O
    bound: str  # what limits most of the I/O
    warnings: tuple[str, ...] = ()
    aggregators: int = 0  # of collective calls; 0: as pario chooses

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return self.io + self.beside


def uses_of(job: Job) -> list[Use]:
    """The files of a run, in both directions, as far as bytes moved; those of the program, not of
    what starts it."""
    times = Times(job)
    job = times.job
    found: list[Use] = []
    alone: dict[bool, list[tuple[int, Use]]] = {False: [], True: []}
    for file in map(int, np.flatnonzero(times.storage)):
        rows = _rows_of(job, file)
        for writes in (False, True):
            moved = rows[rows["bytes_written" if writes else "bytes_read"] > 0]
            if len(moved) == 0:
                continue
            use = _use(job.path(file), rows, moved, writes)
            if use.users > 1:
                found.append(use)
            else:
                alone[writes].append((int(moved["process"][0]), use))
    return found + [use for owned in alone.values() for use in _together(owned)]


def _rows_of(job: Job, file: int) -> np.ndarray:
    """Records of a file at the layer that is nearest to the file system."""
    rows: np.ndarray = job.records[job.records["file"] == file]
    below = rows[rows["layer"] != LAYERS.index("mpiio")]
    return below if (below["bytes_read"].sum() + below["bytes_written"].sum()) > 0 else rows


def _use(path: str, rows: np.ndarray, moved: np.ndarray, writes: bool) -> Use:
    way, size = ("writes", "bytes_written") if writes else ("reads", "bytes_read")
    of_all = moved[moved["process"] < 0]
    users = int(of_all["ranks"].max()) if len(of_all) else len(np.unique(moved["process"]))
    buffers = np.maximum(moved["buffer_size"], STDIO_BUFFER)
    requests = int(
        np.where(
            moved["layer"] == LAYERS.index("stdio"), -(-moved[size] // buffers), moved[way]
        ).sum()
    )
    interleaved = 2 * int(moved[f"consecutive_{way}"].sum()) < requests - users
    return Use(
        path,
        "shared",
        writes,
        users,
        1,
        int(moved[size].sum()),
        max(requests, 1),
        int(rows["opens"].sum()),
        interleaved,
    )


def _together(owned: list[tuple[int, Use]]) -> Iterator[Use]:
    """Files of one rank each: if several ranks have such files, they are used at the same time."""
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
    """A use on a machine, its files in so many stripes; collectively by so many aggregators, or (0)
    as pario chooses."""
    stripes = min(
        stripes, int(machine.values["targets"]), -(-use.bytes // (use.files * machine.unit))
    )
    created = use.files if use.writes else 0
    if way == "collective" and use.manner == "shared":
        part = -(-use.bytes // use.users)
        hints = {"romio_cb_write": "enable", "romio_cb_read": "enable"} | (
            {"cb_nodes": str(aggregators)} if aggregators else {}
        )
        phase = call(
            job_on(machine, use.users, stripes),
            use.writes,
            True,
            str(part),
            range(0, part * use.users, part),
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
        tuple(_flows(use, nodes, targets, _under_way(machine, use, targets))),
        use.opens - min(created, use.opens),
        created,
    )


def _under_way(machine: Machine, use: Use, targets: int) -> int:
    """Requests of a rank at a time: one, or what is read ahead, or at once. Writes that are not
    waited for go on to further targets, until one has as many as it may."""
    if not use.writes:
        at_once = -(-use.bytes // (use.requests * machine.unit))
        return max(
            min(int(machine.values.get("read_ahead", 1)), at_once if use.interleaved else targets),
            1,
        )
    waiting = int(machine.values.get("in_flight", 0))
    if use.interleaved or not waiting:
        return 1
    in_a_row = max(
        machine.unit * use.requests // use.bytes, 1
    )  # before it is the next target's turn
    return (
        targets if in_a_row <= waiting else max(min(targets, in_a_row // (in_a_row - waiting)), 1)
    )


def _flows(use: Use, nodes: int, targets: int, depth: int) -> Iterator[Flow]:
    """The ranks of each node alike."""
    handovers = use.requests if use.interleaved else use.users
    taken = handovers if use.writes and use.manner == "shared" else 0
    for node in range(nodes):
        bytes, requests, changes, ranks = (
            _part(total, node, nodes) for total in (use.bytes, use.requests, taken, use.users)
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
    """What a run without its I/O takes ``beside`` seconds; the files one after the other."""
    costs = [
        (use, cost(machine, phase_of(machine, use, stripes, way, aggregators))) for use in uses
    ]
    longest = max((found for _, found in costs), key=lambda found: found.seconds, default=None)
    warnings = [
        text
        for use, found in costs
        for text in _warnings(use, found, min(stripes, int(machine.values["targets"])))
    ]
    seconds, bound = (
        sum(found.seconds for _, found in costs),
        longest.bound if longest else "nothing",
    )
    return Outcome(stripes, way, seconds, beside, bound, tuple(warnings), aggregators)


def _warnings(use: Use, found: Cost, stripes: int) -> Iterator[str]:
    targets = stripes if use.manner != "own files" else stripes * use.files
    if use.users >= CROWD * targets and found.busiest_target >= BUSY_SECONDS:
        yield (
            f"{use.what}: {use.users:,} ranks on {wording.plural(targets, 'target')} keep each busy"
            f" for {wording.seconds(found.busiest_target)}: its server may answer nobody else"
            " meanwhile"
        )
    if found.metadata >= METADATA_SECONDS:
        yield (
            f"{use.what}: {use.opens:,} opens keep the metadata server busy for"
            f" {wording.seconds(found.metadata)}; all others wait"
        )


def unknown(machine: Machine, uses: Iterable[Use]) -> Iterator[str]:
    """What the machine's description does not say, and so costs nothing in the prediction."""
    uses, says = list(uses), {name for name, value in machine.values.items() if value > 0}
    for word, rate, writes in (("reading", "read_rate", False), ("writing", "write_rate", True)):
        if any(use.writes == writes for use in uses) and not says & {
            rate,
            "node_rate",
            "network_rate",
        }:
            yield f"{machine.name} has no rate for {word}"
    if any(use.bytes < SMALL * use.requests for use in uses) and not says & {
        "request_seconds",
        "round_trip",
    }:
        yield (
            f"{machine.name} does not say what a request costs beside its bytes, and many are small"
        )
    if (
        any(use.writes and use.interleaved and use.manner == "shared" for use in uses)
        and "handover_seconds" not in says
    ):
        yield (
            f"{machine.name} does not say what taking locks from each other costs, and ranks write"
            " between each other's bytes"
        )


def scaled(beside: float, before: int, ranks: int) -> float:
    """What is not I/O, divided among more ranks."""
    return beside * before / ranks
