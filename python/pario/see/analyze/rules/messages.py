"""The rule about small reads and writes of pipes, sockets, terminals and files of /proc, which have
no rows of files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, counts, sums
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.rules.base import Candidate, Rule, code, fact
from pario.see.analyze.split import PEERS

MANY_MESSAGES = 50_000
SMALL_MESSAGE = 256  # bytes on average
LARGE_MESSAGE = 64 << 10  # the capacity of a pipe
#: Functions whose calls are not those of ``untraced_reads`` and ``untraced_writes``.
_SOCKET_CALLS = (
    *("recv", "__recv_chk", "recvfrom", "__recvfrom_chk", "recvmsg"),
    *("send", "sendto", "sendmsg"),
)
_CALLS = ("untraced_read", "untraced_write", *_SOCKET_CALLS)


def _small_messages(facts: Facts) -> Iterator[Candidate]:
    processes = facts.job.processes
    calls, moved = _count_messages(facts)
    lane = facts.lanes.of_process
    chosen = np.flatnonzero(
        (lane >= 0) & (calls >= MANY_MESSAGES) & (moved < SMALL_MESSAGE * calls)
    )
    if not len(chosen):
        return
    seconds = _find_seconds(facts, calls)[chosen]
    per_lane = sums(lane[chosen], seconds, facts.ranks)
    lanes = np.flatnonzero(per_lane > 0)
    count, size = float(calls[chosen].sum()), float(moved[chosen].sum() / calls[chosen].sum())
    programs = [facts.job.programs[number] for number in processes["exe"][chosen]]
    names = list(dict.fromkeys(wording.name(program) for program in programs))
    yield Candidate(
        title=(
            f"{wording.count(count)} reads and writes of {wording.size(size)} of pipes, sockets,"
            f" terminals or /proc, by {', '.join(names[:2])}"
        ),
        cause=(
            f"Each of these calls costs {wording.seconds(float(seconds.sum()) / count)} of"
            " processor time, regardless of its bytes."
        ),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.size(float(moved[chosen].sum()))}"
                " together",
                calls=count,
                mean_bytes=size,
            ),
        ),
        fixes=(
            code(
                "Collect messages in a buffer: a stream of stdio with fread and fwrite, Python:"
                f" open(..., buffering=...), {wording.block(LARGE_MESSAGE)} per call."
            ),
            code(
                "Shell: read takes single bytes from a pipe; read from a file (done < file), into"
                " an array (mapfile), or let one awk do the work of the loop."
            ),
            code("Files of /proc: read them once a second, not in each step; keep them open."),
        ),
        claims=[Claim(lanes, COMPUTE, per_lane[lanes])],
        ranks=_ranks(facts, lanes),
        functions=_CALLS,
        processes=tuple(chosen.tolist()),
        method=(
            f"{wording.seconds(idioms.measure(idioms.pass_a_byte) / 2)} for each call, as a byte"
            " through a pipe needs on this machine, at most the processor time of the processes"
        ),
    )


def _count_messages(facts: Facts) -> tuple[Floats, Floats]:
    """Return, per process, the calls that move messages, and their bytes; without those of an MPI
    library on its sockets."""
    processes, functions = facts.job.processes, facts.job.functions
    on_sockets = facts.job.select_functions(_SOCKET_CALLS.__contains__) & (not facts.lanes.mpi)
    rows = functions[on_sockets[functions["name"]] & (functions["category"] == PEERS)]
    calls, moved = (
        sums(rows["process"], rows[name], len(processes)) for name in ("calls", "bytes")
    )
    return (
        calls + processes["untraced_reads"] + processes["untraced_writes"],
        moved + processes["untraced_bytes_read"] + processes["untraced_bytes_written"],
    )


def _find_seconds(facts: Facts, calls: Floats) -> Floats:
    """Return, per process, the processor seconds of its calls."""
    processes = facts.job.processes
    used = np.nan_to_num(processes["cpu_user"] + processes["cpu_system"])
    return np.asarray(np.minimum(calls * idioms.measure(idioms.pass_a_byte) / 2, used))


def _ranks(facts: Facts, lanes: np.ndarray) -> tuple[int, ...]:
    if not facts.lanes.mpi or counts(lanes, facts.ranks).all():
        return ()
    return tuple(facts.lanes.rank(int(lane)) for lane in lanes)


SMALL_MESSAGES = Rule(
    name="small-messages",
    remedy="sending larger messages",
    sees="Reads and writes of a few bytes of pipes, sockets, terminals or files of /proc.",
    threshold=(
        f"At least {MANY_MESSAGES:,} such calls per process, of less than {SMALL_MESSAGE} bytes on"
        " average."
    ),
    estimate=(
        "Half the time of a byte through a pipe (measured on this machine) for each call, at most"
        " the processor time of the processes."
    ),
    advice="Buffers of 64 KiB on both sides.",
    control="The same bytes in calls of 64 KiB.",
    find=_small_messages,
    why_not="messages through pipes are no files, which pario could buffer",
)
