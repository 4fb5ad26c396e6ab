"""The verdict: one sentence, by the slowest rank and the critical path.

If the logs do not cover a part of the run, the sentence begins with that part and gives no praise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pario.see.analyze.accounts import EXEC, image_seconds
from pario.see.analyze.arrays import sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.linked import explain_linked
from pario.see.analyze.model import Bound, Finding, KernelTotals, Split, Verdict
from pario.see.analyze.progress_model import Progress
from pario.see.analyze.reconcile import (
    queue_sentence,
    queued_io_seconds,
    unexplained_seconds,
    unseen_sentence,
)
from pario.see.analyze.sentence import LEAST_MESSAGES, Ruling, grade, is_efficient, sentence
from pario.see.analyze.summaries import stored_bytes
from pario.wording import size

_ENDED = Progress()
#: The processes are idle if they use a smaller part of their time outside of calls.
IDLE_CPU = 0.5
#: Fewer seconds of I/O are negligible in a run that is shorter than the second number.
LITTLE, SHORT_RUN = 0.05, 1.0

_PARTS = 3  # missing parts that the sentence names


def verdict(
    facts: Facts,
    findings: Sequence[Finding],
    kernel: KernelTotals | None = None,
    progress: Progress = _ENDED,
) -> Verdict:
    """Judge the job; ``findings`` only add the possible gain."""
    times = facts.times
    unseen = _unseen(facts)
    leads = _leads(_unseen(facts, counted=kernel is not None), kernel, progress)
    ruling = _ruling(facts, findings, progress, covered=not leads)
    if kernel is not None:
        ruling = replace(ruling, queue_share=kernel.run_queue_share)
    lane = times.slowest_lane
    parts = (*leads, sentence(ruling), *_queue_part(ruling, kernel), *_tail(progress))
    critical, slowest, mean = (
        replace(split, idle=ruling.split.idle, peers=min(ruling.split.peers, split.compute))
        for split in (ruling.split, times.split(lane), times.mean)
    )
    return Verdict(
        sentence=" ".join(parts),
        bound=ruling.bound,
        grade=grade(ruling),
        critical=critical,
        slowest=slowest,
        slowest_rank=facts.lanes.rank(lane),
        mean=mean,
        method=_method(facts),
        not_known=_not_known(facts),
        unseen=unseen,
        covered=not leads,
    )


def _leads(
    unseen: Sequence[str], kernel: KernelTotals | None, progress: Progress
) -> tuple[str, ...]:
    """Return the sentences that come first: one for each reason why the tables do not cover the
    run. With any the verdict gives no praise, and its bound is ``io`` or ``unknown``."""
    more = f"; and {len(unseen) - _PARTS} more" if len(unseen) > _PARTS else ""
    missing = f"Incomplete: {'; '.join(unseen[:_PARTS])}{more}." if unseen else ""
    state = progress.sentence if progress.stuck or progress.state == "running" else ""
    return tuple(filter(None, (state, missing, unseen_sentence(kernel))))


def _queue_part(ruling: Ruling, kernel: KernelTotals | None) -> tuple[str, ...]:
    """Return the sentence on waiting for a processor; none if there was hardly anything to do."""
    text = "" if ruling.bound == "little" else queue_sentence(kernel)
    return (text,) if text else ()


def _tail(progress: Progress) -> tuple[str, ...]:
    """Return the last calls of a run that was killed at work."""
    return (progress.sentence,) if progress.state == "killed" and not progress.stuck else ()


def _ruling(
    facts: Facts, findings: Sequence[Finding], progress: Progress, *, covered: bool
) -> Ruling:
    critical = replace(
        facts.times.critical,
        idle=_idle(facts, facts.times.critical.compute),
        peers=float(facts.times.peer_seconds.max(initial=0.0)),
    )
    queued = queued_io_seconds(facts)
    of_lane = min(float(queued[facts.times.slowest_lane]), critical.io)
    bound = _bound(facts, critical, findings, of_lane)
    known = (covered or bound == "io") and not progress.stuck
    return Ruling(
        split=critical,
        bound=bound if known else "unknown",
        where=_where(facts),
        findings=findings,
        efficient=is_efficient(facts, float(queued.sum())),
        queued=of_lane,
        moved=sum(stored_bytes(facts)),
        covered=covered,
        kernel=_kernel_seconds(facts),
        messages=_name_messages(facts),
    )


def _kernel_seconds(facts: Facts) -> float:
    """Return the processor seconds of the kernel outside of traced calls, in the slowest lane; 0 if
    they are not known."""
    processes, lane = facts.job.processes, facts.times.slowest_lane
    own = facts.lanes.of_process == lane
    system = float(np.nan_to_num(processes["cpu_system"][own]).sum())
    return min(system, float(np.nan_to_num(unexplained_seconds(facts))[lane])) if own.any() else 0.0


def _name_messages(facts: Facts) -> str:
    """Return the bytes through sockets and pipes in words; empty for a few, and with MPI."""
    processes = facts.job.processes
    own = processes[facts.lanes.of_process >= 0]
    sockets = int(own["bytes_received"].sum() + own["bytes_sent"].sum())
    # Reads and writes of sockets are in both.
    pipes = int(own["untraced_bytes_read"].sum() + own["untraced_bytes_written"].sum()) - sockets
    parts = {"sockets": sockets, "pipes": pipes}
    named = [
        f"{size(moved)} went through {how}"
        for how, moved in parts.items()
        if moved >= LEAST_MESSAGES and not facts.lanes.mpi
    ]
    return " and ".join(named)


def _unseen(facts: Facts, *, counted: bool = False) -> tuple[str, ...]:
    """Return the parts of the program that the tables do not hold, without helpers of the launcher;
    with ``counted`` without programs whose calls are in the kernel's counters of a process."""
    lanes = facts.lanes.of_process
    parts = (part for part in facts.job.unseen if part.process < 0 or lanes[part.process] >= 0)
    texts = (part.text for part in parts if not counted or not _is_counted(facts, part.process))
    return tuple(dict.fromkeys((*texts, *explain_linked(facts.job))))


