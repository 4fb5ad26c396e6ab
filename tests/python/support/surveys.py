"""Darshan logs and surveys for tests of ``pario survey``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pario.see.analyze.survey import Cause, RunRow, Survey, summarize
from pario.see.survey.tasks import Answer, Task, perform
from tests.python.darshanlog import DarshanLog, posix_record

#: Indices in Darshan's tables of POSIX counters and times.
_OPENS, _WRITES, _BYTES_WRITTEN, _CONSECUTIVE, _SIZE_0_100 = 0, 4, 15, 19, 39
_OPEN_START, _WRITE_START, _WRITE_END, _WRITE_TIME = 0, 2, 6, 9
NOON = 1_700_000_000 - 1_700_000_000 % 86400 + 43200
_DAY = 86400


class InProcessPool:
    """A pool that performs the tasks in this process, which saves the start of another one."""

    def __init__(self, size: int) -> None:
        del size

    def __enter__(self) -> InProcessPool:
        return self

    def __exit__(self, *error: object) -> None:
        del error

    def perform(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yields tasks with their answers."""
        for task in tasks:
            yield task, perform(task)


@pytest.fixture(autouse=True)
def surveys_of_one_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Surveys in the process of the test, except in tests of real systems. Import it to use it."""
    if not request.node.get_closest_marker("system"):
        monkeypatch.setattr("pario.see.survey.Pool", InProcessPool)


def write_log(
    path: Path,
    number: int,
    lost: float = 4.0,
    wall: int = 10,
    start: int = NOON,
    **facts: int | str,
) -> Path:
    """Writes the log of a serial program that spends ``lost`` seconds in writes of 50 bytes; 0
    means no I/O. ``facts`` are fields of DarshanLog; ``number`` is that of the job."""
    counters = {_OPENS: 1}
    times = {_OPEN_START: 0.1}
    if lost:
        calls = round(lost * 100_000)
        counters |= {_WRITES: calls, _BYTES_WRITTEN: 50 * calls, _SIZE_0_100: calls}
        counters |= {_CONSECUTIVE: calls - 1}
        times |= {_WRITE_START: 0.2, _WRITE_END: 0.2 + lost, _WRITE_TIME: lost}
    log = DarshanLog(
        jobid=number,
        seconds=wall,
        start=start,
        modules={"POSIX": posix_record(1, 0, counters, times)},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    return replace(log, **facts).write(path)  # type: ignore[arg-type]


def add_darshan_library(folder: Path, statement: str) -> None:
    """Writes a package ``darshan`` that runs a statement when a log (``path``) is opened, and opens
    none."""
    backend = folder / "darshan" / "backend"
    backend.mkdir(parents=True)
    for package in (backend.parent, backend):
        (package / "__init__.py").write_text("")
    (backend / "cffi_backend.py").write_text(
        "from types import SimpleNamespace\nffi = SimpleNamespace(NULL=None)\n"
        f"def log_open(path):\n    {statement}\n    return {{'handle': None}}\n"
    )


def many(count: int) -> Survey:
    """A survey of ``count`` runs with long names, and damaged logs."""
    rows = [_row(number) for number in range(count)]
    damaged = [
        RunRow(f"/logs/{number}.darshan", error=f"/logs/{number}.darshan: a damaged log")
        for number in range(count // 20)
    ]
    return summarize([*rows, *damaged], left_out=7, repeated=3)


def hostile() -> Survey:
    """A survey of runs whose names try to become markup or control the terminal."""
    evil = "<script>alert(1)</script>\"'&\x1b[31m\u202e\udcff{{ 7 * 7 }}"
    row = replace(_row(1), user=evil, program=evil, command=evil, path=f"/{evil}", sentence=evil)
    cause = Cause("small-writes", evil, 3.0)
    return summarize([replace(row, causes=(cause,)), RunRow(evil, error=evil)])


def _row(number: int) -> RunRow:
    lost = float(number % 97)
    wall = 100.0 + number % 13
    cause = Cause(f"rule-{number % 5}", f"{number:,} writes of 50 B to {'out' * 40}.dat", lost)
    return RunRow(
        path=f"/project/logs/2026/11/{number % 30 + 1}/user_program_id{number}.darshan",
        format="darshan",
        user=f"user{number % 150}",
        program=f"program{number % 300}",
        command=f"/home/user/bin/program{number % 300} --input {'deep/' * 30}case{number}",
        start=float(NOON + number % 30 * _DAY),
        wall=wall,
        ranks=1 << number % 12,
        processes=1 << number % 12,
        io=lost + 1.0,
        lost=lost,
        bytes_written=number * 1000,
        bound="io" if lost > 50 else "compute",
        grade="worthwhile" if lost else "healthy",
        sentence="I/O-bound: 58 % of it is I/O.",
        is_judged=number % 50 > 0,
        covered=number % 50 > 0,
        unseen=() if number % 50 else ("rank 3 of 4 has no log",),
        causes=(cause,) if lost else (),
    )
