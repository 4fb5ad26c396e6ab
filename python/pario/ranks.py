"""Ranks that work together. All their agreements are collective calls of one kind,
:meth:`Ranks.together`."""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pario import wording
from pario.errors import ParioError
from pario.interrupts import check, defer_interrupt
from pario.progress import Show, silent

if TYPE_CHECKING:
    from pario._native import Comm, SharedFile

Value = TypeVar("Value")
Reply = TypeVar("Reply")

#: Seconds to wait for a rank.
PATIENCE = 600.0
#: Additional seconds to wait for rank 0's answer.
_GRACE = 10.0
#: Keep-alives that a working rank sends within the patience of a waiting one.
_KEEP_ALIVES = 4
#: The number of rank 0's last answer, which is that to any question, and the last call of others.
_LAST, _END = -1, "the end"

#: The name of a rank's call, its error, and its result; None from a rank that no longer waits for
#: an answer.
_Outcome = tuple[str, str, Any]


def node_name() -> str:
    """A name that is equal for ranks with the same memory and disks. Nodes may all be called
    localhost, so it includes the kernel's boot ID; containers of a node have different names."""
    try:
        return f"{socket.gethostname()} {Path('/proc/sys/kernel/random/boot_id').read_text()}"
    except OSError:
        return socket.gethostname()


@dataclass(frozen=True)
class _Each:
    """A decision of rank 0 that differs between the ranks."""

    replies: Sequence[Any]


