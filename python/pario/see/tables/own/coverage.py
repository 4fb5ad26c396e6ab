"""The parts of a run that its logs do not cover: missing ranks, damaged logs, programs without
pario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pario.see.tables.model import Job, Unseen
from pario.see.tables.own.view import View
from pario.wording import plural, ranks

_NAMED = 5  # launchers named in a message


def add_unseen(
    job: Job,
    views: Sequence[View],
    description: Mapping[str, Any],
    launchers: Mapping[str, Mapping[str, Any]],
) -> None:
    """Add to unseen, and to the messages.

    ``description`` is the run's job.json, ``launchers`` holds its launcher.N.json by their names.
    """
    parts = _ranks_without_log(job) or _launchers_without_log(job, description, launchers)
    job.unseen += [Unseen(part) for part in [*parts, *_damaged_logs(views)]]
    for view in views:
        for note in view.log.notes_of("unfollowed"):
            program, reason = (str(note.get(name, "")) for name in ("program", "reason"))
            job.unseen.append(Unseen(f"{program} was not followed", view.row, program))
            job.messages.append(f"{program} was started {reason}: its calls are not in the log")


def _ranks_without_log(job: Job) -> list[str]:
    there = job.processes["rank"][job.processes["rank"] >= 0]
    missing = np.setdiff1d(np.arange(job.ranks), there) if len(there) else np.zeros(0, np.int64)
    if not len(missing):
        return []
    names = ranks(missing.tolist())
    hosts = "hosts that share no directory keep their own"
    found = f"no logs of {len(missing)} of {job.ranks} ranks are here ({names}); {hosts}"
    job.messages.append(found)
    subject, verb = ("rank", "has") if len(missing) == 1 else ("ranks", "have")
    return [f"{subject} {names} of {job.ranks} {verb} no log"]


def _launchers_without_log(
    job: Job, description: Mapping[str, Any], launchers: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return launchers whose command has no log, if they noted its process."""
    images = {(job.hosts[row["host"]], int(row["pid"])) for row in job.processes}

    def is_missing(noted: Mapping[str, Any]) -> bool:
        pid = noted.get("pid")
        return isinstance(pid, int) and (noted.get("host"), pid) not in images

    count = description.get("launchers")
    if not isinstance(count, int) or count < 2:
        return ["the command itself has no log"] if is_missing(description) else []
    found = (n for n in range(count) if is_missing(launchers.get(f"launcher.{n}.json", {})))
    names = [f"launcher {number} of {count} has no log of its command" for number in found]
    return names[:_NAMED]


def _damaged_logs(views: Sequence[View]) -> Iterator[str]:
    damaged = sum(bool(view.log.remarks.damages) for view in views)
    if damaged:
        verb = "is" if damaged == 1 else "are"
        yield f"{damaged} of {plural(len(views), 'process log')} {verb} damaged"
