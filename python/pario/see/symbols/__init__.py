"""Source lines for the native frames of call stacks: functions, files, lines and inlined calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pario.see.symbols import elf
from pario.see.symbols.programs import find_lines
from pario.see.tables.model import Frame, Job

#: Addresses that are looked up, those of the stacks with most seconds first.
_MOST = 4000

__all__ = ["resolve"]


def resolve(job: Job) -> Job:
    """Complete the frames of ``job.stacks``, and return the job. A frame becomes several if calls
    were inlined. A module that has changed since the run is reported in ``job.messages``."""
    wanted: dict[Frame, None] = {}
    for stack in _by_seconds(job):
        for frame in stack:
            if frame.module and len(wanted) < _MOST:
                wanted.setdefault(frame)
    known = _look_up(job, wanted)
    job.stacks = [
        tuple(part for frame in stack for part in known.get(frame, (frame,)))
        for stack in job.stacks
    ]
    return job


def _by_seconds(job: Job) -> Iterable[tuple[Frame, ...]]:
    """Return the stacks, those with most seconds first."""
    seconds = np.zeros(len(job.stacks))
    known = job.sites[job.sites["stack"] >= 0]
    np.add.at(seconds, known["stack"], known["seconds"])
    return (job.stacks[number] for number in np.argsort(-seconds, kind="stable"))


def _look_up(job: Job, frames: Iterable[Frame]) -> dict[Frame, tuple[Frame, ...]]:
    """Return the frames in the sources for each frame of a module."""
    by_module: dict[tuple[str, str], list[Frame]] = defaultdict(list)
    for frame in frames:
        by_module[frame.module, frame.build_id].append(frame)
    found: dict[Frame, tuple[Frame, ...]] = {}
    for (path, build_id), its in by_module.items():
        if not elf.is_readable(path):
            continue
        if build_id and elf.build_id(path) != build_id:
            job.messages.append(f"{path} has changed since the run: its lines are not known")
            continue
        found |= _look_up_in(path, its)
    return found


def _look_up_in(path: str, frames: list[Frame]) -> dict[Frame, tuple[Frame, ...]]:
    lines = find_lines(path, [frame.address for frame in frames])
    symbols = elf.Symbols(path)
    found = {}
    for frame in frames:
        parts = lines.get(frame.address, [])
        if parts and parts[0].line:
            found[frame] = tuple(
                replace(frame, function=part.function, file=part.file, line=part.line)
                for part in parts
            )
        elif symbol := symbols.find(frame.address):
            name = parts[0].function if parts and parts[0].function else symbol.name
            found[frame] = (replace(frame, function=name, offset=symbol.offset),)
    return found
