"""Published figures, and the model's predictions of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pario.prove.model.load import Flow, Phase, Situation, call, cost, simulate_turns, situation_on
from pario.prove.model.machine import Machine

FOLDER = Path(__file__).parent / "published"
MIB = 1 << 20
#: The largest accepted error of a prediction, relative to the published figure.
TOLERANCE = 0.25


@dataclass(frozen=True)
class Row:
    """A published figure."""

    name: str
    published: float
    asked: dict[str, Any]
    fits: bool = False  # parameters are fitted to it
    exact: bool = False  # a count of the plan, independent of the parameters
    follows: bool = False  # follows from fitted rows, and so checks nothing
    reason: str = ""  # of a missed prediction


@dataclass(frozen=True)
class Table:
    """Published figures of one machine."""

    name: str
    title: str
    source: str
    machine: str
    load: str
    volume_fitted: bool
    rows: tuple[Row, ...]

    def predict(self, machine: Machine, row: Row) -> float:
        """Predict the figure of a row."""
        return LOADS[self.load](machine, **row.asked)

    @property
    def checked(self) -> tuple[Row, ...]:
        """The rows that test the model: neither fitted, nor counts, nor derived from fitted
        rows."""
        return tuple(row for row in self.rows if not (row.fits or row.exact or row.follows))


def off(published: float, predicted: float) -> float:
    """The error of a prediction relative to the published figure."""
    return predicted / published - 1


def tables() -> Iterator[Table]:
    """Yield all tables, by name."""
    for path in sorted(FOLDER.glob("*.toml")):
        text = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = tuple(_row(text["common"], dict(row)) for row in text["rows"])
        yield Table(
            path.stem,
            text["title"],
            text["source"],
            text["machine"],
            text["load"],
            text.get("volume_fitted", False),
            rows,
        )


def _row(common: dict[str, Any], text: dict[str, Any]) -> Row:
    own = {
        key: text.pop(key)
        for key in ("name", "published", "fits", "exact", "follows", "reason")
        if key in text
    }
    return Row(asked=common | text, **own)


@lru_cache(maxsize=32)
def _parts(
    situation: Situation, writes: bool, part: int, hints: tuple[tuple[str, str], ...] = ()
) -> Phase:
    """The collective call in which rank r accesses the r-th part of the file. Independent of the
    machine's rates, hence cached."""
    return call(
        situation, writes, True, str(part), range(0, part * situation.ranks, part), dict(hints)
    )


