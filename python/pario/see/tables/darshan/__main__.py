"""Reads Darshan logs and writes the Job, or the error, as a pickle to standard output;
``apart.py`` starts it."""

import pickle
import sys
from pathlib import Path

from pario.errors import ParioError
from pario.see.tables.darshan.job import collect
from pario.see.tables.model import Job


def _answer(source: str, paths: list[Path]) -> Job | ParioError:
    try:
        return collect(source, paths)
    except ParioError as error:
        return error


pickle.dump(
    _answer(sys.argv[1], [Path(argument) for argument in sys.argv[2:]]),
    sys.stdout.buffer,
    pickle.HIGHEST_PROTOCOL,
)