class Ranks:
    """``size`` processes, of which this one is ``rank``.

    ``comm``: the communicator of mpi4py, if there is one. ``error``: the exception for errors of
    other ranks. ``threads``: any thread may make the collective calls.
    """

    def __init__(
        self,
        messages: Comm | None,
        patience: float = PATIENCE,
        error: type[ParioError] = ParioError,
        *,
        comm: Any = None,
        threads: bool = True,
    ) -> None:
        self._messages = messages
        self.rank, self.size = (messages.rank, messages.size) if messages else (0, 1)
        self.patience, self.error, self.comm, self.threads = patience, error, comm, threads
        self._channel = messages.channel() if messages else 0
        self._asked = 0  # questions of this rank to rank 0
        self._ended: dict[int, _Outcome] = {}  # the last calls of ranks that have left
        #: True if rank 0 has died, so that another one has to tell the user.
        self.first_is_lost = False
        # On rank 0: messages that arrived before their call, and the calls that absent ranks have
        # missed.
        self._early: Sequence[tuple[int, Any]] = ()
        self._missed: Mapping[int, str] = MappingProxyType({})

    @property
    def is_first(self) -> bool:
        """True on the rank that decides, and prints messages to the user."""
        return self.rank == 0

    @property
    def on_node(self) -> int:
        """The number of ranks on this rank's node, itself included."""
        nodes = self._messages.nodes if self._messages else [0]
        return nodes.count(nodes[self.rank])

    def again(self) -> Ranks:
        """The same ranks, for collective calls independent of those here. All ranks call it in the
        same order."""
        return Ranks(
            self._messages, self.patience, self.error, comm=self.comm, threads=self.threads
        )

    def agree(self, what: str, work: Callable[[], Value]) -> Value:
        """Runs ``work`` and returns its result once it has succeeded on all ranks. Collective, as
        :meth:`together`."""
        mine: list[Value] = []
        self.together(what, lambda: mine.append(work()), lambda _: None)
        return mine[0]

    def together(
        self, what: str, work: Callable[[], Value], decide: Callable[[list[Value]], Reply]
    ) -> Reply:
        """Runs ``work`` on all ranks and ``decide`` on rank 0; returns its decision. Collective.

        An exception of one rank is raised on all: unchanged on the rank where it occurred, as
        ``error`` with the number of that rank on others. It is also an error if a rank has died, is
        absent for ``patience`` seconds without a keep-alive of any rank, or makes another call than
        ``what``.
        """
        mine: BaseException | None = None
        outcome: _Outcome
        try:
            found = work()
            check()
            outcome = (what, "", found)
        except BaseException as error:  # an interrupt as well: the others wait
            mine, outcome = error, (what, _text(error), None)
        if mine is not None and not isinstance(mine, Exception):
            self._leave(what, outcome, decide)
            raise mine
        text, reply, raised = (
            self._lead(what, outcome, decide) if self.is_first else self._follow(what, outcome)
        )
        if mine is not None:
            raise mine
        if isinstance(raised, BaseException) and self.is_first:
            raise raised
        if text:
            raise self.error(text)
        return reply  # type: ignore[no-any-return]

    def deal(
        self, what: str, work: Callable[[], Value], decide: Callable[[list[Value]], Sequence[Reply]]
    ) -> Reply:
        """As :meth:`together`, with one reply for each rank. Collective."""
        reply: Any = self.together(what, work, lambda found: _Each(decide(found)))
        return reply  # type: ignore[no-any-return]

    def gather(self, mine: bytes) -> list[bytes]:
        """Sends the bytes of each rank to all ranks. Collective; an interrupt during that of MPI is
        raised at its end."""
        if self.comm is None:
            return self.together("the exchange", lambda: mine, lambda found: found)
        with defer_interrupt():
            # MPI would wait forever for a rank that has left: all are here before it begins.
            self.together("the exchange", lambda: None, lambda _: None)
            return self.comm.allgather(mine)  # type: ignore[no-any-return]

    def moving(self, show: Show = silent) -> Show:
        """Returns a ``show`` that also sends keep-alives, for work that may take longer than the
        patience of other ranks. For the thread that makes the collective calls."""
        messages = self._messages
        if messages is None or self.size == 1:
            return show
        interval = self.patience / _KEEP_ALIVES

        def show_alive(done: int, whole: int) -> None:
            show(done, whole)
            messages.keep_alive(interval)

        return show_alive

    @property
    def can_open_files(self) -> bool:
        """True if this rank can take part in :meth:`open_file`; all ranks must agree first. A wait
        that ended without a rank forbids it for good.

        The messages of PyTorch's store are too slow for the bytes of several nodes.
        """
        messages = self._messages
        if messages is None or self.size == 1:
            return False
        return messages.can_open and (self.comm is not None or len(set(messages.nodes)) == 1)

    @property
    def can_open_on_node(self) -> bool:
        """As :attr:`can_open_files`, for the ranks of this rank's node among themselves."""
        return self._messages is not None and self.on_node > 1 and self._messages.can_open

    @property
    def node(self) -> int:
        """The number of this rank's node; -1 for a process alone."""
        return self._messages.nodes[self.rank] if self._messages else -1

    def open_file(
        self, path: str, *, writes: bool, node: bool = False, opened: int = -1
    ) -> SharedFile:
        """Opens a file that these ranks write or read together, or with ``node`` those of this
        rank's node. Collective over them, with the same error on all.

        ``opened``: a descriptor of the file, of which this rank uses a copy; -1: it has none.
        """
        if self._messages is None:
            from pario._native import open_alone

            return open_alone(os.fsencode(path), writes)
        return self._messages.open(os.fsencode(path), writes, node, self.patience, opened)

    def _send(self, rank: int, message: Any) -> None:
        """Sends a message to a rank; does not wait until it is received."""
        assert self._messages is not None
        self._messages.send(rank, self._channel, pickle.dumps(message))

    def _receive(self, rank: int, begin: float, patience: float) -> tuple[int, Any] | None:
        """The next message of a rank (-1: of any); None if patience ended.

        Raises ProcessLookupError if a rank has died.
        """
        assert self._messages is not None
        message = self._messages.receive(self._channel, rank, begin, patience, check)
        return message and (message[0], pickle.loads(message[1]))

    def leave(self, error: BaseException) -> None:
        """Reports the end of this rank by an error to the others: they get it in their current or
        next collective call. The last call of this rank; it does not wait, nor raise if another
        rank has died."""
        if self._messages is None:
            return
        text = "it was interrupted" if isinstance(error, KeyboardInterrupt) else _text(error)
        with suppress(Exception):
            if self.is_first:
                for rank in range(1, self.size):
                    self._send(rank, (_LAST, f"rank 0: {text}", None))
            else:
                self._asked += 1
                self._send(0, (self._asked, (_END, text, None)))

    def _leave(self, what: str, outcome: _Outcome, decide: Callable[[list[Any]], Any]) -> None:
        """Reports an interrupt to the other ranks. Rank 0 waits for them _GRACE seconds at most,
        because the user wants the program to end."""
        if self.is_first:
            patience, self.patience = self.patience, min(self.patience, _GRACE)
            try:
                self._lead(what, outcome, decide)
            finally:
                self.patience = patience
        else:
            self._asked += 1
            self._send(0, (self._asked, outcome))

    def _lead(
        self, what: str, mine: _Outcome, decide: Callable[[list[Any]], Any]
    ) -> tuple[str, Any, Any]:
        outcomes, numbers = {0: mine, **self._ended}, dict[int, int]()
        dead = ""
        try:
            self._collect(outcomes, numbers)
        except ProcessLookupError as error:
            dead = str(error.strerror)
        except BaseException as error:
            for rank, number in numbers.items():
                self._send(rank, (number, f"{what}: rank 0: {_text(error)}", None))
            raise
        absent = set(range(self.size)) - set(outcomes)
        raised = None
        if absent:
            self._missed = {**self._missed, **dict.fromkeys(absent, what)}
            late = (
                f"rank {wording.ranks(absent)} did not come within {wording.seconds(self.patience)}"
            )
            answer = f"{what}: {dead or late}", None
        else:
            answer, raised = _judge(outcomes, decide)
        for rank, number in numbers.items():
            self._send(rank, (number, *_for(rank, answer)))
        return (*_for(0, answer), raised)

    def _collect(self, outcomes: dict[int, _Outcome], numbers: dict[int, int]) -> None:
        """Adds the outcomes that arrive in time, and the numbers of their questions. A rank in
        another call may no longer wait for an answer."""
        mine, begin = outcomes[0], time.monotonic()
        early, self._early = list(self._early), ()
        while (waiting := len(outcomes) < self.size) or any(
            what != mine[0] for what, _, _ in outcomes.values()
        ):
            message = (
                early.pop(0)
                if early
                else self._receive(-1, begin, self.patience if waiting else 0.0)
            )
            if message is None:
                break
            rank, (number, outcome) = message
            if outcome is not None and outcome[0] == _END:
                self._ended[rank] = outcome
            if outcome is None:
                if numbers.get(rank) == number and outcomes[rank][0] != mine[0]:
                    del numbers[rank], outcomes[rank]
            elif outcome[0] == self._missed.get(rank) != mine[0]:
                self._refuse(rank, number, outcome[0])
            elif rank in outcomes:
                self._early = [*self._early, message]
            else:
                numbers[rank], outcomes[rank] = number, outcome
        self._early = [*self._early, *early]

    def _refuse(self, rank: int, number: int, what: str) -> None:
        """Answers a rank that arrived after its call had ended."""
        self._missed = {other: where for other, where in self._missed.items() if other != rank}
        waited = wording.seconds(self.patience)
        text = f"{what}: rank {rank} came too late, the others had waited {waited}"
        self._send(rank, (number, text, None))

    def _follow(self, what: str, outcome: _Outcome) -> tuple[str, Any, Any]:
        if self._ended:
            return self._ended[0][1], None, None
        self._asked += 1
        begin, patience = time.monotonic(), 2 * self.patience + _GRACE
        try:
            self._send(0, (self._asked, outcome))
            while (message := self._receive(0, begin, patience)) is not None:
                number, text, reply = message[1]
                if number == _LAST:
                    self._ended[0] = (_END, text, None)
                if number in (self._asked, _LAST):  # not a late answer to an earlier question
                    return text, reply, None
        except ProcessLookupError as error:
            self.first_is_lost = True
            return f"{what}: {error.strerror}", None, None
        self._send(0, (self._asked, None))
        return f"{what}: rank 0 did not come within {wording.seconds(patience)}", None, None


