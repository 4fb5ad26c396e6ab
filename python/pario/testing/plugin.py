"""The hooks of pytest: a test with the marker ``limit_io`` runs in another pytest, under pario's
tracer, and fails if its I/O exceeds the limits (docs/testing.md).

pytest imports this module at each start: it imports nothing heavy before a marked test runs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pario.testing.limits import Limits

#: The folder of a test, in the environment of the pytest that runs it, and in its stash.
_VARIABLE = "LIMIT_IO_FOLDER"
_FOLDER = pytest.StashKey[Path]()
_MARKER = "limit_io"
_MARKER_HELP = (
    "limit_io(reads=, writes=, opens=, seeks=, stats=, syncs=, metadata=, bytes_read=,"
    " bytes_written=, files=, io=, lost=, of=): run the test under pario's tracer and fail if it"
    " makes more I/O"
)
#: Options that the inner pytest does not take over: selection, output, distribution, debugging.
_NOT_PASSED = frozenset(
    "file_or_dir plugins keyword markexpr deselect ignore ignore_glob lf failedfirst newfirst"
    " cacheclear cacheshow stepwise stepwise_skip stepwise_reset maxfail collectonly usepdb trace"
    " xmlpath log_file durations basetemp numprocesses maxprocesses dist distload tx px"
    " looponfail timeout count reportlog_path cov_source cov_report htmlpath".split()
)
_PATIENCE = 24 * 3600.0  # seconds; a time limit of pytest ends a test earlier


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if folder := os.environ.pop(_VARIABLE, ""):
        from pario.testing.body import load_options

        config.stash[_FOLDER] = Path(folder)
        load_options(config, Path(folder))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a marked test under the tracer; other tests, and those under a debugger, are left to
    pytest."""
    if folder := item.config.stash.get(_FOLDER, None):
        from pario.testing.body import run_test

        run_test(item, folder)
        return True
    if not item.get_closest_marker(_MARKER) or item.config.getoption("usepdb", False):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports(item):
        item.ihook.pytest_runtest_logreport(report=report)
    # The fixtures of tests before this one, which pytest would end after it.
    item.session._setupstate.teardown_exact(nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _reports(item: pytest.Item) -> Sequence[pytest.TestReport]:
    reports: list[pytest.TestReport] = []
    call = pytest.CallInfo.from_call(
        lambda: reports.extend(_run(item)),
        "call",
        reraise=(pytest.exit.Exception, KeyboardInterrupt),
    )
    if call.excinfo is not None:
        reports.append(pytest.TestReport.from_item_and_call(item, call))
    return reports


def _run(item: pytest.Item) -> list[pytest.TestReport]:
    """Run the test in another pytest; return its reports, failed ones if it exceeds its limits."""
    from pario.testing.body import LOGS, REPORTS

    limits = _limits(item)
    folder = _new_folder(item.config)
    _run_apart(item, folder)
    outcome = json.loads((folder / REPORTS).read_text())
    reports = [_from_plain(item, report) for report in outcome["reports"]]
    for name in (*outcome["before"], "job.json"):  # of the process that runs the fixtures
        (folder / LOGS / name).unlink(missing_ok=True)
    for report in reports:
        if report.when == "call" and report.passed:
            _judge(report, folder, limits)
    return reports


def _limits(item: pytest.Item) -> Limits:
    from pario.testing.limits import parse_limits

    mark = item.get_closest_marker(_MARKER)
    assert mark
    try:
        return parse_limits(mark.args, mark.kwargs)
    except ValueError as error:
        wrong = str(error)
    pytest.fail(wrong, pytrace=False)


def _run_apart(item: pytest.Item, folder: Path) -> None:
    """Run the test in a traced pytest, which leaves its results in ``folder``."""
    from pario.errors import ParioError
    from pario.see.launch import Limit, Settings, launch
    from pario.testing.body import LOGS, OPTIONS, OUTPUT, REPORTS

    (folder / OPTIONS).write_text(json.dumps(_options(item.config)))
    output = folder / OUTPUT
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(_VARIABLE, str(folder))
            settings = Settings(output=folder / LOGS)
            launch(_command(item, folder), settings, Limit(_PATIENCE, output))
        if (folder / REPORTS).exists():
            return
        wrong = f"the pytest that runs the test failed:\n{output.read_text(errors='replace')}"
    except ParioError as error:
        wrong = str(error)
    pytest.fail(wrong, pytrace=False)


def _judge(report: pytest.TestReport, folder: Path, limits: Limits) -> None:
    from pario.testing.body import LOGS, is_of_pytest
    from pario.testing.judge import judge

    if not any((folder / LOGS).glob("*.plog")):
        report.outcome, report.longrepr = "failed", "limit_io: the test was not traced"
    elif text := judge(folder / LOGS, limits, lambda path: is_of_pytest(path, folder)):
        report.outcome, report.longrepr = "failed", text


def _from_plain(item: pytest.Item, plain: Any) -> pytest.TestReport:
    report = item.config.hook.pytest_report_from_serializable(config=item.config, data=plain)
    assert isinstance(report, pytest.TestReport)
    report.nodeid = item.nodeid  # pytest-xdist adds the name of a group
    return report


def _new_folder(config: pytest.Config) -> Path:
    folders: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return folders.mktemp(_MARKER)


def _options(config: pytest.Config) -> dict[str, Any]:
    plain = (str, int, float, bool, type(None))
    return {
        name: value
        for name, value in vars(config.option).items()
        if name not in _NOT_PASSED
        and (
            isinstance(value, plain)
            or (isinstance(value, list) and all(isinstance(one, plain) for one in value))
        )
    } | ({"timeout": 0} if hasattr(config.option, "timeout") else {})


def _command(item: pytest.Item, folder: Path) -> list[str]:
    outer = (pytest.Session, pytest.File, pytest.Dir, pytest.Package)
    names = [node.name for node in item.listchain() if not isinstance(node, outer)]
    config = item.config
    words = [sys.executable, "-m", "pytest", "::".join([str(item.path), *names])]
    words += ["--rootdir", str(config.rootpath), "--basetemp", str(folder / "tmp")]
    words += ["-c", str(config.inipath)] if config.inipath else []
    words += [word for name in config.option.plugins for word in ("-p", name)]
    words += ["-n0"] if config.pluginmanager.hasplugin("xdist") else []
    return [*words, "-p", "no:cacheprovider"]
