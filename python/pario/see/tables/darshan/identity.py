"""The job of a Darshan log: its number, user and time, and the logs that belong together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pario.see.tables.darshan.log import Log
from pario.see.tables.errors import ReadError
from pario.see.tables.users import user_name

#: Longer pauses in seconds separate jobs of the same number: without a scheduler the number is a
#: PID, which the system uses again.
LONGEST_PAUSE = 3600.0
#: Darshan names its logs USER_PROGRAM_idJOB_MONTH-DAY-SECOND-...
_NAME = re.compile(r"([^_]+)_.+_id\d+[_-](?:\d+_)?\d+-\d+-\d+")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Identity:
    """The facts by which the logs of one job are recognised; times are seconds since the epoch."""

    path: Path
    job: int
    uid: int
    user: str
    command: str
    start: float
    end: float
    ranks: int
    digest: bytes = b""  # of the file's bytes; empty: not computed


def identify(path: Path) -> Identity:
    """Return the identity of a log, with its digest. Raises ReadError for a file that is no log."""
    with Log(path) as log:
        return identity_of(log, _digest(path))


def identity_of(log: Log, digest: bytes = b"") -> Identity:
    """Return the identity of an open log."""
    job = log.job
    start = job["start_time_sec"] + job["start_time_nsec"] / 1e9
    return Identity(
        log.path,
        job["jobid"],
        job["uid"],
        user_of(log),
        log.command,
        start,
        start + job["run_time"],
        job["nprocs"],
        digest,
    )


def user_of(log: Log) -> str:
    """Return the user's name from the name of the log, which keeps that of the job's machine,
    otherwise from this machine's accounts, otherwise the number."""
    named = _NAME.match(log.path.name)
    return named[1] if named else user_name(log.job["uid"])


def _digest(path: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.digest()


def drop_copies(logs: Iterable[Identity]) -> list[Identity]:
    """Return the logs without copies: files of the same bytes."""
    return list({log.digest: log for log in reversed(list(logs))}.values())[::-1]


def join_jobs(logs: Iterable[Identity]) -> list[list[Identity]]:
    """Return the logs of each job, by start: logs with the same number and user, without a pause of
    more than LONGEST_PAUSE between them."""
    jobs: list[list[Identity]] = []
    last: dict[tuple[int, int], list[Identity]] = {}
    for log in sorted(logs, key=lambda log: (log.start, str(log.path))):
        key = log.job, log.uid
        if key in last and log.start - max(one.end for one in last[key]) <= LONGEST_PAUSE:
            last[key].append(log)
        else:
            last[key] = [log]
            jobs.append(last[key])
    return jobs


def require_one_run(logs: Sequence[Log]) -> None:
    """Raise ReadError if logs cannot belong to one run.

    Several job numbers are allowed, because without a scheduler each process has its own: but of
    one user, without a long pause, and of one MPI program.
    """
    by_start = sorted(map(identity_of, logs), key=lambda one: one.start)
    first, parallel = by_start[0], [one for one in by_start if one.ranks > 1]
    end = first.end
    for one in by_start[1:]:
        paused = one.start - end > LONGEST_PAUSE and one.job != first.job
        if one.uid != first.uid or paused:
            raise _other_job(one, first)
        end = max(end, one.end)
    for one in parallel[1:]:
        if one.job != parallel[0].job:
            raise _other_job(one, parallel[0])


def _other_job(one: Identity, first: Identity) -> ReadError:
    return ReadError(
        one.path,
        f"a log of job {one.job}, and {first.path} is one of job {first.job}",
        "logs of one job; pario survey shows many jobs as one table",
    )