def _is_counted(facts: Facts, process: int) -> bool:
    """True if a process of the job has probably waited for a program that was not followed, or was
    started by the launcher, which reads its counters."""
    processes = facts.job.processes
    if process < 0:
        return False
    row = processes[process]
    if row["end_kind"] != EXEC:
        return True
    parents = (processes["pid"] == row["parent"]) & (processes["host"] == row["host"])
    return bool(parents.any()) or row["pid"] == processes["pid"][np.argmin(processes["start"])]


def _bound(facts: Facts, split: Split, findings: Sequence[Finding], queued: float) -> Bound:
    """Return the largest part of the time; ``queued``: seconds of the I/O on the run queue."""
    if not len(facts.job.processes) and not len(facts.records):
        return "unknown"
    if split.io < LITTLE and split.wall < SHORT_RUN and not findings:
        return "little"
    parts: dict[Bound, float] = {
        "io": split.io - queued,
        "communication": split.communication,
        "waiting": split.waiting,
        "compute": split.compute,
    }
    most = max(parts, key=lambda name: parts[name])
    if most == "compute" and not split.divided:
        return "other"
    return "idle" if most == "compute" and split.idle else most


def _idle(facts: Facts, compute: float) -> bool:
    """True if the log has processor times and the processes used hardly any. A process that waits
    for a processor is not idle."""
    processes = facts.job.processes
    used = processes["cpu_user"] + processes["cpu_system"]
    used = np.where(np.isnan(used), image_seconds(facts.job), used)  # of killed ones
    used += np.maximum(processes["run_queue_delay"], 0) * 1e-9
    # Processes without MPI work in turn: one waits for the other.
    lane = np.maximum(facts.lanes.of_process, 0) * facts.lanes.mpi
    busiest = float(sums(lane, used, facts.ranks).max(initial=0.0))
    return 0 < busiest < IDLE_CPU * compute


def _where(facts: Facts) -> str:
    if facts.times.along_path:
        return "on the critical path"
    return (
        f"of rank {facts.times.slowest_lane} (the slowest)"
        if facts.lanes.mpi and facts.ranks > 1
        else "run"
    )


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
    rest = "compute" if facts.times.divided else "the time outside I/O"
    if facts.lanes.mpi and not facts.has("mpi"):
        missing.append(f"MPI communication time (the log has none): it is part of {rest}")
    elif facts.lanes.mpi and not facts.times.path_known:
        missing.append("waiting for other ranks: it is part of communication")
    if not facts.times.divided:
        missing.append("computation (the log has no processor times)")
    if not facts.has("posix"):
        missing.append("POSIX calls (the log has none)")
    if not facts.has("stdio"):
        missing.append("stdio calls (the log has none)")
    if facts.has("per_rank") or not len(facts.records):
        return tuple(missing)
    return (
        *missing,
        "times of single ranks on shared files (the log keeps sums, the slowest and the fastest)",
    )
