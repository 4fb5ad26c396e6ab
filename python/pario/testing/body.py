"""Runs one test in a traced process of pytest: fixtures in that process, the body in a child of its
own, whose log holds the I/O of the body and of nothing else."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import call_and_report

REPORTS = "reports.json"
OPTIONS = "options.json"
LOGS = "logs"
OUTPUT = "output"
_CALL = "call.json"


def is_of_pytest(path: str, folder: Path) -> bool:
    """Tell whether pytest itself writes the file during a test: its report or its output, which
    files without a name capture. Those have the path of their directory."""
    return path in (str(folder / _CALL), str(folder / OUTPUT), tempfile.gettempdir())


def load_options(config: pytest.Config, folder: Path) -> None:
    """Set the options that the user gave to the outer pytest."""
    vars(config.option).update(json.loads((folder / OPTIONS).read_text()))


def run_test(item: pytest.Item, folder: Path) -> None:
    """Run the test and write its reports and the names of the logs from before its body."""
    reports = [call_and_report(item, "setup", log=False)]
    before = sorted(path.name for path in (folder / LOGS).glob("*.plog"))
    if reports[0].passed:
        reports.append(_run_body(item, folder / _CALL))
    reports.append(call_and_report(item, "teardown", log=False, nextitem=None))
    outcome = {"reports": [_to_plain(item, report) for report in reports], "before": before}
    (folder / REPORTS).write_text(json.dumps(outcome))


def _to_plain(item: pytest.Item, report: pytest.TestReport) -> Any:
    return item.config.hook.pytest_report_to_serializable(config=item.config, report=report)


def _run_body(item: pytest.Item, result: Path) -> pytest.TestReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of fixtures
        child = os.fork()
    if child == 0:
        try:
            report = call_and_report(item, "call", log=False)
            result.write_text(json.dumps(_to_plain(item, report)))
        finally:
            os._exit(0)
    call = pytest.CallInfo.from_call(lambda: _wait_for(child, result), "call")
    if call.excinfo is None:
        report = item.config.hook.pytest_report_from_serializable(
            config=item.config, data=json.loads(result.read_text())
        )
    else:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    assert isinstance(report, pytest.TestReport)
    return report


def _wait_for(child: int, result: Path) -> None:
    """Wait for the body. A time limit of pytest ends it."""
    try:
        status = os.waitpid(child, 0)[1]
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if not result.exists():
        code = os.waitstatus_to_exitcode(status)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        pytest.fail(f"the process of the test ended with {how}", pytrace=False)
