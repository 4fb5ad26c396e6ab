"""The load of a machine: flows of bytes, phases, and calls of many ranks, with their costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pario.prove.model.machine import Machine


@dataclass(frozen=True)
class Flow:
    """Ranks of one node with equal work; the fields are those of
    src/instruments/model/model.hpp."""

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
    """The flows and metadata operations that take place at the same time."""

    writes: bool
    flows: tuple[Flow, ...] = ()
    opens: int = 0
    creates: int = 0
    exchanged: int = 0
    overlapped: bool = True

    @property
    def requests(self) -> int:
        """The number of requests at the targets."""
        return sum(flow.requests for flow in self.flows)

    @property
    def bytes(self) -> int:
        """The bytes to or from the targets."""
        return sum(flow.bytes for flow in self.flows)

    @property
    def handovers(self) -> int:
        """The number of lock hand-overs."""
        return sum(flow.handovers for flow in self.flows)


@dataclass(frozen=True)
class Cost:
    """The seconds of a phase and of its parts, and the resource that limits it."""

    seconds: float
    metadata: float
    exchange: float
    moving: float
    busiest_target: float
    bound: str


def cost(machine: Machine, phase: Phase) -> Cost:
    """Compute the cost of a phase on a machine."""
    from pario import _native

    flows = [tuple(vars(flow).values()) for flow in phase.flows]
    native = (phase.writes, flows, phase.opens, phase.creates, phase.exchanged, phase.overlapped)
    return Cost(*_native.model_cost(machine.native(), native))


@dataclass(frozen=True)
class Situation:
    """The ranks of a call, and the kind and stripes of its file."""

    ranks: int
    nodes: int
    kind: str
    unit: int
    targets: int


def situation_on(machine: Machine, ranks: int, stripes: int) -> Situation:
    """Ranks that fill nodes of a machine, with a file of ``stripes`` stripes."""
    return Situation(
        ranks, math.ceil(ranks / machine.ranks_per_node), machine.kind, machine.unit, stripes
    )


def call(
    situation: Situation,
    writes: bool,
    collective: bool,
    layout: str,
    places: Sequence[int],
    hints: Mapping[str, str] | None = None,
) -> Phase:
    """The phase of pario's plan for one call in which rank r accesses ``layout`` (in the notation
    of src/core/pattern) at ``places[r]``."""
    from pario import _native

    native = (situation.ranks, situation.nodes, situation.kind, situation.unit, situation.targets)
    (_, flows, opens, creates, exchanged, overlapped), _ = _native.model_call(
        native, writes, collective, layout, list(places), list((hints or {}).items())
    )
    return Phase(
        writes, tuple(Flow(*flow) for flow in flows), opens, creates, exchanged, overlapped
    )


def simulate_turns(
    machine: Machine, clients: Sequence[Sequence[tuple[int, int]]]
) -> tuple[float, int]:
    """Simulate clients whose writes, (lock unit, bytes), are served one after the other; returns
    seconds and hand-overs."""
    from pario import _native

    return _native.model_turns(machine.native(), True, [list(client) for client in clients])
