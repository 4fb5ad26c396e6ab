"""A process that performs tasks: pickles from standard input, answers as pickles on standard
output. It ends with its input; :mod:`pario.see.survey.pool` starts it."""

import os
import pickle
import sys
from contextlib import suppress
from typing import BinaryIO

from pario.see.survey.tasks import perform

READY = "ready"


def _serve(answers: BinaryIO) -> None:
    def send(answer: object) -> None:
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()

    send(READY)
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        send(perform(task))


def _silence() -> None:
    """Discard the messages that the Darshan library prints about damaged logs."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as output, suppress(BrokenPipeError):
        _silence()
        _serve(output)
