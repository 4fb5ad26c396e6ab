"""Ranks that do something together. All that they agree on goes through one kind of meeting, :meth:`Ranks.together`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from pario import wording
from pario.errors import ParioError
from pario.interrupts import check
from pario.progress import Show, silent

Value = TypeVar("Value")
Reply = TypeVar("Reply")

#: Seconds that a rank is waited for.
PATIENCE = 600.0
#: Seconds that rank 0's answer is waited for in addition.
_GRACE = 10.0
#: How often in its patience a rank is told that another one gets on with what it waits for.
_OFTEN = 4
#: The number of a message that says so; those of questions begin at 1.
MOVED = 0
_TAG = 417
#: A nap between two looks for a message: at most so much of the time that it is waited for, and seconds.
_SHARE, _NAP = 16, 1e-3

#: What a rank has come to, what went wrong there, and what it found; None where it no longer waits for an answer.
_Outcome = tuple[str, str, Any]


@dataclass(frozen=True)
class _Each:
    """What rank 0 decides, where it is something else for each rank."""

    replies: Sequence[Any]


class Ranks(ABC):
    """``size`` processes, of which this one is ``rank``."""

    rank: int
    size: int
    patience: float = PATIENCE
    comm: Any = None  # of mpi4py, where there is one
    error: type[ParioError] = ParioError  # what is raised here for what went wrong elsewhere
    _asked = 0  # how often rank 0 was, by this one
    _early: Sequence[tuple[int, Any]] = ()  # on rank 0: what others said when it was still at what they asked before
    _missed: Mapping[int, str] = MappingProxyType({})  # on rank 0: who was absent, and where

    @property
    def is_first(self) -> bool:
        """The one that decides, and speaks to the user."""
        return self.rank == 0

    @property
    def threads(self) -> bool:
        """Whether the ranks may meet in any thread."""
        return True

    def again(self) -> Ranks:
        """The same ranks, for meetings that have nothing to do with those here. Collective."""
        return self

    def free(self) -> None:  # noqa: B027  most have nothing
        """Gives back what was taken for them, as by :meth:`again`. Collective."""

    def agree(self, what: str, work: Callable[[], Value]) -> Value:
        """What ``work`` returns here, where it returned on all ranks. Collective, as :meth:`together`."""
        mine: list[Value] = []
        self.together(what, lambda: mine.append(work()), lambda _: None)
        return mine[0]

    def together(self, what: str, work: Callable[[], Value], decide: Callable[[list[Value]], Reply]) -> Reply:
        """All ranks work, rank 0 decides on what came of it, all get what it says. Collective.

        What is raised anywhere is raised everywhere: as it is on the rank where it happened, as ``error`` with the number of the
        rank on others. So is the absence of ranks after ``patience`` seconds, which are named, and that ranks have come to something else
        than ``what``.
        """
        mine: BaseException | None = None
        outcome: _Outcome
        try:
            found = work()
            check()
            outcome = (what, "", found)
        except BaseException as error:  # an interrupt as well: the others wait
            mine, outcome = error, (what, _told(error), None)
        if mine is not None and not isinstance(mine, Exception):
            self._leave(what, outcome, decide)
            raise mine
        trouble, reply, blamed = self._lead(what, outcome, decide) if self.is_first else self._follow(what, outcome)
        if mine is not None:
            raise mine
        if isinstance(blamed, BaseException) and self.is_first:
            raise blamed
        if trouble:
            raise self.error(trouble)
        return reply  # type: ignore[no-any-return]

    def deal(self, what: str, work: Callable[[], Value], decide: Callable[[list[Value]], Sequence[Reply]]) -> Reply:
        """The same, where rank 0 has something else to say to each rank. Collective."""
        reply: Any = self.together(what, work, lambda found: _Each(decide(found)))
        return reply  # type: ignore[no-any-return]

    def moving(self, show: Show = silent) -> Show:
        """The same, for what may take longer than the patience of those who wait for this rank meanwhile: they are told that it gets on. In
        the thread in which the ranks meet.
        """
        said = time.monotonic()

        def shown(done: int, whole: int) -> None:
            nonlocal said
            show(done, whole)
            if self.size > 1 and time.monotonic() - said > self.patience / _OFTEN:
                said = time.monotonic()
                self._tell_that_it_moves(range(1, self.size) if self.is_first else (0,))

        return shown

    def _tell_that_it_moves(self, others: Iterable[int]) -> None:
        for rank in others:
            self._send(rank, (MOVED, "", None) if self.is_first else (MOVED, None))

    def _leave(self, what: str, outcome: _Outcome, decide: Callable[[list[Any]], Any]) -> None:
        """Tells the others of an interrupt, and waits no longer than for those that are about to come: who interrupts wants an end."""
        if self.is_first:
            patience, self.patience = self.patience, min(self.patience, _GRACE)
            try:
                self._lead(what, outcome, decide)
            finally:
                self.patience = patience
        else:
            self._asked += 1
            self._send(0, (self._asked, outcome))

    def _lead(self, what: str, mine: _Outcome, decide: Callable[[list[Any]], Any]) -> tuple[str, Any, Any]:
        outcomes, numbers = {0: mine}, dict[int, int]()
        try:
            self._collect(outcomes, numbers)
        except BaseException as error:
            for rank, number in numbers.items():
                self._send(rank, (number, f"{what}: rank 0: {_told(error)}", None))
            raise
        absent = set(range(self.size)) - set(outcomes)
        blamed = None
        if absent:
            self._missed = {**self._missed, **dict.fromkeys(absent, what)}
            answer = (f"{what}: rank {wording.ranks(absent)} did not come within {wording.seconds(self.patience)}", None)
        else:
            answer, blamed = _judged(outcomes, decide)
        for rank, number in numbers.items():
            self._send(rank, (number, *_for(rank, answer)))
        return (*_for(0, answer), blamed)

    def _collect(self, outcomes: dict[int, _Outcome], numbers: dict[int, int]) -> None:
        """What those say that come in time, and the numbers of what they ask. Who has come to something else may no longer wait for it."""
        mine, said = outcomes[0], time.monotonic()
        deadline = said + self.patience
        early, self._early = list(self._early), ()
        while (waiting := len(outcomes) < self.size) or any(what != mine[0] for what, _, _ in outcomes.values()):
            message = early.pop(0) if early else self._receive(None, deadline if waiting else 0.0)
            if message is None:
                break
            rank, (number, outcome) = message
            if number == MOVED:
                deadline = time.monotonic() + self.patience
                if deadline - said > self.patience * (1 + 1 / _OFTEN):  # now and then, whoever they are that get on
                    said = deadline - self.patience
                    self._tell_that_it_moves(numbers)  # they wait for this one
            elif outcome is None:
                if numbers.get(rank) == number and outcomes[rank][0] != mine[0]:
                    del numbers[rank], outcomes[rank]
            elif outcome[0] == self._missed.get(rank) != mine[0]:
                self._missed = {other: where for other, where in self._missed.items() if other != rank}
                self._send(
                    rank, (number, f"{outcome[0]}: rank {rank} came too late, the others had waited {wording.seconds(self.patience)}", None)
                )
            elif rank in outcomes:
                self._early = [*self._early, message]
            else:
                numbers[rank], outcomes[rank] = number, outcome
        self._early = [*self._early, *early]

    def _follow(self, what: str, outcome: _Outcome) -> tuple[str, Any, Any]:
        self._asked += 1
        self._send(0, (self._asked, outcome))
        deadline = time.monotonic() + 2 * self.patience + _GRACE
        while (message := self._receive(0, deadline)) is not None:
            number, text, reply = message[1]
            if number == MOVED:
                deadline = time.monotonic() + 2 * self.patience + _GRACE
            elif number == self._asked:  # else rank 0 answers, too late, what it was asked before
                return text, reply, None
        self._send(0, (self._asked, None))
        return f"{what}: rank 0 did not come within {wording.seconds(2 * self.patience + _GRACE)}", None, None

    @abstractmethod
    def _send(self, rank: int, message: Any) -> None:
        """Leaves a message to a rank; does not wait for it to be taken."""

    @abstractmethod
    def _receive(self, rank: int | None, deadline: float) -> tuple[int, Any] | None:
        """The next message, of a rank or of any; None where there is none until then, or now, where that is past."""


def _for(rank: int, answer: tuple[str, Any]) -> tuple[str, Any]:
    text, reply = answer
    return text, reply.replies[rank] if isinstance(reply, _Each) else reply


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, ParioError | OSError) else f"{type(error).__name__}: {error}".removesuffix(": ")


def _judged(outcomes: dict[int, _Outcome], decide: Callable[[list[Any]], Any]) -> tuple[tuple[str, Any], BaseException | None]:
    """Rank 0's answer, and what it raised itself."""
    elsewhere = [rank for rank, (what, _, _) in sorted(outcomes.items()) if what != outcomes[0][0]]
    if elsewhere:
        return (f"rank {elsewhere[0]} has come to {outcomes[elsewhere[0]][0]}, rank 0 to {outcomes[0][0]}", None), None
    failed = {rank: text for rank, (_, text, _) in sorted(outcomes.items()) if text}
    if failed:
        texts = dict.fromkeys(failed.values())
        where = [f"rank {wording.ranks(rank for rank, said in failed.items() if said == text)}: {text}" for text in list(texts)[:3]]
        return ("; ".join(where), None), None
    try:
        return ("", decide([outcomes[rank][2] for rank in range(len(outcomes))])), None
    except BaseException as error:
        return (_told(error), None), error