def _for(rank: int, answer: tuple[str, Any]) -> tuple[str, Any]:
    text, reply = answer
    return text, reply.replies[rank] if isinstance(reply, _Each) else reply


def _text(error: BaseException) -> str:
    return (
        str(error)
        if isinstance(error, ParioError | OSError)
        else f"{type(error).__name__}: {error}".removesuffix(": ")
    )


def _judge(
    outcomes: dict[int, _Outcome], decide: Callable[[list[Any]], Any]
) -> tuple[tuple[str, Any], BaseException | None]:
    """Rank 0's answer, and the exception of ``decide`` or None."""
    failed = {rank: text for rank, (_, text, _) in sorted(outcomes.items()) if text}
    if failed:
        texts = dict.fromkeys(failed.values())
        where = [
            f"rank {wording.ranks(rank for rank, error in failed.items() if error == text)}: {text}"
            for text in list(texts)[:3]
        ]
        return ("; ".join(where), None), None
    elsewhere = [rank for rank, (what, _, _) in sorted(outcomes.items()) if what != outcomes[0][0]]
    if elsewhere:
        return (
            (
                f"rank {elsewhere[0]} has called {outcomes[elsewhere[0]][0]}, rank 0"
                f" {outcomes[0][0]}"
            ),
            None,
        ), None
    try:
        return ("", decide([outcomes[rank][2] for rank in range(len(outcomes))])), None
    except BaseException as error:
        return (_text(error), None), error


class OneRank(Ranks):
    """A process alone."""

    def __init__(self) -> None:
        super().__init__(None)
