"""Sweeps of stripes: replays a pattern in files of each stripe count and stripe size, beside the
model's prediction.

A pattern consists of phases, each a script: writing and reading a shared file, or the recorded
calls of a run. docs/striping.md describes the command.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pario import filesystems, wording
from pario.copying import drop_from_cache
from pario.errors import ParioError
from pario.fix.stripe.filesystem import LIKELY_TARGETS, FileSystem
from pario.fix.stripe.layout import Part, Wanted
from pario.prove.model.machine import Machine
from pario.prove.model.whatif import Use, outcome, uses_of
from pario.prove.replay.perform import Manner, play, prepare_scratch
from pario.prove.replay.plan import script_of
from pario.prove.replay.script import OPERATION, Script
from pario.prove.replay.verbs import numbers
from pario.see.analyze.stripes import files_of
from pario.see.analyze.sweeps import Point, Sweep
from pario.see.tables.model import Job

#: Bytes per call of the made pattern, and of its smallest part.
PIECE, LEAST = 4 << 20, 4096
_PATH = "/sweep/shared"


@dataclass(frozen=True)
class Phase:
    """A part of a pattern that is measured by itself."""

    name: str
    script: Script
    uses: tuple[Use, ...]  # for the model


@dataclass(frozen=True)
class Pattern:
    """Phases that follow each other in the same files; the largest file and its processes."""

    text: str
    writers: int
    size: int
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class Progress:
    """A measured round of a point."""

    count: int
    unit: int
    seconds: dict[str, float]


def shared_file(ranks: int, size: int, mpi: bool) -> Pattern:
    """The pattern in which each rank writes its part of a shared file, and reads the part of
    another one. ``mpi``: ranks of MPI, otherwise processes of this host."""
    part = max(size // ranks // LEAST * LEAST, LEAST)
    flags = {"write": os.O_WRONLY | os.O_CREAT, "read": os.O_RDONLY}
    phases = []
    for name in ("write", "read"):
        writes = name == "write"
        begins = [(rank + (0 if writes else ranks // 2)) % ranks * part for rank in range(ranks)]
        seats = [_transfer(writes, flags[name], begin, part) for begin in begins]
        script = Script(seats, [_PATH], [], ranks if mpi else 0, slots=1)
        requests = ranks * -(-part // PIECE)
        uses = (Use(_PATH, "shared", writes, ranks, 1, part * ranks, requests, ranks),)
        phases.append(Phase(name, script, uses))
    users = wording.plural(ranks, "process", "processes")
    text = f"{users} write and read {wording.block(part * ranks)} in one file"
    return Pattern(text, ranks, part * ranks, tuple(phases))


def _transfer(writes: bool, flags: int, begin: int, length: int) -> np.ndarray:
    """The operations of one rank: open, transfer, sync (if it writes), close."""
    places = range(begin, begin + length, PIECE)
    known, way = numbers(), "pwrite" if writes else "pread"
    made = np.zeros(len(places) + 2 + writes, OPERATION)
    made["verb"] = [
        known["open"],
        *[known[way]] * len(places),
        *[known["fsync"]] * writes,
        known["close"],
    ]
    made["offset"][0] = flags
    made["offset"][1 : len(places) + 1] = places
    made["length"][1 : len(places) + 1] = [min(PIECE, begin + length - at) for at in places]
    return made


def pattern_of(job: Job) -> Pattern:
    """The pattern of a recorded run. Raises ReplayError if its log cannot be replayed."""
    script = script_of(job)
    largest = max(
        (expected for _, expected in files_of(job, 0)),
        key=lambda expected: expected.size,
        default=None,
    )
    if largest is None:
        raise ParioError(f"{job.source}: the run wrote no files whose stripes matter")
    text = f"the calls of {wording.command(job.command, 60) or job.source}"
    phase = Phase("replay", script, tuple(uses_of(job)))
    return Pattern(text, largest.writers, largest.size, (phase,))


def expect_stripes(facts: FileSystem) -> None:
    """Raise ParioError unless the stripes of new files can be set in a directory."""
    system = filesystems.of_kind(facts.stripes.kind)
    if not system.settable or not system.settable_directories:
        reason = system.reason if not system.settable else "directories there take no stripes"
        able = [row.kind for row in filesystems.ROWS if row.settable and row.settable_directories]
        raise ParioError(
            f"{facts.path} is on {facts.mount.type} at {facts.mount.point}, which has nothing to"
            f" sweep: {reason}; expected a directory on one of {', '.join(able)}"
        )


def usual_counts(targets: int) -> list[int]:
    """1, 2, 4, ... and all targets."""
    targets = targets or LIKELY_TARGETS
    return sorted({*(1 << power for power in range(targets.bit_length())), targets})


def combinations(size: int, counts: Sequence[int], units: Sequence[int]) -> list[Part]:
    """The stripes to measure, by count. A file has no more stripes than it fills; one stripe is the
    same with each stripe size."""
    pairs = {(min(count, -(-size // unit)), unit) for count in counts for unit in units}
    return [
        Part(count=count, unit=unit)
        for count, unit in sorted(pairs)
        if count > 1 or unit == min(units)
    ]


def sweep(
    directory: Path,
    facts: FileSystem,
    pattern: Pattern,
    stripes: Sequence[Part],
    machine: Machine | None,
    manner: Manner,
    repeat: int,
    tell: Callable[[Progress], None],
) -> Sweep:
    """Measure a pattern with each of the stripes, round by round; ``tell`` is called after each
    measurement. Raises ParioError."""
    taken: list[list[dict[str, float]]] = [[] for _ in stripes]
    for _ in range(repeat):
        for wanted, rounds in zip(stripes, taken, strict=True):
            rounds.append(_measure(directory, pattern, wanted, manner))
            tell(Progress(wanted.count, wanted.unit, rounds[-1]))
    points = tuple(
        Point(
            wanted.count,
            wanted.unit,
            {phase.name: tuple(one[phase.name] for one in rounds) for phase in pattern.phases},
            predict(machine, pattern, wanted) if machine else {},
        )
        for wanted, rounds in zip(stripes, taken, strict=True)
    )
    return Sweep(
        facts.mount.type,
        facts.mount.point,
        facts.stripes.kind,
        facts.targets,
        pattern.writers,
        pattern.size,
        pattern.text,
        time.time(),
        points,
    )


def _measure(directory: Path, pattern: Pattern, stripes: Part, manner: Manner) -> dict[str, float]:
    """Play the phases once in new files; returns the seconds of each. Files leave the page cache of
    this host before each phase."""
    seconds = {}
    with prepare_scratch(pattern.phases[0].script, directory, Wanted((stripes,))) as root:
        for phase in pattern.phases:
            for path in root.rglob("*"):
                if path.is_file():
                    with path.open("rb") as file:
                        drop_from_cache(file.fileno())
            seconds[phase.name] = play(phase.script, root, manner).longest
    return seconds


def predict(machine: Machine, pattern: Pattern, stripes: Part) -> dict[str, float]:
    """Predict the seconds of each phase."""
    return {phase.name: _predict(machine, phase.uses, stripes) for phase in pattern.phases}


def predict_write(machine: Machine, size: int, writers: int, stripes: Part) -> float:
    """Predict the seconds in which processes write a file, each its part."""
    requests = max(-(-size // PIECE), writers)
    use = Use(_PATH, "shared" if writers > 1 else "one rank", True, writers, 1, size, requests, 1)
    return _predict(machine, (use,), stripes)


def _predict(machine: Machine, uses: Sequence[Use], stripes: Part) -> float:
    return outcome(replace(machine, unit=stripes.unit), uses, stripes.count, "as it is", 0.0).io
