"""Pytest plugin: results of a run in a file, and runs that are resumed.

`--results=FILE` appends a line for each finished test to FILE (results_file.py says how it
looks). `--resume` deselects the tests that FILE holds as passed, skipped or expected failures.
With pytest-xdist only the controller reads and writes the file.

A test that does something many times, such as kills, records how often with the fixture
`record_count`; the counts are part of its line.

The `=` matters where no path of a test is given: before pytest has found this plugin by the
testpaths, it takes a FILE that stands alone for the path of a test.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.results_file import (
    Result,
    Results,
    ResultsError,
    ResultsWriter,
    begin_results,
    merge_latest,
    read_results,
    resume_results,
)
from tests.support.run_header import read_commit

#: Of two reports for one test, the one with the later outcome in this list counts.
_SEVERITY = ("passed", "xfailed", "skipped", "error", "failed")
_OWN_MARKERS_OF_PYTEST = {"parametrize", "usefixtures", "filterwarnings", "skip", "skipif"}
#: Begins the names of the properties that are counts.
_COUNT = "count:"
_ANEW = "leave out --resume (the file is then renamed to FILE.previous)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("results", "result file")
    group.addoption("--results", type=Path, metavar="FILE", help="append a line per test to FILE")
    group.addoption(
        "--resume",
        action="store_true",
        help="deselect tests that FILE holds as passed, skipped or expected failures",
    )
    group.addoption(
        "--keep-failures",
        action="store_true",
        help="with --resume: deselect failed tests, too",
    )
    group.addoption(
        "--part",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="with --resume: deselect what this file of another commit holds, too; repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        _register_selection(config, Selection(set(config.workerinput.get("finished_tests", ()))))
        return
    path: Path | None = config.option.results
    if not path:
        if config.option.resume:
            raise pytest.UsageError("--resume needs --results=FILE")
        return
    try:
        if config.option.collectonly:
            finished = _list_finished(config, _read_earlier(config, path))
            _register_selection(config, Selection(finished))
        else:
            _start_recording(config, path)
    except (ResultsError, OSError, subprocess.SubprocessError) as error:
        raise pytest.UsageError(f"--results: {error}") from error


def _start_recording(config: pytest.Config, path: Path) -> None:
    commit = read_commit(config.rootpath)
    results = Results()
    if config.option.resume:
        writer, results = resume_results(path, commit, _ANEW)
    else:
        writer = begin_results(path, commit)
    config.add_cleanup(writer.close)
    selection = Selection(_list_finished(config, results))
    _register_selection(config, selection)
    config.pluginmanager.register(Recorder(writer), "results-recorder")


def _register_selection(config: pytest.Config, selection: Selection) -> None:
    config.pluginmanager.register(selection, "results-selection")


def _read_earlier(config: pytest.Config, path: Path) -> Results:
    return read_results(path) if config.option.resume and path.exists() else Results()


def _list_finished(config: pytest.Config, results: Results) -> set[str]:
    every = config.option.keep_failures
    parts = [*map(read_results, config.option.part), results]
    return {test for test, result in merge_latest(parts).items() if every or result.good}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Adds the names of a test's markers to its reports, which travel to xdist's controller."""
    report = yield
    names = (marker.name for marker in item.iter_markers())
    report.markers = sorted(set(names) - _OWN_MARKERS_OF_PYTEST)
    return report


@pytest.fixture
def record_count(record_property: Any) -> Any:
    """`record_count("kills", 30)` adds to the counts of the test's line in the result file."""
    return lambda name, count: record_property(f"{_COUNT}{name}", count)


def name_test(nodeid: str) -> str:
    """Returns the id of a test without the group that pytest-xdist appends (--dist loadgroup)."""
    return nodeid[: nodeid.rindex("@")] if nodeid.rfind("@") > nodeid.rfind("]") else nodeid


class Selection:
    """Deselects the tests that an earlier run has finished."""

    def __init__(self, finished: set[str]) -> None:
        self._finished = finished

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        earlier = [item for item in items if name_test(item.nodeid) in self._finished]
        if earlier:
            items[:] = [item for item in items if name_test(item.nodeid) not in self._finished]
            config.hook.pytest_deselected(items=earlier)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Called for each of xdist's workers, also when it replaces one that has crashed."""
        node.workerinput["finished_tests"] = sorted(self._finished)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Makes the resumption of a complete run a success."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._finished:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_report_header(self) -> str | None:
        if not self._finished:
            return None
        return f"results: {len(self._finished)} tests are finished already"


class Recorder:
    """Writes a line for each finished test. Lives in xdist's controller, or without xdist."""

    def __init__(self, writer: ResultsWriter) -> None:
        self._writer = writer
        self._unfinished: dict[str, Result] = {}
        self._selected: int | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = merge_results(self._unfinished.pop(report.nodeid, None), judge_report(report))
        if report.when in ("setup", "call"):
            self._unfinished[report.nodeid] = result
        else:  # the teardown, or xdist's report of a crashed worker
            self._writer.add(result)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            outcome = "error" if report.failed else "skipped"
            self._writer.add(Result(name_test(report.nodeid), outcome, reason=read_reason(report)))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._record_selection(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        self._record_selection(len(ids))

    def _record_selection(self, count: int) -> None:
        """Every worker collects the same tests: one line for all of them."""
        if self._selected is None:
            self._selected = count
            self._writer.add_selected(count)


def judge_report(report: pytest.TestReport) -> Result:
    """Returns the result of one phase of a test."""
    expected = hasattr(report, "wasxfail")
    reason = read_reason(report)
    if report.failed:
        outcome = "error" if report.when in ("setup", "teardown") else "failed"
    elif report.skipped:
        outcome = "xfailed" if expected else "skipped"
    else:
        outcome = "passed"
        reason = f"passes although it is expected to fail: {reason}" if expected else ""
    markers = tuple(getattr(report, "markers", ()))  # absent for a crashed worker
    counts = {
        name.removeprefix(_COUNT): value
        for name, value in report.user_properties
        if name.startswith(_COUNT)
    }
    name = name_test(report.nodeid)
    return Result(name, outcome, report.duration or 0.0, reason, markers, counts=counts)


def merge_results(first: Result | None, second: Result) -> Result:
    """Returns the more severe of the results of two phases, with the seconds of both."""
    if first is None:
        return second
    chosen = second if _rank_result(second) > _rank_result(first) else first
    seconds = first.seconds + second.seconds
    markers = first.markers or second.markers
    counts = {**first.counts, **second.counts}
    return Result(chosen.test, chosen.outcome, seconds, chosen.reason, markers, counts=counts)


def _rank_result(result: Result) -> tuple[int, bool]:
    return _SEVERITY.index(result.outcome), bool(result.reason)


def read_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Returns the first line of the reason for which a test was skipped, failed or expected to
    fail."""
    if hasattr(report, "wasxfail"):
        return _find_first_line(report.wasxfail.removeprefix("reason: "))
    if isinstance(report.longrepr, tuple):
        return _find_first_line(report.longrepr[2].removeprefix("Skipped: "))
    if crash := getattr(report.longrepr, "reprcrash", None):
        return _find_first_line(crash.message)
    return _find_error_line(report.longreprtext)


def _find_error_line(text: str) -> str:
    """Returns the last line marked as an error, else the first line."""
    marked = [line[1:] for line in text.splitlines() if line.startswith("E ")]
    return marked[-1].strip() if marked else _find_first_line(text)


def _find_first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
