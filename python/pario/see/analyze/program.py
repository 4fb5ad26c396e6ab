"""The name of a job's program: without launcher and interpreter, to compare runs by."""

from __future__ import annotations

import shlex

import numpy as np

from pario.see.tables.model import Job
from pario.see.tables.scripts import base_name, find_script, is_interpreter


def program_of(job: Job) -> str:
    """Return the name of the program: of rank 0's executable in an MPI job, otherwise of the
    command."""
    first = np.flatnonzero(job.processes["rank"] == 0)
    known = len(first) and len(job.programs) and job.format == "pario"
    executable = job.programs[int(job.processes["exe"][first[0]])] if known else ""
    return program_name(job.command, executable)


def program_name(command: str, executable: str = "") -> str:
    """Return the name of the program that a command runs; ``executable`` is the file that ran, if
    the command may be that of a launcher. An interpreter counts as its script or module."""
    words = _split(command)
    name = base_name(executable) or (base_name(words[0]) if words else "")
    place = next((i for i, word in enumerate(words) if _is_same(base_name(word), name)), -1)
    if not is_interpreter(name) or place < 0:
        return name
    return base_name(find_script(words[place + 1 :])) or name


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _is_same(word: str, executable: str) -> bool:
    """True also for a link such as ``python`` to ``python3.11``."""
    return bool(word) and executable.startswith(word)