class OneRank(Ranks):
    """A process alone."""

    rank, size = 0, 1

    def _send(self, rank: int, message: Any) -> None:
        raise AssertionError("there is nobody to send to")

    def _receive(self, rank: int | None, deadline: float) -> None:
        raise AssertionError("there is nobody to receive from")


class MpiRanks(Ranks):
    """Those of an mpi4py communicator, which nobody else uses, also not later: messages may be left. They sleep while they wait."""

    def __init__(self, comm: Any, patience: float = PATIENCE, error: type[ParioError] = ParioError) -> None:
        self.comm, self.error = comm, error
        self.rank, self.size, self.patience = comm.Get_rank(), comm.Get_size(), patience
        self._sent: list[Any] = []

    @property
    def threads(self) -> bool:
        """As the MPI was initialised."""
        from mpi4py import MPI

        return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)

    def again(self) -> Ranks:
        """A copy of the communicator."""
        return MpiRanks(self.comm.Dup(), self.patience, self.error)

    def _send(self, rank: int, message: Any) -> None:
        self._sent = [request for request in self._sent if not request.Test()]
        self._sent.append(self.comm.isend(message, rank, _TAG))

    def _receive(self, rank: int | None, deadline: float) -> tuple[int, Any] | None:
        from mpi4py import MPI

        begin, status = time.monotonic(), MPI.Status()
        while (message := self.comm.improbe(MPI.ANY_SOURCE if rank is None else rank, _TAG, status)) is None:
            check()
            now = time.monotonic()
            if now > deadline:
                return None
            time.sleep(min((now - begin) / _SHARE, _NAP))  # what comes soon is not waited for much longer than it takes
        return status.Get_source(), message.recv()

    def free(self) -> None:
        """Gives the copy of the communicator back. Collective."""
        for request in self._sent:
            request.Wait()
        self.comm.Free()
