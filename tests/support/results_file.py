"""The result file of a test run: one JSON object per line, appended as tests finish.

The first line is the header (run_header.py). The other lines are one of

    {"test": ID, "outcome": ..., "seconds": ..., "reason": ..., "markers": [...], "time": ...,
     "counts": {...}}                    of its actions, such as kills; absent in older files
    {"selected": COUNT}                  a part of the run has chosen its tests
    {"completes": [COMMIT, ...]}         the good tests of files of these commits are not run again
    {"step": NAME, "seconds": ..., "time": ...}   a step is complete

A later line for the same test replaces the earlier one. Each line is appended by one write, so a
killed run leaves at most a torn last line; readers ignore it and the next writer cuts it off.
"""

from __future__ import annotations

import fcntl
import json
import lzma
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.support.run_header import FORMAT, Commit, format_now, make_header, parse_commit

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")
#: A test with such an outcome is not repeated when a run is resumed.
GOOD = frozenset({"passed", "skipped", "xfailed"})
#: Exit status of a module that adds its own lines, some of them failures. An exception gives 1.
BROKEN = 3


class ResultsError(Exception):
    """A result file that cannot be used."""


@dataclass(frozen=True)
class Result:
    """The outcome of one test."""

    test: str
    outcome: str
    seconds: float = 0.0
    reason: str = ""
    markers: tuple[str, ...] = ()
    time: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return self.outcome in GOOD


@dataclass
class Results:
    """The content of a result file. `failures` counts all failing lines of a test."""

    header: dict[str, Any] = field(default_factory=dict)
    latest: dict[str, Result] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    steps: dict[str, float] = field(default_factory=dict)
    completes: tuple[str, ...] = ()

    def add(self, row: dict[str, Any]) -> None:
        if "test" in row:
            self._add_result(parse_result(row))
        elif "step" in row:
            self.steps[row["step"]] = row["seconds"]
        elif "completes" in row:
            self.completes = tuple(row["completes"])

    def _add_result(self, result: Result) -> None:
        self.latest.pop(result.test.partition("::")[0], None)  # its module can be imported again
        self.latest[result.test] = result
        if not result.good:
            self.failures[result.test] += 1

    def count(self) -> Counter[str]:
        """Counts the tests per outcome."""
        return Counter(result.outcome for result in self.latest.values())


def parse_result(row: dict[str, Any]) -> Result:
    return Result(**row | {"markers": tuple(row["markers"])})


def format_counts(counts: Counter[str]) -> str:
    """`N passed, N failed, N skipped`; errors count as failed, expected failures are named last."""
    failed = counts["failed"] + counts["error"]
    line = f"{counts['passed']} passed, {failed} failed, {counts['skipped']} skipped"
    return f"{line}, {counts['xfailed']} expected failures" if counts["xfailed"] else line


def read_results(path: Path) -> Results:
    """Reads a result file, compressed if its name ends with `.xz`; a torn last line is ignored.

    Raises ResultsError and OSError.
    """
    results = Results()
    rows = iterate_rows(_read_bytes(path), str(path))
    results.header = next(rows, {})
    if results.header.get("format") != FORMAT:
        raise ResultsError(f"{path}: no header of format {FORMAT} in the first line")
    for row in rows:
        results.add(row)
    return results


def merge_latest(parts: Iterable[Results]) -> dict[str, Result]:
    """The latest result of each test; a later part counts before an earlier one."""
    return {test: result for part in parts for test, result in part.latest.items()}


def list_good(files: Iterable[Path]) -> set[str]:
    """Lists the tests whose latest result in the files is good."""
    latest = merge_latest(map(read_results, files))
    return {test for test, result in latest.items() if result.good}


def _read_bytes(path: Path) -> bytes:
    if path.suffix != ".xz":
        return path.read_bytes()
    try:
        return lzma.decompress(path.read_bytes())
    except lzma.LZMAError as error:
        raise ResultsError(f"{path}: {error}") from error


def iterate_rows(data: bytes, name: str, first: int = 1) -> Iterator[dict[str, Any]]:
    """Yields the complete lines of (a part of) a result file. `first`: the number of the first
    line."""
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), first):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ResultsError(f"{name}:{number}: expected a JSON object ({error})") from error
        if not isinstance(row, dict):
            raise ResultsError(f"{name}:{number}: expected a JSON object, found {row!r}")
        yield row


class ResultsWriter:
    """Appends to a result file and keeps it locked until it is closed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise ResultsError(f"{path}: another run that is not over writes to it") from None

    def cut_torn_line(self) -> bool:
        """Cuts off a torn last line. Returns True if a complete line is left."""
        data = self._path.read_bytes()
        end = data.rfind(b"\n") + 1
        os.ftruncate(self._file, end)
        return end > 0

    def append(self, row: dict[str, Any]) -> None:
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self._path}: a line was written in part; the disk may be full")

    def add(self, result: Result) -> None:
        self.append(asdict(result) | {"time": format_now(), "seconds": round(result.seconds, 3)})

    def add_selected(self, count: int) -> None:
        self.append({"selected": count})

    def add_completes(self, parts: Iterable[Results]) -> None:
        self.append({"completes": [str(parse_commit(part.header)) for part in parts]})

    def add_step(self, name: str, seconds: float) -> None:
        self.append({"step": name, "seconds": round(seconds, 1), "time": format_now()})

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


def begin_results(path: Path, commit: Commit) -> ResultsWriter:
    """Begins a new file; an earlier one is renamed to `FILE.previous`."""
    with ResultsWriter(path):  # raises if another run writes to it
        if path.stat().st_size:
            path.replace(f"{path}.previous")
    writer = ResultsWriter(path)
    writer.append(make_header(commit))
    return writer


def resume_results(path: Path, commit: Commit, anew: str) -> tuple[ResultsWriter, Results]:
    """Continues a file, or begins it. `anew`: how the user begins anew, for the error."""
    writer = ResultsWriter(path)
    try:
        if not writer.cut_torn_line():
            writer.append(make_header(commit))
        results = read_results(path)
        if not (earlier := parse_commit(results.header)).same_code(commit):
            raise ResultsError(
                f"{path} holds the results of commit {earlier}; this is commit {commit}. "
                f"To begin anew: {anew}"
            )
    except BaseException:
        writer.close()
        raise
    return writer, results
