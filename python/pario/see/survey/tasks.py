"""The tasks of the processes that read logs. Tasks and answers are small: they are sent as
pickles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pario.errors import ParioError
from pario.see.analyze import analyze
from pario.see.analyze.survey import RunRow, run_row
from pario.see.tables import read
from pario.see.tables.darshan.identity import Identity, identify


@dataclass(frozen=True)
class Failure:
    """The error of a task."""

    text: str


@dataclass(frozen=True)
class Identify:
    """Finds the job of a Darshan log."""

    path: Path

    def perform(self) -> Identity:
        """Return the identity of the log."""
        return identify(self.path)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Judge:
    """Analyses a run."""

    paths: tuple[Path, ...]

    def perform(self) -> RunRow:
        """Return the row of the run."""
        return run_row(analyze(read(self.paths, apart=False)), str(self.paths[0]), len(self.paths))

    def __str__(self) -> str:
        return str(self.paths[0])


Task = Identify | Judge
Answer = Identity | RunRow | Failure


def perform(task: Task) -> Answer:
    """Perform a task. One failure must not end a survey, so every error becomes an answer."""
    try:
        return task.perform()
    except (ParioError, OSError) as error:
        return Failure(str(error))
    except Exception as error:
        return Failure(f"{task}: the analysis failed ({type(error).__name__}: {error})")
