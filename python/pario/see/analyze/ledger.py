"""The ledger of seconds: only one finding can claim a second, the stronger cause first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pario.see.analyze.arrays import Floats, Ints, ratio, sums
from pario.see.analyze.counted import share_of_ranks
from pario.see.analyze.facts import Facts

#: Kinds of claims on a lane's time outside I/O calls; their ``rows`` are lanes.
COMPUTE, COMMUNICATION, WAITING = -1, -2, -3


@dataclass(frozen=True)
class Claim:
    """A claim of ``seconds[i]`` of the cell (``rows[i]``, ``kind``), or of lane ``rows[i]`` for
    COMPUTE, COMMUNICATION and WAITING.

    Seconds that a stronger cause has claimed before are subtracted from a claim of the time
    *beyond* the calls' proper time. A claim of a share of the time (``of_rest``) shrinks in
    proportion; a claim of the program's work ``for_calls`` as the candidate's claims of these calls
    do.
    """

    rows: Ints
    kind: int
    seconds: Floats
    of_rest: bool = False
    for_calls: bool = False
    beyond: float = 0.0  # seconds between the calls that may be work for them, but are not claimed


def claim_all(
    facts: Facts, rows: Ints, kinds: tuple[int, ...], share: Floats | float = 1.0
) -> list[Claim]:
    """Return claims of a share of whole cells."""
    return [Claim(rows, kind, facts.cells[rows, kind] * share, of_rest=True) for kind in kinds]


class Ledger:
    """The seconds that are left to claim, and the value of a claim in wall time. All claims of I/O
    together are worth at most the I/O of the verdict."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.wall = facts.wall
        self._cells = facts.cells.copy()
        times = facts.times.lane_times
        compute = np.maximum(facts.wall - times.io - times.communication - times.waiting, 0.0)
        self._computed = compute
        self._lanes = {
            COMPUTE: compute.copy(),
            COMMUNICATION: times.communication.copy(),
            WAITING: times.waiting.copy(),
        }
        self._weights = {}  # per lane, of a second of each kind on the critical path
        if facts.times.along_path:
            self._weights[COMPUTE] = facts.times.compute_weights
            self._weights[COMMUNICATION] = facts.times.communication_weights
        self._budget = facts.wall
        self._io_budget = facts.times.critical.io

    def grant(self, claims: list[Claim], minimum: float) -> float:
        """Take the claimed seconds as far as they are left; return their value in wall time. A
        value below ``minimum`` takes nothing and returns 0."""
        granted = self._limit_claims(claims)
        io, other = self._worth(claims, granted)
        io = min(io, self._io_budget)
        worth = min(io + other, self._budget)
        if worth < minimum:
            return 0.0
        self._io_budget -= io
        for claim, seconds in zip(claims, granted, strict=True):
            self._take(claim, seconds)
        self._budget -= worth
        return worth

    def sum_claimed_computation(self, lanes: Ints) -> float:
        """Return the seconds of computation on lanes that the claims have taken so far."""
        return float((self._computed - self._lanes[COMPUTE])[lanes].sum())

    def _limit_claims(self, claims: list[Claim]) -> list[Floats]:
        granted = [self._limit_claim(claim) for claim in claims]
        calls = [n for n, claim in enumerate(claims) if claim.kind >= 0 and len(claim.rows)]
        asked = sum(float(self._limit_to_cells(claims[place]).sum()) for place in calls)
        # Calls that cost no more than their bytes are not made needlessly.
        share = 0.0 if calls else 1.0
        if asked:
            share = sum(float(granted[place].sum()) for place in calls) / asked
        return [
            seconds * share if claim.for_calls else seconds
            for claim, seconds in zip(claims, granted, strict=True)
        ]

    def _limit_to_cells(self, claim: Claim) -> Floats:
        return np.clip(claim.seconds, 0.0, self._facts.cells[claim.rows, claim.kind])

    def _limit_claim(self, claim: Claim) -> Floats:
        if claim.kind < 0:
            return np.clip(claim.seconds, 0.0, self._lanes[claim.kind][claim.rows])
        total, left = self._facts.cells[claim.rows, claim.kind], self._cells[claim.rows, claim.kind]
        open_part = (
            claim.seconds * ratio(left, total) if claim.of_rest else claim.seconds - (total - left)
        )
        return np.clip(open_part, 0.0, left)

    def _take(self, claim: Claim, seconds: Floats) -> None:
        if claim.kind < 0:
            self._lanes[claim.kind][claim.rows] -= seconds
        else:
            self._cells[claim.rows, claim.kind] -= seconds

    def _worth(self, claims: list[Claim], granted: list[Floats]) -> tuple[float, float]:
        """Return the value of I/O, and of other time, in wall time: the part on the critical path
        if that is known, otherwise the seconds of the lane with most. Waiting counts as its mean
        over the lanes of the claim."""
        facts, along = self._facts, self._facts.times.along_path
        io, lanes, all_ranks = np.zeros(facts.ranks), np.zeros(facts.ranks), 0.0
        for claim, seconds in zip(claims, granted, strict=True):
            if claim.kind == WAITING:
                all_ranks += float(seconds.mean()) if len(seconds) else 0.0
            elif claim.kind < 0:
                share = self._weights[claim.kind][claim.rows] if along else 1.0
                lanes += sums(claim.rows, seconds * share, facts.ranks)
            else:
                lane = facts.lane[claim.rows]
                own = lane >= 0
                io += sums(lane[own], seconds[own] * facts.times.weights[lane[own]], facts.ranks)
                io += self._divide_sums(claim.rows[~own], seconds[~own])
        parts = (part.sum() if along else part.max(initial=0.0) for part in (io, lanes))
        of_io, other = map(float, parts)
        return of_io, other + all_ranks

    def _divide_sums(self, rows: Ints, seconds: Floats) -> Floats:
        """Return, per lane, the seconds of rows that sum all ranks, divided as in the verdict."""
        facts, lanes = self._facts, np.zeros(self._facts.ranks)
        for row, value in zip(rows.tolist(), seconds.tolist(), strict=True):
            if value > 0:
                whole = float(facts.cells[row].sum())
                share = share_of_ranks(facts.records[row], whole, facts.ranks)
                lanes += share * (value / whole)
        return lanes
