"""The state of a run when its logs were read: calls in progress, and ranks that wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CallInProgress:
    """A call that a thread has not finished, with the calls inside it."""

    rank: int  # -1: no MPI
    pid: int
    host: str
    program: str
    thread: int
    function: str  # the outermost: the call of the program
    inner: str  # the innermost call inside it; empty: none
    path: str  # empty: none, or not known
    start: float
    seconds: float  # so far; at least, if the end is not known
    offset: int  # -1: not known
    length: int  # bytes requested; 0: not known
    waits_for: str  # "a lock that another process holds"; empty: not known


@dataclass(frozen=True)
class Meeting:
    """A collective call in which ranks wait for others."""

    function: str
    path: str
    seconds: float  # since the last of them arrived
    arrived: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True)
class Progress:
    """The state of the run when its logs were read."""

    state: Literal["ended", "running", "killed"] = "ended"
    moment: float = 0.0  # of reading; the end of a killed run
    exact: bool = True  # False: the end of a killed run is not known, and later than `moment`
    last_activity: float = 0.0  # the last moment at which a process made or ended a call
    stuck: bool = False  # calls hang: the verdict begins with them
    calls: tuple[CallInProgress, ...] = ()
    meetings: tuple[Meeting, ...] = ()  # those that lack ranks for a long time
    sentence: str = ""  # empty: the run has ended
