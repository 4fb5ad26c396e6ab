"""The pytest plugin for result files, tried with small test suites in checkouts of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.checkouts import commit_all
from tests.support.results_file import read_results
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
XDIST = ["-p", "xdist", "-n", "2"]
MIXED = """
    import pytest

    def test_pass():
        pass

    def test_fail():
        assert 1 == 2, "one is not two"

    @pytest.mark.exhaustive
    @pytest.mark.skip(reason="no such thing")
    def test_skip():
        pass

    @pytest.mark.xfail(reason="known limit")
    def test_expected():
        raise OSError("limit")

    @pytest.mark.xfail(reason="old limit")
    def test_unexpected():
        pass

    @pytest.fixture
    def broken():
        yield
        raise RuntimeError("not taken down")

    def test_error(broken):
        pass
"""


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Makes an empty folder in which pytest has the plugin. The test calls commit_all()."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    markers = "markers = exhaustive: of the last tier"
    pytester.makeini(f"[pytest]\naddopts = -p tests.support.results -p no:cacheprovider\n{markers}")
    Path(".gitignore").write_text("results*\nrunpytest-*\n")
    return pytester


def outcomes(path: str = "results") -> dict[str, str]:
    """Returns the last outcome of each test, under its name without its file."""
    latest = read_results(Path(path)).latest
    return {test.rpartition("::")[2]: result.outcome for test, result in latest.items()}


def lines_per_test(path: str = "results") -> Counter[str]:
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return Counter(row["test"].rpartition("::")[2] for row in rows if "test" in row)


def test_each_finished_test_has_a_line(checkout):
    checkout.makepyfile(test_mixed=MIXED)
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results")
    rows = [json.loads(line) for line in Path("results").read_text().splitlines()]
    header, selected, *tests = rows
    assert sorted(header) == "changes commit date dirty format machine versions".split()
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert (header["commit"], header["dirty"]) == (head.stdout.strip(), False)
    assert sorted(header["machine"]) == ["cores", "kernel", "processor"]
    assert selected == {"selected": 6}
    lines = [
        f"{row['test']} {row['outcome']}: {row['reason']} {row['markers']}".replace(": []", " []")
        for row in tests
    ]
    assert "\n".join(lines) == (
        "test_mixed.py::test_pass passed:  []\n"
        "test_mixed.py::test_fail failed: AssertionError: one is not two []\n"
        "test_mixed.py::test_skip skipped: no such thing ['exhaustive']\n"
        "test_mixed.py::test_expected xfailed: known limit ['xfail']\n"
        "test_mixed.py::test_unexpected passed: passes although it is expected to fail: old limit"
        " ['xfail']\n"
        "test_mixed.py::test_error error: RuntimeError: not taken down []"
    )


@pytest.mark.system
def test_a_resumed_run_runs_failed_and_new_tests_only(checkout):
    checkout.makepyfile(test_mixed=MIXED)
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results", "-k", "not test_pass")
    result = checkout.runpytest_inprocess("--results", "results", "--resume")
    result.assert_outcomes(passed=2, failed=1, errors=1, deselected=3)
    assert lines_per_test() == {
        "test_pass": 1,
        "test_fail": 2,
        "test_skip": 1,
        "test_expected": 1,
        "test_unexpected": 1,
        "test_error": 2,
    }
    result = checkout.runpytest_inprocess("--results", "results", "--resume", "--keep-failures")
    result.assert_outcomes(deselected=6)
    assert result.ret == 0


@pytest.mark.system
def test_tests_that_a_part_of_another_commit_holds_are_not_run_again(checkout):
    checkout.makepyfile(test_mixed=MIXED)
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results-part")
    checkout.makepyfile(test_new="def test_new(): pass")
    commit_all(checkout.path)
    part = ["--part", "results-part"]
    result = checkout.runpytest_inprocess("--results", "results", "--resume", *part)
    result.assert_outcomes(passed=2, failed=1, errors=1, deselected=4)  # test_error is two of them
    assert outcomes() == {"test_new": "passed", "test_fail": "failed", "test_error": "error"}


@pytest.mark.system
def test_a_killed_run_is_resumed_after_the_last_finished_test(checkout):
    checkout.makepyfile(
        test_kill="""
        import os, pathlib, signal

        def test_before():
            pass

        def test_kill():
            mark = pathlib.Path("results-killed")
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        def test_after():
            pass
        """
    )
    commit_all(checkout.path)
    assert checkout.runpytest_subprocess("--results", "results").ret == -signal.SIGKILL
    assert outcomes() == {"test_before": "passed"}
    result = checkout.runpytest_inprocess("--results", "results", "--resume")
    result.assert_outcomes(passed=2, deselected=1)
    assert lines_per_test() == {"test_before": 1, "test_kill": 1, "test_after": 1}


@pytest.mark.system
def test_an_interrupted_test_is_not_finished(checkout):
    checkout.makepyfile(
        test_wait="""
        import pathlib, time

        def test_before():
            pass

        def test_wait():
            mark = pathlib.Path("results-waits")
            if not mark.exists():
                mark.touch()
                time.sleep(600)
        """
    )
    commit_all(checkout.path)
    run = checkout.popen(
        ["python", "-m", "pytest", "--results", "results"], stdin=subprocess.DEVNULL
    )
    wait_until(Path("results-waits").exists, "the second test runs")
    os.kill(run.pid, signal.SIGINT)
    run.communicate()
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert outcomes() == {"test_before": "passed"}
    result = checkout.runpytest_inprocess("--results", "results", "--resume")
    result.assert_outcomes(passed=1, deselected=1)


def test_a_torn_last_line_is_cut_off(checkout):
    checkout.makepyfile(test_two="def test_one(): pass\ndef test_two(): pass")
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results")
    whole = Path("results").read_bytes()
    Path("results").write_bytes(whole[:-30])
    assert outcomes() == {"test_one": "passed"}
    checkout.runpytest_inprocess("--results", "results", "--resume").assert_outcomes(
        passed=1, deselected=1
    )
    assert lines_per_test() == {"test_one": 1, "test_two": 1}


def test_a_file_with_a_torn_header_is_begun_anew(checkout):
    checkout.makepyfile(test_one="def test_one(): pass")
    commit_all(checkout.path)
    Path("results").write_text('{"format":1,"comm')
    checkout.runpytest_inprocess("--results", "results", "--resume").assert_outcomes(passed=1)
    assert outcomes() == {"test_one": "passed"}


@pytest.mark.system
@pytest.mark.parametrize("change", ["commit", "edit"])
def test_a_file_of_other_code_is_refused(checkout, change):
    checkout.makepyfile(test_one="def test_one(): pass")
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results")
    before = Path("results").read_bytes()
    Path("test_one.py").write_text("def test_one(): assert True\n")
    if change == "commit":
        commit_all(checkout.path)
    result = checkout.runpytest_inprocess("--results", "results", "--resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*results holds the results of commit *; this is commit *begin anew: leave out --resume*"]
    )
    assert Path("results").read_bytes() == before
    checkout.runpytest_inprocess("--results", "results").assert_outcomes(passed=1)
    assert Path("results.previous").read_bytes() == before


@pytest.mark.system
def test_a_module_that_cannot_be_imported_is_an_error_until_it_can(checkout):
    checkout.makepyfile(
        test_import="import pathlib\npathlib.Path('results-there').stat()\ndef test_one(): pass"
    )
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results")
    assert outcomes() == {"test_import.py": "error"}
    Path("results-there").touch()
    checkout.runpytest_inprocess("--results", "results", "--resume").assert_outcomes(passed=1)
    assert outcomes() == {"test_one": "passed"}


@pytest.mark.system
def test_a_second_run_at_the_same_time_is_refused(checkout):
    checkout.makepyfile(
        test_nested="""
        import subprocess, sys

        def test_nested():
            command = [sys.executable, "-m", "pytest", "--results", "results", "--resume"]
            command += ["-k", "none"]  # an accepted run must not run this test again
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 4 and "another run that is not over" in done.stderr
        """
    )
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results").assert_outcomes(passed=1)
    assert lines_per_test() == {"test_nested": 1}


@pytest.mark.system
def test_the_options_are_known_where_a_conftest_in_testpaths_has_the_plugin(checkout):
    checkout.makeini("[pytest]\ntestpaths = tests\n")
    folder = checkout.mkpydir("tests")
    (folder / "conftest.py").write_text("pytest_plugins = ['tests.support.results']\n")
    (folder / "support").symlink_to(ROOT / "tests" / "support")
    (folder / "test_one.py").write_text("def test_one(): pass\n")
    commit_all(checkout.path)
    arguments = ["--results=results", "--resume", "--ignore=tests/support"]
    checkout.runpytest_subprocess(*arguments).assert_outcomes(passed=1)
    checkout.runpytest_subprocess(*arguments).assert_outcomes(deselected=1)
    assert outcomes() == {"test_one": "passed"}


def test_collecting_leaves_the_file_alone(checkout):
    checkout.makepyfile(test_mixed=MIXED)
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results")
    before = Path("results").read_bytes()
    result = checkout.runpytest_inprocess("--results", "results", "--resume", "--collect-only")
    result.stdout.fnmatch_lines(["*2/6 tests collected (4 deselected)*"])
    assert Path("results").read_bytes() == before


@pytest.mark.system
def test_xdist_results_are_written_by_the_controller_alone(checkout):
    pytest.importorskip("xdist")
    checkout.makepyfile(test_mixed=MIXED)
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results", "-k", "not test_pass", *XDIST)
    assert outcomes() == {
        "test_fail": "failed",
        "test_skip": "skipped",
        "test_expected": "xfailed",
        "test_unexpected": "passed",
        "test_error": "error",
    }
    assert read_results(Path("results")).latest["test_mixed.py::test_skip"].markers == (
        "exhaustive",
    )
    result = checkout.runpytest_inprocess("--results", "results", "--resume", *XDIST)
    result.assert_outcomes(passed=2, failed=1, errors=1)
    assert lines_per_test()["test_fail"] == 2
    assert lines_per_test()["test_skip"] == 1


@pytest.mark.system
def test_xdist_replaces_a_crashed_worker_and_its_test_fails(checkout):
    pytest.importorskip("xdist")
    checkout.makepyfile(
        test_crash="""
        import os, pytest

        def test_crash():
            os._exit(1)

        @pytest.mark.parametrize("number", range(4))
        def test_other(number):
            pass
        """
    )
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results", *XDIST)
    others = {f"test_other[{number}]": "passed" for number in range(4)}
    assert outcomes() == {"test_crash": "failed"} | others


def test_each_repetition_has_a_line(checkout):
    pytest.importorskip("pytest_repeat")
    checkout.makepyfile(test_one="def test_one(): pass")
    commit_all(checkout.path)
    arguments = ["--results", "results", "--resume", "-p", "pytest_repeat", "--count", "3"]
    checkout.runpytest_inprocess(*arguments, "-k", "1-3").assert_outcomes(passed=1, deselected=2)
    checkout.runpytest_inprocess(*arguments).assert_outcomes(passed=2, deselected=1)
    assert lines_per_test() == {"test_one[1-3]": 1, "test_one[2-3]": 1, "test_one[3-3]": 1}


@pytest.mark.parametrize("options", [(), pytest.param(XDIST, marks=pytest.mark.system)])
def test_counts_of_a_test_are_part_of_its_line(checkout, options):
    checkout.makepyfile(
        test_many="""
        def test_kills(record_count, record_property):
            record_property("other", 1)
            record_count("kills", 30)
        """
    )
    commit_all(checkout.path)
    checkout.runpytest_inprocess("--results", "results", *options)
    counts = {
        result.test: result.counts for result in read_results(Path("results")).latest.values()
    }
    assert counts == {"test_many.py::test_kills": {"kills": 30}}
