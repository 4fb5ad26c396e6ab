"""The sentence of a verdict: the cost of the I/O, and the most valuable change or the absence of
one. Pure functions of the split and of the findings.

Sentences on parts of the run that the tables do not hold (``leads`` in verdict.py) stand before
it; the rest then speaks of the part that was seen, and gives no praise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pario.see.analyze.arrays import Floats
from pario.see.analyze.cells import READS, WRITES, Direction
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Bound, Finding, Grade, Split
from pario.wording import percent, rate, seconds, size

#: Findings that together save a smaller part of the wall time are not worth a change.
WORTH = 0.02
#: A smaller part of the wall time needs no explanation.
SMALL_PART = 0.1
#: I/O is efficient if the bytes at the reference rates explain this part of its time.
EFFICIENT = 0.7
#: Fewer bytes through sockets or pipes are not worth a word.
LEAST_MESSAGES = 10_000_000
#: Untraced work of the kernel is named from this part of the wall time on.
KERNEL_PART = 0.2
#: A slower device explains nothing: part of the default rate for its kind of file system.
LEAST_RATE = 0.05

#: Seconds of a call of printf or scanf that only formats or parses a line (assumed).
FORMATTING = 0.4e-6

_PRAISE = "nothing here is worth changing"
_NO_CAUSE = "no cause was found that a change of calls or settings would remove"
_UNTRACED = "for sockets, memory or processes, which pario does not trace"
_NAMES: dict[Bound, str] = {
    "communication": "communication",
    "waiting": "waiting",
    "compute": "computation",
}


@dataclass(frozen=True)
class Ruling:
    """The facts that decide the grade and the sentence."""

    split: Split  # along the critical path
    bound: Bound
    where: str  # "run", "on the critical path": the place of the split's seconds
    findings: Sequence[Finding]
    efficient: bool  # the bytes explain the time of the I/O
    moved: int  # bytes to and from storage
    covered: bool  # the tables hold the whole run
    kernel: float = 0.0  # processor seconds of the kernel outside of traced calls
    queued: float = 0.0  # seconds of the I/O in which the processes waited for a processor
    messages: str = ""  # "2.00 GB went through sockets"; empty: few bytes
    queue_share: float = 0.0  # part of the wall time on the run queue

    @property
    def gain(self) -> float:
        """Seconds that all findings would save."""
        return sum(finding.seconds for finding in self.findings)

    @property
    def worthwhile(self) -> bool:
        """True if a change would save a noticeable part of the run."""
        return bool(self.findings) and self.gain > WORTH * self.split.wall

    @property
    def whole(self) -> str:
        """The wall time, after a part of it."""
        return f"of the {seconds(self.split.wall)} {self.where}"


def grade(ruling: Ruling) -> Grade:
    """Return the grade: praise needs a run that is covered, and I/O that is small or explained."""
    if ruling.worthwhile:
        return "worthwhile"
    if not ruling.covered or ruling.bound == "unknown":
        return "unknown"
    small = ruling.split.io - ruling.queued < SMALL_PART * ruling.split.wall
    return "healthy" if small or ruling.bound == "little" or ruling.efficient else "unexplained"


def sentence(ruling: Ruling) -> str:
    """Return the sentence that ends a verdict."""
    if not ruling.covered:
        saving = f"; {_saving(ruling)}" if ruling.worthwhile else ""
        return f"In the part that was seen, {_cost(ruling)}{saving}."
    if ruling.bound == "unknown":
        return "Nothing is known of this job: the log holds no process."
    if ruling.worthwhile:
        return f"{_worthwhile(ruling)}."
    if ruling.bound == "little":
        return f"Hardly any I/O: {seconds(ruling.split.io)} {ruling.whole}."
    return f"{_calm(ruling)}."


def _worthwhile(ruling: Ruling) -> str:
    """Return the cost and the saving. A change that saves more than the I/O costs comes first."""
    split = ruling.split
    if ruling.gain <= split.io:
        return f"{_prefix(ruling)}{_cost(ruling)}; {_saving(ruling)}"
    return f"{_prefix(ruling)}{_saving(ruling, ruling.whole)}; I/O itself costs {_io(split)}"


def _calm(ruling: Ruling) -> str:
    """Return the cost of I/O that no finding explains or blames."""
    if grade(ruling) == "unexplained":
        return f"{_prefix(ruling)}{_cost(ruling)}; {_NO_CAUSE}{_rest(ruling)}"
    split = ruling.split
    most = f" (at most {seconds(ruling.gain)} could be saved)" if ruling.findings else ""
    if split.io < SMALL_PART * split.wall:
        part = percent(split.io, split.wall)
        return f"I/O is {part} {ruling.whole}: {_PRAISE}{most}{_rest(ruling)}"
    if ruling.queued >= SMALL_PART * split.io:
        about = f", about {seconds(ruling.queued)} of it waiting for a processor"
    else:
        about = f" for {size(ruling.moved)} at {rate(ruling.moved / split.io)}"
    return f"{_prefix(ruling)}{_cost(ruling)}{about}: {_PRAISE}{most}{_rest(ruling)}"


def _prefix(ruling: Ruling) -> str:
    return "I/O-bound: " if ruling.bound == "io" else ""


def _cost(ruling: Ruling) -> str:
    return f"I/O costs {_io(ruling.split)} {ruling.whole}"


def _io(split: Split) -> str:
    return f"{seconds(split.io)} ({percent(split.io, split.wall)})"


def _saving(ruling: Ruling, whole: str = "") -> str:
    gain, findings = ruling.gain, ruling.findings
    part = "mostly" if findings[0].seconds >= 0.5 * gain else "above all"
    amount = f"{seconds(gain)} ({percent(gain, ruling.split.wall)})"
    return f"{amount}{' ' * bool(whole)}{whole} could be saved, {part} by {findings[0].remedy}"


def _rest(ruling: Ruling) -> str:
    """Return the largest other part of the time, if the log knows it."""
    through = f"; {ruling.messages}" if ruling.messages else ""
    if ruling.bound == "idle":
        return f"{_idleness(ruling.split)}{through}"
    if ruling.bound not in _NAMES:
        return ""
    wall = ruling.split.wall
    part: float = getattr(ruling.split, ruling.bound)
    if ruling.bound == "compute" and ruling.queue_share * wall > 0.5 * part:
        return through  # the verdict names the waiting for processors
    text = f"; {_NAMES[ruling.bound]} takes {percent(part, wall)}"
    if ruling.bound != "compute" or ruling.kernel < KERNEL_PART * wall:
        return f"{text}{through}"
    reason = "" if through else f" {_UNTRACED}"
    return f"{text}, {percent(ruling.kernel, part)} of it in the kernel{reason}{through}"


def _idleness(split: Split) -> str:
    if not split.waits_for_peers:
        return "; the processes mostly slept or waited for something outside"
    amount = f"{seconds(split.peers)} ({percent(split.peers, split.wall)})"
    return f"; {amount} were spent waiting for other processes or users (poll, recv, pipes)"


def is_efficient(facts: Facts, queued: float) -> bool:
    """Return True if the bytes at the reference rates explain most of the time in I/O calls, of
    which ``queued`` seconds were spent waiting for a processor."""
    spent = float(facts.cells.sum()) - queued
    if spent <= 0:
        return False
    needed = _needed_seconds(facts, READS) + _needed_seconds(facts, WRITES)
    return float(np.minimum(needed, facts.cells.sum(axis=1)).sum()) >= EFFICIENT * spent


def _needed_seconds(facts: Facts, direction: Direction) -> Floats:
    """Return, per row, the seconds of its bytes at the reference rate, which a slow device does not
    lower without limit, and those of formatting in buffered streams."""
    least = LEAST_RATE * facts.reference.default[facts.file, direction.kind]
    pace = np.maximum(facts.reference.row_rate(direction), least)
    buffered = facts.stdio & (facts.column("buffer_mode") == 0)
    calls = np.minimum(facts.column("formatted_calls"), facts.calls_of(direction))
    return np.asarray(facts.asked_bytes(direction.bytes) / pace + buffered * calls * FORMATTING)
