"""--fail-above: an exit status for continuous integration, by the seconds that findings cost."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from math import inf

from pario import wording
from pario.messages import print_note

#: The exit statuses (docs/exit-status.md).
ABOVE, NOT_JUDGED = 3, 4

_EXPECTED = "expected a part of the wall time such as 10%, or seconds such as 2s"


@dataclass(frozen=True)
class Threshold:
    """The most that the findings of a run may cost: a part of its wall time, or seconds."""

    share: float = inf
    seconds: float = inf

    def is_exceeded(self, lost: float, wall: float) -> bool:
        """True if ``lost`` seconds of ``wall`` seconds are above the threshold."""
        return lost > self.seconds or lost > self.share * wall

    def __str__(self) -> str:
        return wording.seconds(self.seconds) if self.seconds < inf else f"{100 * self.share:g} %"


def threshold(text: str) -> Threshold:
    """The type of an argument such as ``10%`` or ``2s``."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(%|s)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text}; {_EXPECTED}")
    value = float(found[1])
    return Threshold(share=value / 100) if found[2] == "%" else Threshold(seconds=value)


def add_threshold(parser: argparse.ArgumentParser, whose: str) -> None:
    """--fail-above, for the findings of ``whose``."""
    parser.add_argument(
        "--fail-above",
        type=threshold,
        metavar="LIMIT",
        help=f"exit with status {ABOVE} if the findings of {whose} cost more than LIMIT, a part of"
        f" its wall time (10%%) or seconds (2s), and with {NOT_JUDGED} if that is not known",
    )


def status_of(command: str, limit: Threshold, lost: float, wall: float, is_judged: bool) -> int:
    """The exit status of one run; prints the reason if it is not 0."""
    if limit.is_exceeded(lost, wall):
        share = f" ({wording.percent(lost, wall)})" if wall > 0 else ""
        _print(command, f"the findings cost {wording.seconds(lost)}{share}, more than {limit}")
        return ABOVE
    if not is_judged:
        _print(command, "the verdict does not cover the whole run")
        return NOT_JUDGED
    return 0


def status_of_many(command: str, above: int, not_judged: int, limit: Threshold) -> int:
    """The exit status of many runs, by the numbers of those above the threshold and of those that
    cannot be judged; prints the reason if it is not 0."""
    if above:
        runs = wording.plural(above, "run")
        _print(command, f"the findings of {runs} cost more than {limit}")
        return ABOVE
    if not_judged:
        _print(command, f"{wording.plural(not_judged, 'run')} cannot be judged")
        return NOT_JUDGED
    return 0


def _print(command: str, text: str) -> None:
    print_note(f"pario {command}: {text}")
