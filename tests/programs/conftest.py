"""Runs a command plain and under pario's library, each in a directory of its own, and compares
output, exit status and files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pario.see.tables import read
from pario.see.tables.model import LAYERS, Job
from tests.library import need_library
from tests.support.commands import run_command


@dataclass(frozen=True)
class Ended:
    """The exit status, output and files of a command; ``files``: path below its directory ->
    digest."""

    status: int
    stdout: str
    stderr: str
    files: dict[str, str]


@dataclass(frozen=True)
class Traced:
    """The trace of a command that ran in ``directory``."""

    job: Job
    directory: Path

    def count(self, counter: str, path: str, layer: str = "posix") -> int:
        """Sums a counter over the files of this name below the directory (``*`` stands for any
        text)."""
        pattern = re.compile(re.escape(str(self.directory / path)).replace(r"\*", ".*"))
        rows = (
            row
            for row in self.job.records
            if LAYERS[row["layer"]] == layer and pattern.fullmatch(self.job.path(row["file"]))
        )
        return sum(int(row[counter]) for row in rows)


NOTHING = "(?!)"
Prepare = Callable[[Path], None]
Compare = Callable[..., Traced]


@pytest.fixture(scope="session")
def library() -> Path:
    return need_library()


def digests(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def run(command: list[str], directory: Path, environment: dict[str, str]) -> Ended:
    done = run_command(command, cwd=directory, env={**os.environ, **environment})
    return Ended(done.returncode, done.stdout, done.stderr, digests(directory))


@pytest.fixture
def same_under_pario(library: Path, tmp_path: Path) -> Compare:
    """Runs ``command`` plain and traced; output, exit status and files must be equal. Returns the
    trace.

    Both run in a directory of the same name (one after the other), so that paths in outputs and
    files are equal too. ``hide`` is a pattern of the text that differs between any two runs (times,
    process ids); ``ignore`` of the files that differ. If the output is not ``ordered``, its sorted
    characters are compared, because ranks print into each other's lines.
    """

    def compare(
        command: list[str],
        prepare: Prepare = lambda directory: None,
        *,
        hide: str = NOTHING,
        ignore: str = NOTHING,
        status: int = 0,
        ordered: bool = True,
    ) -> Traced:
        work, log = tmp_path / "work", tmp_path / "log"
        log.mkdir()
        ends = []
        for environment in ({}, {"LD_PRELOAD": str(library), "PARIO_TRACE_DIR": str(log)}):
            if work.exists():
                work.rename(tmp_path / "plain")
            work.mkdir()
            prepare(work)
            ends.append(mask_output(run(command, work, environment), hide, ignore, ordered))
        assert ends[0].status == status, ends[0].stdout + ends[0].stderr
        assert ends[1] == ends[0]
        return Traced(read([log]), work)

    return compare


def mask_output(ended: Ended, hide: str, ignore: str, ordered: bool) -> Ended:
    def mask(text: str) -> str:
        shown = re.sub(hide, "", text)
        return shown if ordered else "".join(sorted("".join(shown.split())))

    files = {name: digest for name, digest in ended.files.items() if not re.search(ignore, name)}
    return Ended(ended.status, mask(ended.stdout), mask(ended.stderr), files)
