"""The rule about small reads and writes of pipes, sockets, terminals and files of /proc, which have
no rows of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pario import wording
from pario.see.analyze import idioms
from pario.see.analyze.arrays import Floats, Ints, counts, ratio, sums
from pario.see.analyze.call_sites import CallSites
from pario.see.analyze.counted import PEERS
from pario.see.analyze.facts import Facts
from pario.see.analyze.ledger import COMPUTE, Claim
from pario.see.analyze.model import Fix
from pario.see.analyze.rules.base import Candidate, Rule, code, fact

MANY_MESSAGES = 10_000
SMALL_MESSAGE = 256  # bytes on average
LARGE_MESSAGE = 64 << 10  # the capacity of a pipe
#: Functions whose calls are not those of ``untraced_reads`` and ``untraced_writes``.
_RECEIVE = ("recv", "__recv_chk", "recvfrom", "__recvfrom_chk", "recvmsg")
_SEND = ("send", "sendto", "sendmsg")
_SOCKET_CALLS = (*_RECEIVE, *_SEND)
_READS, _WRITES = ("untraced_read", *_RECEIVE), ("untraced_write", *_SEND)
#: The module whose calls send and receive objects: a write, and a read of the length and one of the
#: object.
_CONNECTION = "multiprocessing/connection.py"
_READS_OF_OBJECT = 2


@dataclass(frozen=True)
class _Messages:
    """The messages of each process (rows of ``Job.processes``)."""

    calls: Floats
    bytes: Floats
    objects: Floats  # of multiprocessing, sent or received
    answers: Floats  # reads that wait for the answer to a message of the same thread
    waited: Floats  # seconds in these reads
    work: Floats  # processor seconds of the calls

    @property
    def seconds(self) -> Floats:
        """Seconds of the processor, and those until another process has answered."""
        if not self.answers.any():
            return self.work
        return self.work + np.minimum(self.answers * idioms.measure_answer(), self.waited)


def _cost_of_call() -> float:
    return idioms.measure(idioms.pass_a_byte) / 2


def _cost_of_object() -> float:
    return idioms.measure(idioms.pass_an_object) / 2


def _small_messages(facts: Facts) -> Iterator[Candidate]:
    calls, size = _count_messages(facts)
    lane = facts.lanes.of_process
    chosen = np.flatnonzero((lane >= 0) & (calls >= MANY_MESSAGES) & (size < SMALL_MESSAGE * calls))
    if not len(chosen):
        return  # before anything is measured on this machine
    messages = _examine_messages(facts, calls, size)
    per_lane = sums(lane[chosen], messages.seconds[chosen], facts.ranks)
    lanes = np.flatnonzero(per_lane > 0)
    count, moved = float(calls[chosen].sum()), float(messages.bytes[chosen].sum())
    programs = [facts.job.programs[number] for number in facts.job.processes["exe"][chosen]]
    names = list(dict.fromkeys(wording.name(program) for program in programs))
    yield Candidate(
        title=(
            f"{wording.count(count)} reads and writes of {wording.size(moved / count)} of pipes,"
            f" sockets, terminals or /proc, by {', '.join(names[:2])}"
        ),
        cause=_explain(messages, chosen),
        confidence="medium",
        evidence=(
            fact(
                f"{wording.count(count)} calls, {wording.size(moved)} together",
                calls=count,
                mean_bytes=moved / count,
            ),
        ),
        fixes=tuple(_find_fixes(messages, chosen)),
        claims=[Claim(lanes, COMPUTE, per_lane[lanes])],
        ranks=_ranks(facts, lanes),
        functions=(*_READS, *_WRITES),
        processes=tuple(chosen.tolist()),
        method=_describe_method(messages, chosen),
    )


def _explain(messages: _Messages, chosen: Ints) -> str:
    calls, work, answers = (
        float(values[chosen].sum()) for values in (messages.calls, messages.work, messages.answers)
    )
    text = (
        f"Each of these calls costs {wording.seconds(work / calls)} of processor time, regardless"
        " of its bytes."
    )
    if not answers:
        return text
    return (
        f"{text} {wording.count(answers)} reads wait for the answer of another process, which takes"
        f" {wording.seconds(idioms.measure_answer())} even without any work."
    )


def _describe_method(messages: _Messages, chosen: Ints) -> str:
    parts = [f"{wording.seconds(_cost_of_call())} for each call, as a byte through a pipe needs"]
    if messages.objects[chosen].any():
        cost = wording.seconds(_cost_of_object())
        parts.append(f"{cost} for each object that multiprocessing sends or receives")
    text = f"{', '.join(parts)}, on this machine, at most the processor time of the processes"
    if not messages.answers[chosen].any():
        return text
    answer = wording.seconds(idioms.measure_answer())
    return f"{text}; {answer} for each answer of another process, at most the time in these reads"


def _find_fixes(messages: _Messages, chosen: Ints) -> Iterator[Fix]:
    if messages.objects[chosen].any():
        yield code(
            "multiprocessing: send many items with each message: chunksize=1000 in Pool.map and"
            " imap, lists of items in Queue.put; arrays in shared memory or files."
        )
    if messages.answers[chosen].any():
        yield code(
            "Send many questions before the first answer is read, from another thread or at once"
            " (Python: Popen.communicate); or do the work in the program itself."
        )
    yield code(
        "Collect messages in a buffer: a stream of stdio with fread and fwrite, Python:"
        f" open(..., buffering=...), {wording.block(LARGE_MESSAGE)} per call."
    )
    yield code(
        "Shell: read takes single bytes from a pipe; read from a file (done < file), into"
        " an array (mapfile), or let one awk do the work of the loop."
    )
    yield code("Files of /proc: read them once a second, not in each step; keep them open.")


def _count_messages(facts: Facts) -> tuple[Floats, Floats]:
    """Return, per process, the calls that move messages, and their bytes; without those of an MPI
    library on its sockets."""
    processes, functions = facts.job.processes, facts.job.functions
    on_sockets = facts.job.select_functions(_SOCKET_CALLS.__contains__) & (not facts.lanes.mpi)
    rows = functions[on_sockets[functions["name"]] & (functions["category"] == PEERS)]
    calls, moved = (
        sums(rows["process"], rows[name], len(processes)) for name in ("calls", "bytes")
    )
    calls += processes["untraced_reads"] + processes["untraced_writes"]
    moved += processes["untraced_bytes_read"] + processes["untraced_bytes_written"]
    return calls, moved


def _examine_messages(facts: Facts, calls: Floats, moved: Floats) -> _Messages:
    """Return the costs of messages."""
    processes, sites = facts.job.processes, CallSites(facts)
    sent, received = (sites.count_below(_CONNECTION, names) for names in (_WRITES, _READS))
    objects = sent + received / _READS_OF_OBJECT
    others = np.maximum(calls - sent - received, 0.0)
    used = np.nan_to_num(processes["cpu_user"] + processes["cpu_system"])
    of_objects = objects * _cost_of_object() if objects.any() else objects
    work = np.minimum(others * _cost_of_call() + of_objects, used)
    return _Messages(calls, moved, objects, *_find_answers(facts), work)


def _find_answers(facts: Facts) -> tuple[Floats, Floats]:
    """Return, per process, the reads that wait for the answer to a write of the same thread, and
    the seconds in them. A read that waits takes longer than one of bytes that are there already."""
    processes, functions = facts.job.processes, facts.job.functions
    rows = functions[(functions["category"] == PEERS) & (functions["thread"] >= 0)]
    if facts.lanes.mpi or not len(rows):
        return np.zeros(len(processes)), np.zeros(len(processes))
    threads = int(rows["thread"].max()) + 1
    thread = rows["process"].astype(np.int64) * threads + rows["thread"]

    def add_up(names: tuple[str, ...], column: str) -> Floats:
        own = facts.job.select_functions(names.__contains__)[rows["name"]]
        return sums(thread[own], rows[column][own], len(processes) * threads)

    reads, seconds = add_up(_READS, "calls"), add_up(_READS, "seconds")
    waits = seconds > idioms.measure(idioms.pass_a_byte) * reads
    answers = np.where(waits, np.minimum(reads, add_up(_WRITES, "calls")), 0.0)
    in_answers = seconds * ratio(answers, reads)
    by_process = (len(processes), threads)
    return answers.reshape(by_process).sum(axis=1), in_answers.reshape(by_process).sum(axis=1)


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
        "Half the time of a byte through a pipe for each call, or of an object through a connection"
        " of Python's multiprocessing, at most the processor time of the processes; and the time in"
        " which another process answers a byte for each read that waits for an answer (all measured"
        " on this machine)."
    ),
    advice="Buffers of 64 KiB on both sides.",
    control="The same bytes in calls of 64 KiB.",
    find=_small_messages,
    why_not="messages through pipes are no files, which pario could buffer",
)
