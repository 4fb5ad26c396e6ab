from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PLUGIN = 'pytest_plugins = ["tests.support.limits"]\n'
#: Seconds for tests that only the second limit ends; others may need longer to print their failure.
NO_GRACE = "import tests.support.limits\ntests.support.limits.GRACE = 1.0\n"
HANGS_IN_PYTHON = """
import pytest, subprocess, threading, time
def wait_beside(): time.sleep(1000)
@pytest.mark.timeout(5)
def test_hangs():
    threading.Thread(target=wait_beside, daemon=True).start()
    subprocess.run(["sleep", "1002"])
def test_next(): pass
"""
#: Locks a mutex twice: signals do not interrupt that, so no signal handler of Python runs.
HANGS_IN_C = """
import ctypes
def hang_for_ever():
    mutex = ctypes.create_string_buffer(64)
    native = ctypes.PyDLL(None)
    native.pthread_mutex_lock(mutex)
    native.pthread_mutex_lock(mutex)
def test_hangs(): hang_for_ever()
"""
HANGS_TWICE = """
import pytest, time
@pytest.fixture
def place():
    yield
    time.sleep(1000)
def test_hangs(place): assert not "failed"
"""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.delenv("PARIO_TEST_PATIENCE", raising=False)  # it multiplies their limits
    pytester.makeconftest(PLUGIN)
    return pytester


@pytest.mark.system  # waits for a time limit
@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "with xdist"])
def test_a_test_that_hangs_fails_with_stacks_and_processes(
    tests: pytest.Pytester, options: list[str]
) -> None:
    if options:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    tests.makepyfile(HANGS_IN_PYTHON)
    done = tests.runpytest_subprocess(*options, timeout=PATIENCE)
    done.assert_outcomes(failed=1, passed=1)
    text = done.stdout.str()
    assert "the test did not end within 5 s" in text
    assert "in wait_beside" in text and "in test_hangs" in text
    assert ": sleep 1002" in text


@pytest.mark.system
@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "with xdist"])
def test_a_test_that_hangs_in_native_code_ends_with_its_stacks(
    tests: pytest.Pytester, options: list[str]
) -> None:
    if options:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    tests.makeconftest(NO_GRACE + PLUGIN)
    tests.makepyfile(HANGS_IN_C)
    done = tests.runpytest_subprocess("--timeout=4", *options, timeout=PATIENCE)
    assert done.ret != 0
    assert "in hang_for_ever" in done.stderr.str() and "in test_hangs" in done.stderr.str()


@pytest.mark.system
def test_a_teardown_that_hangs_after_a_failure_has_a_limit_too(tests: pytest.Pytester) -> None:
    tests.makepyfile(HANGS_TWICE)
    done = tests.runpytest_subprocess("--timeout=4", timeout=PATIENCE)
    done.assert_outcomes(failed=1, errors=1)
    assert "in place" in done.stdout.str()


@pytest.mark.system
def test_limits_are_multiplied_by_a_variable(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARIO_TEST_PATIENCE", "0.5")
    tests.makepyfile("import time\ndef test_hangs(): time.sleep(1000)")
    done = tests.runpytest_subprocess("--timeout=4", timeout=PATIENCE)
    assert "the test did not end within 2 s" in done.stdout.str()


@pytest.mark.system
def test_this_project_has_a_limit(request: pytest.FixtureRequest) -> None:
    assert float(request.config.getini("timeout")) > 0
