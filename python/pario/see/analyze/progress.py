"""The state of a run that has not ended, or was killed: the calls that it is in, and the ranks that
others wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal

import numpy as np

from pario.see.analyze.attendance import find_meetings
from pario.see.analyze.facts import Facts
from pario.see.analyze.progress_model import CallInProgress, Meeting, Progress
from pario.see.tables.model import CurrentCall
from pario.wording import name, plural, ranks, seconds

#: A call hangs from this part of the run on, within these bounds in seconds.
_SHARE, _LEAST, _MOST = 0.1, 1.0, 10.0
_PARTS = 3  # calls and ranks that the sentence names
#: Waiting for events, or for clients: a server without requests does not hang.
_POLLS = (
    *("poll", "__poll_chk", "ppoll", "__ppoll_chk"),
    *("select", "pselect", "epoll_wait", "epoll_pwait", "epoll_pwait2"),
)
_ACCEPTS = ("accept", "accept4")
_IDLE = (*_POLLS, *_ACCEPTS)

State = Literal["ended", "running", "killed"]


def progress(facts: Facts) -> Progress:
    """Return the state of the run."""
    state = _state(facts)
    if state == "ended":
        return Progress()
    now, exact = _moment(facts, state)
    calls = tuple(_calls(facts, now))
    last = _last_activity(facts)
    least = min(max(_LEAST, _SHARE * now), _MOST)
    meetings = tuple(m for m in find_meetings(facts.job, now) if m.seconds >= least)
    longest = max((call.seconds for call in calls if call.function not in _IDLE), default=0.0)
    silent = now - last >= least and longest >= least
    stuck = bool(meetings) or silent
    words = _Words(facts, calls, state)
    return Progress(
        state=state,
        moment=now,
        exact=exact,
        last_activity=last,
        stuck=stuck,
        calls=calls,
        meetings=meetings,
        sentence=words.sentence(now, last, meetings, least if stuck else 0.0, exact),
    )


def _own(facts: Facts) -> list[bool]:
    """Return for each process whether it belongs to the program, not to its launcher."""
    return [lane >= 0 for lane in facts.lanes.of_process.tolist()]


def _state(facts: Facts) -> State:
    job, own = facts.job, _own(facts)
    if any(own[row] for row in job.running):
        return "running"
    interrupted = [call.process for call in job.current if own[call.process]]
    # A command that succeeds ends helpers: the writer of a pipe that is no longer read.
    helpers = job.exit_status == 0 and all(job.processes["rank"][interrupted] < 0)
    return "killed" if interrupted and not helpers else "ended"


def _moment(facts: Facts, state: State) -> tuple[float, bool]:
    """Return the moment of looking, or of the end as far as it is known; False: it is later."""
    job = facts.job
    if state == "running":
        return job.now, True
    known = [*job.processes["seen"].tolist(), *(call.start for call in job.current)]
    end = job.command_end
    return (max(end, *known), True) if np.isfinite(end) else (max(known), False)


def _last_activity(facts: Facts) -> float:
    """Return the last moment at which a process of the program began or ended a call."""
    own, current, processes = _own(facts), facts.job.current, facts.job.processes
    starts = [call.start for call in current if own[call.process]]
    # The launcher saw the end of a killed command, long after its last call.
    ended = {call.process for call in current if not np.isnan(processes["end"][call.process])}
    seen = enumerate(processes["seen"].tolist())
    others = [moment for row, moment in seen if own[row] and row not in ended]
    return max([*starts, *others], default=0.0)


def _calls(facts: Facts, now: float) -> Iterator[CallInProgress]:
    """Yield the calls in progress of the program, in the order of ranks, processes and threads."""
    own, job = _own(facts), facts.job
    open_calls = [call for call in job.current if own[call.process]]
    open_calls.sort(key=lambda c: (facts.lanes.of_process[c.process], c.process, c.thread, c.depth))
    for _, nested in groupby(open_calls, key=lambda call: (call.process, call.thread)):
        outer, *inner = nested
        row = job.processes[outer.process]
        yield CallInProgress(
            rank=facts.lanes.rank(int(facts.lanes.of_process[outer.process])),
            pid=int(row["pid"]),
            host=job.hosts[row["host"]],
            program=job.programs[row["exe"]] if job.programs else "",
            thread=outer.thread,
            function=outer.function,
            inner=inner[-1].function if inner else "",
            path=outer.path or (inner[-1].path if inner else ""),
            start=outer.start,
            seconds=max(now - outer.start, 0.0),
            offset=outer.offset if outer.category in ("posix", "stdio", "mpiio") else -1,
            length=outer.length,
            waits_for=_waits_for(outer),
        )


def _waits_for(call: CurrentCall) -> str:
    """Return the event that the call waits for, in words; empty if that is not known."""
    if call.op == "lock":
        return "a lock that another process holds"
    if call.function in _POLLS:
        return "data from another process (sockets, pipes)"
    if call.function in _ACCEPTS:
        return "another process to connect"
    if call.fifo and call.op == "open":
        return "another process to open the other end of this FIFO"
    if call.fifo and call.op in ("read", "write"):
        action = "write to" if call.op == "read" else "read from"
        return f"another process to {action} this pipe"
    if call.category == "p2p" and call.offset >= 0 and "ecv" in call.function:
        return f"a message from rank {call.offset >> 32}"
    if call.category == "p2p" and call.offset >= 0 and "end" in call.function:
        return f"rank {call.offset >> 32} to receive a message"
    return ""


class _Words:
    """The sentence on the calls in progress, in the tense of the state."""

    def __init__(self, facts: Facts, calls: Sequence[CallInProgress], state: State) -> None:
        self._facts, self._calls, self._state = facts, calls, state
        self._of_rank: dict[int, list[CallInProgress]] = defaultdict(list)
        for call in calls:
            self._of_rank[call.rank].append(call)

    def sentence(
        self, now: float, last: float, meetings: Sequence[Meeting], least: float, exact: bool
    ) -> str:
        """Return all sentences; ``least``: shorter calls are not named."""
        lead = self._lead(now, last, exact)
        parts = [self._meeting(meeting) for meeting in meetings]
        named = {rank for m in meetings for rank in (*m.arrived, *m.missing)}
        others = [c for c in self._calls if c.seconds >= least and (c.rank not in named)]
        if self._state == "killed" or least:
            parts += self._lone_calls(others)
        shown = parts[:_PARTS]
        if len(parts) > _PARTS:
            shown[-1] += f"; and {len(parts) - _PARTS} more"
        return " ".join([lead, *(f"{part}." for part in shown)])

    def _lead(self, now: float, last: float, exact: bool) -> str:
        if self._state == "killed":
            return f"Killed after {'' if exact else 'at least '}{seconds(now)}."
        activity = f", last activity {seconds(now - last)} ago" if now - last >= _LEAST else ""
        return f"Running for {seconds(now)}{activity}."

    def _meeting(self, meeting: Meeting) -> str:
        who, have = self._subject(meeting.arrived)
        missing, _ = self._subject(meeting.missing)
        verb = self._tense("has" if len(meeting.missing) == 1 else "have", "had")
        states = self._states(meeting.missing)
        inside = self._inside(meeting.function, meeting.path)
        return (
            f"{who.capitalize()} {have} been {inside} for {seconds(meeting.seconds)};"
            f" {missing} {verb} not arrived: {states}"
        )

    def _states(self, missing: Sequence[int]) -> str:
        """Return the states of missing ranks; ranks in the same state stand together."""
        of_state: dict[str, list[int]] = defaultdict(list)
        for rank in missing:
            of_state[self._state_of(rank)].append(rank)
        parts = [
            f"{self._subject(group)[0]} {self._be(len(group))} {state}"
            for state, group in list(of_state.items())[:_PARTS]
        ]
        more = len(of_state) - _PARTS
        return ", ".join(parts) + (f", and {plural(more, 'more state')}" if more > 0 else "")

    def _state_of(self, rank: int) -> str:
        calls = self._of_rank.get(rank)
        if calls:
            call = max(calls, key=lambda call: call.seconds)
            wait = f", waiting for {call.waits_for}" if call.waits_for else ""
            return self._inside(call.function, call.path, call.inner) + wait
        rows = np.flatnonzero(self._facts.job.processes["rank"] == rank)
        if not len(rows):
            return "without a log"
        if not np.isnan(self._facts.job.processes["end"][rows[-1]]):
            return "at its end"
        if self._state == "running" and int(rows[-1]) not in self._facts.job.running:
            hosts = self._facts.job.processes["host"]
            here = {int(hosts[row]) for row in self._facts.job.running}
            return "dead" if int(hosts[rows[-1]]) in here else "outside of I/O and MPI, or dead"
        return "outside of I/O and MPI (computing, or in a wait that is not traced)"

    def _lone_calls(self, calls: Iterable[CallInProgress]) -> list[str]:
        """Return a clause for each function and file, the longest first."""
        groups: dict[tuple[str, str, str, str], list[CallInProgress]] = defaultdict(list)
        for call in sorted(calls, key=lambda call: -call.seconds):
            groups[call.function, call.path, call.inner, call.waits_for].append(call)
        return [self._lone(group) for group in groups.values()]

    def _lone(self, calls: Sequence[CallInProgress]) -> str:
        first = calls[0]
        if first.rank >= 0:
            who, have = self._subject(sorted({call.rank for call in calls}))
        else:
            who, have = self._processes(calls)
        duration = min(call.seconds for call in calls)
        wait = f", waiting for {first.waits_for}" if first.waits_for else ""
        inside = self._inside(first.function, first.path, first.inner)
        lasts = f" for {seconds(duration)}" if duration else ""
        been = f"{have} been" if duration else self._be(len(calls))
        return f"{who[0].upper()}{who[1:]} {been} {inside}{lasts}{wait}"

    def _processes(self, calls: Sequence[CallInProgress]) -> tuple[str, str]:
        pids = sorted({call.pid for call in calls})
        program = calls[0].program.rpartition("/")[2]
        more = f" and {len(pids) - _PARTS} more" if len(pids) > _PARTS else ""
        numbers = ", ".join(map(str, pids[:_PARTS])) + more
        who = f"{program} (process {numbers})" if program else f"process {numbers}"
        return who, self._tense("has" if len(pids) == 1 else "have", "had")

    def _subject(self, group: Sequence[int]) -> tuple[str, str]:
        """Return the ranks as a subject, and its form of "have"."""
        one = len(group) == 1
        return f"{'rank' if one else 'ranks'} {ranks(group)}", self._tense(
            "has" if one else "have", "had"
        )

    def _be(self, number: int) -> str:
        return self._tense("is" if number == 1 else "are", "was" if number == 1 else "were")

    def _tense(self, present: str, past: str) -> str:
        return present if self._state == "running" else past

    @staticmethod
    def _inside(function: str, path: str, inner: str = "") -> str:
        call = function if function.startswith("MPI_") else f"{function}()"
        nested = f" (in {inner})" if inner and inner != function else ""
        return f"inside {call}{f' of {name(path)}' if path else ''}{nested}"
