"""Reads Darshan logs in a separate process, because some damaged logs crash the C library, and it
prints its errors."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pario
from pario.errors import ParioError
from pario.see.tables.darshan.header import EXPECTED, check
from pario.see.tables.errors import ReadError
from pario.see.tables.model import Job


def read_job(source: str, paths: Sequence[Path]) -> Job:
    """Return the job of Darshan logs. Raises ReadError for another file, and for damage in a part
    on which all others depend."""
    for path in paths:
        check(path)
    answer = ask(
        [sys.executable, "-m", "pario.see.tables.darshan", source, *map(str, paths)], source
    )
    if isinstance(answer, ParioError):
        raise answer
    return answer


def ask(command: Sequence[str], source: str) -> Job | ParioError:
    """Return the answer of a reading process; an error if it died."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as child:
        assert child.stdout is not None
        try:
            answer: Job | ParioError = pickle.load(child.stdout)
        except (EOFError, pickle.UnpicklingError):
            return ReadError(
                source,
                f"a log that Darshan's library cannot read ({describe_end(child.wait())})",
                EXPECTED,
            )
    return answer


def describe_end(status: int) -> str:
    """Return how a reading process ended, by its status."""
    return (
        f"it died of {signal.Signals(-status).name}"
        if status < 0
        else f"it ended with status {status}"
    )


def environment() -> dict[str, str]:
    """Return this process's environment, with the directory of this package in PYTHONPATH."""
    here = str(Path(pario.__file__).parents[1])
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")])),
    }