def _shared_file(machine: Machine, bytes: float, ranks: int, writes: bool, stripes: int) -> float:
    """One file of equal parts; all ranks open it."""
    phase = _parts(situation_on(machine, ranks, stripes), writes, int(bytes) // ranks)
    return cost(
        machine, replace(phase, opens=0 if writes else ranks, creates=ranks if writes else 0)
    ).seconds


def _one_writer(machine: Machine, bytes: float, stripes: int) -> float:
    return cost(machine, Phase(True, (Flow(targets=stripes, bytes=int(bytes)),))).seconds


def _wrf(
    machine: Machine,
    ranks: int,
    stripes: int,
    write: tuple[int, ...] = (),
    read: int = 0,
    exchange: bool = True,
    beside: float = 0,
) -> float:
    """Files written collectively, with the exchange before the writes, and input that rank 0 reads
    from one target."""
    seconds = beside
    for gib in write:
        phase = _parts(
            situation_on(machine, ranks, stripes),
            True,
            gib * 1024 * MIB // ranks,
            (("cb_nodes", str(stripes)), ("romio_cb_write", "enable")),
        )
        seconds += cost(
            machine, replace(phase, exchanged=phase.exchanged if exchange else 0, overlapped=False)
        ).seconds
    return seconds + cost(machine, Phase(False, (Flow(bytes=read * 1024 * MIB, depth=1),))).seconds


def _lattice(
    machine: Machine, nodes: int, stripes: int, way: str, writes: bool, part: int = 1 << 30
) -> float:
    """GB/s of an array of small pieces: collective calls as ROMIO makes them, or independent ones
    of large pieces, before which or after which the nodes may redistribute the bytes."""
    ranks = nodes * machine.ranks_per_node
    total = part * ranks
    if way == "collective":
        hints = (
            ("cb_nodes", str(min(stripes, nodes))),
            ("romio_cb_read", "enable"),
            ("romio_cb_write", "enable"),
        )
        phase = _parts(situation_on(machine, ranks, stripes), writes, part, hints)
        return total / 1e9 / cost(machine, replace(phase, overlapped=False)).seconds
    flows = tuple(
        Flow(node, machine.ranks_per_node, 0, stripes, 1, total // nodes) for node in range(nodes)
    )
    moving = cost(machine, Phase(writes, flows)).seconds
    exchange = total / nodes / machine.values["node_rate"] if way == "redistributed" else 0
    return total / 1e9 / (moving + exchange)


def _serial(machine: Machine, bytes: int, size: int, measure: str = "seconds") -> float:
    """One process that waits for each of its requests."""
    phase = Phase(True, (Flow(bytes=bytes, requests=-(-bytes // size), depth=1),))
    return {
        "seconds": cost(machine, phase).seconds,
        "requests": phase.requests,
        "MiB": phase.bytes / MIB,
    }[measure]


def _nfs(
    machine: Machine, bytes: float, threads: int, scattered: bool, writes: bool = False
) -> float:
    """Threads that wait for their reads, but not for their writes."""
    targets = int(machine.values["targets"]) if scattered else 1
    depth = 0 if writes else int(machine.values["read_ahead"])
    phase = Phase(writes, (Flow(ranks=threads, targets=targets, bytes=int(bytes), depth=depth),))
    return bytes / MIB / cost(machine, phase).seconds


def _nodes(machine: Machine, bytes_per_node: float, nodes: int, measure: str = "MiB/s") -> float:
    """Each node with large files of its own."""
    targets = int(machine.values["targets"])
    flows = tuple(
        Flow(node=node, first_target=node % targets, bytes=int(bytes_per_node))
        for node in range(nodes)
    )
    rate = bytes_per_node * nodes / MIB / cost(machine, Phase(True, flows)).seconds
    return rate / _nodes(machine, bytes_per_node, 1) if measure == "speedup" else rate


def _multi_file(machine: Machine, ranks: int, numbers: int, ascii: bool, files: int) -> float:
    """Files written through the node's link and read again from its memory; one process per file
    converts its numbers to text and back."""
    flows = tuple(Flow(bytes=8 * numbers * ranks // files) for _ in range(files))
    text = 2 * numbers * ranks // files * machine.values["number_seconds"] if ascii else 0
    return cost(machine, Phase(True, flows, creates=files, opens=files)).seconds + text


#: The arrays of S3D in the layout of examples/s3d: type and offset. Rank r is at
#: (r % 4, r / 4 % 2, r / 8).
_S3D = (
    ("11x(20x(20x64/256)/10240)/409600", 512),
    ("3x(20x(20x64/256)/10240)/409600", 4506112),
    ("20x(20x64/256)/10240", 5734912),
    ("20x(20x64/256)/10240", 6144512),
)
_S3D_HINTS = {
    "list": {"romio_ds_write": "disable"},
    "sieve": {"ind_wr_buffer_size": "4M"},
    "collective": {},
}


def _s3d_phases(machine: Machine, way: str) -> list[Phase]:
    situation = Situation(16, 1 if way == "collective" else 16, machine.kind, machine.unit, 1)
    at = [rank % 4 * 64 + rank // 4 % 2 * 5120 + rank // 8 * 204800 for rank in range(16)]
    header = call(situation, True, False, "512", [0])
    return [
        header,
        *(
            call(
                situation, True, way == "collective", kind, [first + x for x in at], _S3D_HINTS[way]
            )
            for kind, first in _S3D
        ),
    ]


def _s3d(machine: Machine, way: str, beside: float = 0, measure: str = "seconds") -> float:
    phases = _s3d_phases(machine, way)
    requests, moved = sum(phase.requests for phase in phases), sum(phase.bytes for phase in phases)
    if measure != "seconds":  # the header is not sieved
        reads, read = ((requests - 1) // 2, (moved - 512) // 2) if way == "sieve" else (0, 0)
        return {"reads": reads, "writes": requests - reads, "MiB written": (moved - read) / MIB}[
            measure
        ]
    return beside + sum(_simulate_turns(machine, phase, way == "sieve") for phase in phases)


def _simulate_turns(machine: Machine, phase: Phase, sieved: bool) -> float:
    """All blocks are one lock unit; a sieve window is read and written under its lock."""
    clients = []
    for flow in phase.flows:
        count = flow.requests // 2 if sieved and flow.requests > 1 else flow.requests
        clients.append([(0, flow.bytes // count)] * count)
    return simulate_turns(machine, clients)[0]


def _ior(machine: Machine, ranks: int, bytes: int, stripes: int, measure: str) -> float:
    phase = _parts(situation_on(machine, ranks, stripes), True, bytes)
    return {"requests": phase.requests, "bytes": phase.bytes}[measure]


LOADS: dict[str, Callable[..., float]] = {
    "shared_file": _shared_file,
    "one_writer": _one_writer,
    "wrf": _wrf,
    "lattice": _lattice,
    "serial": _serial,
    "nfs": _nfs,
    "nodes": _nodes,
    "multi_file": _multi_file,
    "s3d": _s3d,
    "ior": _ior,
}
