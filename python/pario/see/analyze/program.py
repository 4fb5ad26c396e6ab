"""The name of a job's program: without launcher and interpreter, to compare runs by."""

from __future__ import annotations

import re
import shlex

import numpy as np

from pario.see.tables.model import Job

_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|lua|node|julia|Rscript|tclsh)[\d.]*|(ba|da|z|k)?sh"
)
#: An interpreter's options before a name that is no file.
_MODULE, _CODE = "-m", ("-c", "-e")


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
    name = _base(executable) or (_base(words[0]) if words else "")
    place = next((i for i, word in enumerate(words) if _is_same(_base(word), name)), -1)
    if not _INTERPRETER.fullmatch(name) or place < 0:
        return name
    return _script(words[place + 1 :]) or name


def is_interpreter(executable: str) -> bool:
    """Return True if a file is the program of an interpreter, such as Python or a shell."""
    return bool(_INTERPRETER.fullmatch(_base(executable)))


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _is_same(word: str, executable: str) -> bool:
    """True also for a link such as ``python`` to ``python3.11``."""
    return bool(word) and executable.startswith(word)


def _script(words: list[str]) -> str:
    """Return the name of the script or module in the arguments of an interpreter, or nothing."""
    for number, word in enumerate(words):
        if word in _CODE:
            return ""
        if word == _MODULE:
            return words[number + 1] if number + 1 < len(words) else ""
        if not word.startswith("-"):
            return _base(word)
    return ""
