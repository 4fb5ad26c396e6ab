"""Surveys of many runs: finds their logs, analyses them in several processes, keeps one row for
each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pario.machine import count_processors
from pario.progress import Show
from pario.see.analyze.program import program_name
from pario.see.analyze.survey import RunRow, Selection, Survey, summarize
from pario.see.survey.pool import Pool
from pario.see.survey.tasks import Failure, Identify, Judge
from pario.see.tables.darshan.identity import Identity, drop_copies, join_jobs
from pario.see.tables.search import Found, find_logs

__all__ = ["survey"]

_LOGS_WORTH_A_PROCESS, _BYTES_WORTH_A_PROCESS = 16, 4 << 20


def survey(
    places: Sequence[str | os.PathLike[str]],
    selection: Selection,
    order: str,
    processes: int | None,
    show: Show,
) -> Survey:
    """Return the survey of the runs with logs at ``places`` (paths, directories, patterns).

    ``order`` is one of SORT_KEYS, ``processes`` the number of processes that read logs,
    None for as many as pay. Raises ReadError if there are no logs; damaged logs become rows with
    their errors.
    """
    found = find_logs(places)
    with Pool(processes or useful_processes(found)) as pool:
        return _Survey(pool, found, selection, show).run(order)


def useful_processes(found: Found) -> int:
    """Return the number of processes whose work takes longer than their start (half a second), at
    most one for each processor."""
    logs = [*found.darshan, *(path for run in found.runs for path in run)]
    files = [file for path in logs for file in (path.iterdir() if path.is_dir() else [path])]
    size = sum(path.stat().st_size for path in files if path.is_file())
    worth = max(len(logs) // _LOGS_WORTH_A_PROCESS, size // _BYTES_WORTH_A_PROCESS)
    return max(1, min(worth, count_processors()))


class _Survey:
    """The steps of a survey: a step is the identification of a Darshan log or the analysis of a
    run."""

    def __init__(self, pool: Pool, found: Found, selection: Selection, show: Show) -> None:
        self._pool = pool
        self._found = found
        self._selection = selection
        self._show = show
        self._done, self._whole = 0, 2 * len(found.darshan) + len(found.runs)
        self._left_out, self._repeated = 0, found.repeated
        self._rows = [RunRow(str(error.args[0]), error=str(error)) for error in found.errors]

    def run(self, order: str) -> Survey:
        """Identify and join the Darshan logs, then analyse all runs."""
        for row in self._judge([*self._found.runs, *self._darshan_runs()]):
            if self._selection.accepts(row):
                self._rows.append(row)
            else:
                self._left_out += 1
        return summarize(self._rows, order, self._left_out, self._repeated)

    def _darshan_runs(self) -> list[tuple[Path, ...]]:
        """Return the logs of each selected job."""
        identities = list(self._identify())
        logs = drop_copies(sorted(identities, key=lambda one: str(one.path)))
        self._repeated += len(identities) - len(logs)
        jobs = join_jobs(logs)
        chosen = [job for job in jobs if self._accepts(job)]
        self._left_out += len(jobs) - len(chosen)
        self._whole = self._done + len(self._found.runs) + len(chosen)
        return [tuple(log.path for log in job) for job in chosen]

    def _accepts(self, logs: Sequence[Identity]) -> bool:
        first = logs[0]
        return self._selection.accepts_job(first.user, program_name(first.command), first.start)

    def _identify(self) -> Iterator[Identity]:
        for task, answer in self._pool.perform([Identify(path) for path in self._found.darshan]):
            self._step()
            if isinstance(answer, Identity):
                yield answer
            elif isinstance(answer, Failure):
                self._rows.append(RunRow(str(task.path), error=answer.text))

    def _judge(self, runs: Sequence[tuple[Path, ...]]) -> Iterator[RunRow]:
        for task, answer in self._pool.perform([Judge(paths) for paths in runs]):
            self._step()
            if isinstance(answer, RunRow):
                yield answer
            elif isinstance(answer, Failure):
                yield RunRow(str(task.paths[0]), len(task.paths), error=answer.text)

    def _step(self) -> None:
        self._done += 1
        self._show(self._done, self._whole)
