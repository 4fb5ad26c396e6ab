"""A pytest plugin: a test that exceeds its limit fails with all stacks and all its processes.

It replaces the timer of pytest-timeout, which knows the limits: ``timeout`` in pyproject.toml, and
``@pytest.mark.timeout(SECONDS)``. PARIO_TEST_PATIENCE multiplies them. The stacks and processes are
part of the failure, so that pytest-xdist shows them, too. A test that does not return to the
interpreter, because it hangs in native code, cannot fail: a little later its stacks are written to
standard error and the process of pytest, or pytest-xdist's worker, ends.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import pytest_timeout

from tests.support.processes import MARKS, add_mark, create_mark, describe_processes
from tests.support.waiting import FACTOR

#: Seconds from a test's limit to the end of the process.
GRACE = 60.0 * FACTOR
#: The limit of system and exhaustive tests, in limits of quick tests.
SLOW_FACTOR = 4
_ERRORS = pytest.StashKey[int]()
_MARK = pytest.StashKey[str]()
_SETTINGS = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    """Keeps standard error, which pytest's capturing replaces, and marks all descendants.

    Children get the default action of SIGINT, as in the foreground.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a shell inherits it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_ERRORS] = os.dup(2)
    config.stash[_MARK] = create_mark()
    os.environ[MARKS] = add_mark(os.environ, config.stash[_MARK])[MARKS]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gives tests that are not quick a longer limit, unless they or the options name one."""
    limit = config.getini("timeout")
    if limit and config.getoption("timeout") is None:
        for item in items:
            slow = item.get_closest_marker("system") or item.get_closest_marker("exhaustive")
            if slow and not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(SLOW_FACTOR * float(limit)))


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None  # the timer of pytest-timeout
    item.stash[_SETTINGS] = settings
    _set_timers(item, settings)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Gives the teardown of a failed test a limit, because its timers ended with the failure."""
    settings = item.stash.get(_SETTINGS, None)
    if settings and not settings.func_only:
        _set_timers(item, settings)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    if item.stash.get(_SETTINGS, None) is None:
        return None
    signal.setitimer(signal.ITIMER_REAL, 0)
    faulthandler.cancel_dump_traceback_later()
    return True


def _set_timers(item: pytest.Item, settings: Any) -> None:
    seconds = settings.timeout * FACTOR

    def fail_test(number: int, frame: object) -> None:
        __tracebackhide__ = True
        if settings.disable_debugger_detection or not pytest_timeout.is_debugging():
            pytest.fail(_describe_state(seconds, item.config.stash[_MARK]))

    signal.signal(signal.SIGALRM, fail_test)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    errors = item.config.stash[_ERRORS]
    faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=errors)


def _describe_state(seconds: float, mark: str) -> str:
    return (
        f"the test did not end within {seconds:g} s\n"
        f"--- stacks\n{_describe_stacks()}"
        f"--- processes\n{describe_processes(os.getpid(), mark)}"
    )


def _describe_stacks() -> str:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        return file.read().decode(errors="replace")
