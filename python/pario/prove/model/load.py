"""What is asked of a machine: flows of bytes, phases, calls of many ranks; and what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pario.prove.model.machine import Machine


@dataclass(frozen=True)
class Flow:
    """Ranks of one node that do alike; the fields are those of src/instruments/model/model.hpp."""

    node: int = 0
    ranks: int = 1
    first_target: int = 0
    targets: int = 1
    step: int = 1
    bytes: int = 0
    requests: int = 0
    handovers: int = 0
    depth: int = 0


@dataclass(frozen=True)
class Phase:
    """What happens at the same time."""

    writes: bool
    flows: tuple[Flow, ...] = ()
    opens: int = 0
    creates: int = 0
    exchanged: int = 0
    overlapped: bool = True

    @property
    def requests(self) -> int:
        """At the targets."""
        return sum(flow.requests for flow in self.flows)

    @property
    def bytes(self) -> int:
        """To or from the targets."""
        return sum(flow.bytes for flow in self.flows)


@dataclass(frozen=True)
class Cost:
    """Seconds of a phase, of its parts, and what limits it."""

    seconds: float
    metadata: float
    exchange: float
    moving: float
    busiest_target: float
    bound: str


def cost(machine: Machine, phase: Phase) -> Cost:
    """What a phase takes."""
    from pario import _native

    flows = [tuple(vars(flow).values()) for flow in phase.flows]
    native = (phase.writes, flows, phase.opens, phase.creates, phase.exchanged, phase.overlapped)
    return Cost(*_native.model_cost(machine.native(), native))


@dataclass(frozen=True)
class Job:
    """Who calls, and on which file."""

    ranks: int
    nodes: int
    kind: str
    unit: int
    targets: int


def job_on(machine: Machine, ranks: int, stripes: int) -> Job:
    """Ranks that fill nodes of a machine, and a file of so many stripes."""
    return Job(
        ranks, math.ceil(ranks / machine.ranks_per_node), machine.kind, machine.unit, stripes
    )


def call(
    job: Job,
    writes: bool,
    collective: bool,
    layout: str,
    places: Sequence[int],
    hints: Mapping[str, str] | None = None,
) -> Phase:
    """Rank r moves ``layout`` (the notation of room pattern) at ``places[r]``: what pario's plan
    comes to."""
    from pario import _native

    native = (job.ranks, job.nodes, job.kind, job.unit, job.targets)
    (_, flows, opens, creates, exchanged, overlapped), _ = _native.model_call(
        native, writes, collective, layout, list(places), list((hints or {}).items())
    )
    return Phase(
        writes, tuple(Flow(*flow) for flow in flows), opens, creates, exchanged, overlapped
    )


def turns(
    machine: Machine, writes: bool, clients: Sequence[Sequence[tuple[int, int]]]
) -> tuple[float, int]:
    """Clients that make requests, (lock unit, bytes), one after the other: seconds, hand-overs."""
    from pario import _native

    return _native.model_turns(machine.native(), writes, [list(client) for client in clients])
