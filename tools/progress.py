"""Progress of a run that writes a result file."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from tests.support.results_file import Result, format_counts, iterate_rows, parse_result

#: Seconds between lines of progress.
INTERVAL = 30.0


class Progress:
    """Prints failures as they are written to the result file, and a line every few seconds."""

    def __init__(self, path: Path, interval: float, label: str, remaining: str = "") -> None:
        self._path = path
        self._interval = interval
        self._label = label
        self._remaining = remaining
        self._offset = path.stat().st_size
        self._start = self._printed = time.monotonic()
        self._selected: int | None = None
        self.counts: Counter[str] = Counter()

    @property
    def seconds(self) -> float:
        """Since the step began."""
        return time.monotonic() - self._start

    def update(self) -> None:
        """Reads the new lines of the result file; prints a line if one is due."""
        self._read()
        if time.monotonic() - self._printed >= self._interval:
            self._printed = time.monotonic()
            self.print_line(self._describe())

    def finish(self, ending: str) -> None:
        """Prints the counts of the step."""
        self._read()
        counts = format_counts(self.counts)
        self.print_line(f"{ending}: {counts} in {format_seconds(self.seconds)}")

    def print_line(self, text: str) -> None:
        """Prints a line that begins with the number and the name of the step."""
        print(f"{self._label}: {text}", flush=True)

    def _read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += data.rfind(b"\n") + 1
        for row in iterate_rows(data, str(self._path)):
            if "test" in row:
                self._add(parse_result(row))
            self._selected = row.get("selected", self._selected)

    def _add(self, result: Result) -> None:
        self.counts[result.outcome] += 1
        if not result.good:
            self.print_line(f"{result.outcome}: {result.test}: {result.reason}")

    def _describe(self) -> str:
        done = sum(self.counts.values())
        count = f"{done} of {self._selected}" if self._selected is not None else f"{done}"
        failed = self.counts["failed"] + self.counts["error"]
        elapsed = format_seconds(self.seconds)
        return f"{count} finished, {failed} failed, {elapsed}{self._remaining}"


def format_seconds(seconds: float) -> str:
    """As 1 h 5 min, 5 min 10 s, or 10 s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_of_hour = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_of_hour} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
