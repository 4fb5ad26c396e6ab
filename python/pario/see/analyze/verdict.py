"""The verdict: one sentence, by the slowest rank and the critical path.

If the logs do not cover a part of the run, the sentence begins with that part and gives no praise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from pario.see.analyze.arrays import sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Finding, Split, Verdict
from pario.wording import percent, seconds

Bound = Literal["io", "communication", "waiting", "compute", "idle", "little", "unknown"]
WORTH = 0.02
IDLE_CPU = 0.1
#: Fewer seconds of I/O are negligible in a run that is shorter than the second number.
LITTLE, SHORT_RUN = 0.05, 1.0

_PARTS = 3  # missing parts that the sentence names
_NAMES = {
    "io": "I/O",
    "communication": "communication",
    "waiting": "waiting",
    "compute": "computation",
}


def verdict(facts: Facts, findings: Sequence[Finding]) -> Verdict:
    """Judge the job; ``findings`` only add the possible gain."""
    times = facts.times
    critical = times.critical
    unseen = _unseen(facts)
    bound = _bound(facts, critical, findings)
    if unseen and bound != "io":
        bound = "unknown"
    lane = times.slowest_lane
    return Verdict(
        sentence=(
            _incomplete(facts, critical, unseen, findings)
            if unseen
            else _sentence(facts, critical, bound, findings)
        ),
        bound=bound,
        critical=critical,
        slowest=times.split(lane),
        slowest_rank=facts.lanes.rank(lane),
        mean=times.mean,
        method=_method(facts),
        not_known=_not_known(facts),
        unseen=unseen,
    )


def _unseen(facts: Facts) -> tuple[str, ...]:
    """Return the parts of the program that the tables do not hold, without helpers of the
    launcher."""
    lanes = facts.lanes.of_process
    parts = (part for part in facts.job.unseen if part.process < 0 or lanes[part.process] >= 0)
    return tuple(dict.fromkeys(part.text for part in parts))


def _incomplete(
    facts: Facts, split: Split, unseen: Sequence[str], findings: Sequence[Finding]
) -> str:
    """Return the sentence for a run that the logs do not cover in full."""
    more = f"; and {len(unseen) - _PARTS} more" if len(unseen) > _PARTS else ""
    whole = f"of the {seconds(split.wall)} {_where(facts)}"
    gain = sum(finding.seconds for finding in findings)
    saving = _saving(facts, findings, gain) if gain > WORTH * facts.wall else ""
    return (
        f"Incomplete: {'; '.join(unseen[:_PARTS])}{more}. "
        f"In the part that was seen, {percent(split.io, split.wall)} {whole} is I/O{saving}."
    )


def _bound(facts: Facts, split: Split, findings: Sequence[Finding]) -> Bound:
    if not len(facts.job.processes) and not len(facts.records):
        return "unknown"
    if split.io < LITTLE and split.wall < SHORT_RUN and not findings:
        return "little"
    parts: dict[Bound, float] = {
        "io": split.io,
        "communication": split.communication,
        "waiting": split.waiting,
        "compute": split.compute,
    }
    most = max(parts, key=lambda name: parts[name])
    return "idle" if most == "compute" and _idle(facts, split.compute) else most


def _idle(facts: Facts, compute: float) -> bool:
    """True if the log has processor times and the processes used hardly any."""
    processes = facts.job.processes
    used = np.nan_to_num(processes["cpu_user"] + processes["cpu_system"])
    busiest = float(sums(np.maximum(facts.lanes.of_process, 0), used, facts.ranks).max(initial=0.0))
    return 0 < busiest < IDLE_CPU * compute


def _sentence(facts: Facts, split: Split, bound: Bound, findings: Sequence[Finding]) -> str:
    if bound == "unknown":
        return "Nothing is known of this job: the log holds no process."
    whole = f"of the {seconds(split.wall)} {_where(facts)}"
    if bound == "little":
        return f"Hardly any I/O: {seconds(split.io)} {whole}."
    gain = sum(finding.seconds for finding in findings)
    share = f"{percent(split.io, split.wall)} {whole} is I/O"
    if bound == "io":
        return f"I/O-bound: {share}{_leading(facts, findings, gain)}."
    if bound == "idle":
        head = f"Not I/O-bound: the processes mostly slept or waited for something outside; {share}"
    else:
        part = percent(getattr(split, bound), split.wall)
        head = (
            f"Not I/O-bound: {_NAMES[bound]} takes {part} {whole}, I/O"
            f" {percent(split.io, split.wall)}"
        )
    return head + (_saving(facts, findings, gain) if gain > WORTH * split.wall else "") + "."


def _where(facts: Facts) -> str:
    if facts.times.along_path:
        return "on the critical path"
    return (
        f"of rank {facts.times.slowest_lane} (the slowest)"
        if facts.lanes.mpi and facts.ranks > 1
        else "run"
    )


def _leading(facts: Facts, findings: Sequence[Finding], gain: float) -> str:
    if not findings or gain <= WORTH * facts.wall:
        return ", with no cause found that a change of calls or settings would remove"
    return _saving(facts, findings, gain)


def _saving(facts: Facts, findings: Sequence[Finding], gain: float) -> str:
    part = "mostly" if findings[0].seconds >= 0.5 * gain else "above all"
    return f"; {_worth(facts.times.critical, gain)} could be saved, {part} by {findings[0].remedy}"


def _worth(split: Split, gain: float) -> str:
    return f"{seconds(gain)} ({percent(gain, split.wall)})"


def _method(facts: Facts) -> str:
    times = facts.times
    if times.exact:
        io = "I/O time is the union of the spans of its calls, so threads count once"
    else:
        io = (
            "I/O time is the sum of counters, of the busiest thread where there are several, at"
            " most the wall time"
        )
    if not facts.lanes.mpi:
        return f"{io}; without MPI the process (or chain of processes) with most I/O counts."
    if not times.path_known:
        return (
            f"{io}; the log has no calls in which ranks meet, so the rank with most I/O stands for"
            " the critical path."
        )
    return (
        f"{io}; waiting is the time from a rank's arrival in a collective, collective MPI-IO call"
        " or blocking message to that of the last one; the critical path follows the last to"
        " arrive backwards from the end."
    )


def _not_known(facts: Facts) -> tuple[str, ...]:
    missing = []
    if facts.lanes.mpi and not facts.has("mpi"):
        missing.append("MPI communication time (the log has none): it is part of compute")
    elif facts.lanes.mpi and not facts.times.path_known:
        missing.append("waiting for other ranks: it is part of communication")
    if not facts.has("stdio"):
        missing.append("stdio calls (the log has none)")
    if facts.has("per_rank") or not len(facts.records):
        return tuple(missing)
    return (
        *missing,
        "times of single ranks on shared files (the log keeps sums, the slowest and the fastest)",
    )
