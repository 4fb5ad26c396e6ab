"""A second request for a straggler: the first of two equal requests to answer is used."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

_Result = TypeVar("_Result")

#: A request is a straggler after this multiple of the time of the slower requests.
_TIMES = 3.0
#: The least and the most seconds until a request is a straggler; the most while few have answered.
_LEAST, _MOST = 0.1, 2.0
#: Requests whose times are remembered, and the number of them after which they are judged anew.
_REMEMBERED, _ENOUGH = 128, 16
#: At most one request of so many is repeated, beyond the first ones: a slow server gets no more.
_ONE_OF, _FIRST_ONES = 20, 4
#: Threads for requests: as many as the native readers have at most, and the second requests.
_THREADS = 160


class Hedge:
    """Makes requests, and a second one for each straggler. Any thread may use it."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=_REMEMBERED)
        #: Seconds until a request is a straggler.
        self._patience = _MOST
        self._lock = threading.Lock()
        self._pool, self._process = ThreadPoolExecutor(_THREADS, "pario-objects"), os.getpid()
        #: Requests, and second requests among them.
        self.requests = self.repeated = 0

    def run(self, request: Callable[[], _Result]) -> _Result:
        """The result of ``request``, which may be called twice at the same time. Raises its
        exception."""
        if self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(_THREADS, "pario-objects"), os.getpid()
        first = self._pool.submit(self._measure, request)
        done, _ = wait([first], self._patience)
        if done or not self._may_repeat():
            return first.result()
        return _result_of_first([first, self._pool.submit(self._measure, request)])

    def _measure(self, request: Callable[[], _Result]) -> _Result:
        begin = time.monotonic()
        result = request()
        with self._lock:
            self._times.append(time.monotonic() - begin)
            self.requests += 1
            if self.requests % _ENOUGH == 0:
                slow = sorted(self._times)[int(len(self._times) * 0.95)]
                self._patience = min(max(_TIMES * slow, _LEAST), _MOST)
        return result

    def _may_repeat(self) -> bool:
        with self._lock:
            if self.repeated >= _FIRST_ONES + self.requests / _ONE_OF:
                return False
            self.repeated += 1
            return True


def _result_of_first(pending: list[Future[_Result]]) -> _Result:
    """The result of the first request that succeeds; the last exception if all fail."""
    waiting = set(pending)
    while True:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        good = [one for one in done if one.exception() is None]
        if good or not waiting:
            return (good or list(done))[0].result()
