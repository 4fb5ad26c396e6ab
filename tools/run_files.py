"""The files of a long run: one run at a time, of one commit."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.results_file import ResultsError, begin_results, resume_results
from tests.support.run_header import read_commit
from tools.child_process import handle_signals


def run_resumable(
    target: str, results: Path, root: Path, restart: bool, work: Callable[[], int]
) -> int:
    """Runs the work of a target of make, alone on its result file. Returns the exit status."""
    handle_signals()
    try:
        with lock_run(results):
            open_results(results, root, restart, f"make {target} RESTART=1")
            return work()
    except ResultsError as error:
        print(f"{target}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{target}: interrupted; make {target} goes on from here", file=sys.stderr)
        return 130


def open_results(path: Path, root: Path, restart: bool, anew: str) -> None:
    """Begins a result file, or checks that it is of this commit.

    `anew`: the command that begins anew, for the error.
    """
    commit = read_commit(root)
    if restart:
        begin_results(path, commit).close()
    else:
        advice = f"{anew} (the file is then renamed to FILE.previous)"
        resume_results(path, commit, advice)[0].close()


@contextmanager
def lock_run(path: Path) -> Iterator[None]:
    """Keeps a second run from the same files. Raises ResultsError if there is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsError(f"{path}: another run that is not over writes to it") from None
        yield
