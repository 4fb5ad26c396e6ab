"""Settings that repair a cause without a change of the program: a column of the table of rules.

No repair multiplies the bytes that are written: pario's MPI-IO joins pieces, and reads none to fill
the holes between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pario.see.analyze.arrays import Ints
from pario.see.analyze.facts import Facts
from pario.see.analyze.model import Evidence, FileSetting, Fix
from pario.settings.environment import is_true
from pario.settings.explain import explain
from pario.settings.keys import Key, names, risky_keys

ANY_NUMBER = 1 << 30
#: The most bytes to keep in memory: half of a process's memory for buffers.
MOST_KEPT = 128 << 20

#: table, key, value. A value in braces is a figure of the finding's evidence, or {trees}: its
#: directories.
Wanted = tuple[str, str, str]


@dataclass(frozen=True)
class Repair:
    """Settings that belong together, for the files of a finding that are used through a layer."""

    wanted: tuple[Wanted, ...]
    effect: str
    layer: str = ""  # names separated by blanks; empty: any
    needs: str = ""  # a figure of the evidence that must not be 0
    # the most processes that may write a file: one does not see the buffered bytes of another
    writers: int = ANY_NUMBER
    buffers: bool = False  # it is useless for files that have pario's buffers already
    at_open: bool = False  # it begins with an open of the program

    @property
    def risky(self) -> bool:
        """True if the user must allow it."""
        return any(key in risky_keys() for _, key, _ in self.wanted)


class Subject(Protocol):
    """The facts of a finding that decide its repairs."""

    @property
    def files(self) -> tuple[str, ...]:
        """Its files, the worst first."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers of its calls."""

    @property
    def writers(self) -> int:
        """The largest number of processes that write one of its files."""

    @property
    def inherited(self) -> bool:
        """True if its processes did not open its files: standard input, for example."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Its evidence, with figures by name."""


_OWN_MPIIO: tuple[Wanted, ...] = (("run", "mpiio", "yes"), ("mpiio", "romio_ds_write", "disable"))
OWN_MPIIO = Repair(
    _OWN_MPIIO,
    "the ranks of a node share one set of buffers, and fill some while others are written",
    "mpiio",
)
MPIIO_WRITE_BEHIND = Repair(
    (*_OWN_MPIIO, ("mpiio", "pario_write_behind", "16M")),
    "pario's MPI-IO joins the small independent writes of all ranks into large ones, and reads no"
    " holes",
    "mpiio",
)
MPIIO_READ_AHEAD = Repair(
    _OWN_MPIIO,
    "pario's MPI-IO reads the next small pieces of all ranks of a node ahead",
    "mpiio",
    needs="reads",
)
SMALL_INDEPENDENT = (replace(MPIIO_WRITE_BEHIND, needs="writes"), MPIIO_READ_AHEAD)
SMALL_COLLECTIVE = (replace(OWN_MPIIO, needs="writes"), MPIIO_READ_AHEAD)
STRIPES = Repair(
    (
        ("striping", "striping_factor", "{stripes:.0f}"),
        ("striping", "striping_unit", "{unit_mib:.0f}M"),
    ),
    "new files lie on more storage targets",
)
WRITES_BEHIND = Repair(
    (("streams", "size", "8M"), ("streams", "count", "2")),
    "small writes are collected and written behind",
    "posix",
    writers=1,
    buffers=True,
    at_open=True,
)
READS_AHEAD = Repair(
    (("streams", "size", "1M"), ("streams", "prefetch", "2")),
    "small reads are served from large reads made ahead",
    "posix",
    needs="read_in_order",
    writers=0,
    buffers=True,
    at_open=True,
)
FULL_BUFFER = Repair(
    (("stdio", "mode", "full"), ("stdio", "size", "1M")),
    "streams get a full buffer",
    "stdio",
    writers=1,
    buffers=True,
)
FEWER_FLUSHES = Repair(
    (("streams", "ignoreflush", "yes"),),
    "flushes write nothing; close and exit do",
    "stdio",
    writers=1,
)
READ_ONCE = Repair(
    (("streams", "read_once", "yes"),),
    "each node reads the file once, into memory that its processes share",
    "posix",
    writers=0,
    at_open=True,
)
MAPPED_AHEAD = Repair(
    (("streams", "map_ahead", "yes"),),
    "one process per node reads mapped files ahead, in large parallel pieces",
    "posix",
    writers=0,
)
CACHED_TREES = Repair(
    (("run", "cached_trees", "{trees}"),),
    "one process per node asks for names and reads files of software, for all processes",
    writers=0,
)
LOADER_AHEAD = Repair(
    (("run", "loader_ahead", "yes"),),
    "the files of a DataLoader are copied to memory before its workers open them",
    "posix",
    needs="slow_to_open",
    writers=0,
)
KEPT_HANDLES = Repair(
    (("streams", "handles", "yes"),),
    "a closed file stays open for a while: opening it again is cheap",
    "posix stdio",
    writers=1,
)
CLOSED_BEHIND = Repair(
    (("streams", "lazyclose", "yes"),),
    "close does not wait for dirty bytes: they are written later, in large calls",
    "posix stdio",
    writers=1,
)
KEPT_WHOLE = Repair(
    (("streams", "whole", "{mib:.0f}M"),),
    "the file is read once into memory, which then serves reads and seeks",
    "posix",
    needs="small",
    writers=0,
    at_open=True,
)


def figures_of_copy(facts: Facts, rows: Ints, *, worth: bool) -> dict[str, float]:
    """Return figures of a copy in memory (``KEPT_WHOLE``): MiB of the largest file, and whether it
    is small enough and ``worth`` keeping."""
    size = float(np.maximum(facts.records["end_read"], facts.records["size_at_open"])[rows].max())
    mapped = bool(facts.column("maps")[rows].any())  # mmap ends the use of the copy
    small = worth and size <= MOST_KEPT and not mapped
    return {"mib": float(np.ceil(size / 2**20)), "small": float(small)}


def settings_for(
    repairs: Iterable[Repair],
    subject: Subject,
    environment: Mapping[str, str],
    buffered: Collection[str],
) -> tuple[FileSetting, ...]:
    """Return the settings that repair a finding: those that its files allow and that its run
    (``environment``) did not have already. ``buffered``: the files with pario's buffers."""
    files, figures = subject.files, _figures(subject)
    had = {(row.table, row.key) for row in explain(files[0], None, environment)} if files else set()
    had |= {("run", key.name) for key in names("run").values() if _is_set(key, environment)}
    has_buffers = are_buffered(subject, buffered)
    fitting = [
        repair
        for repair in _find_applicable(repairs, subject)
        if subject.writers <= repair.writers
        and not (repair.buffers and has_buffers)
        and not (repair.at_open and subject.inherited)
    ]
    return tuple(
        FileSetting(
            table, key, value.format(**figures, trees=":".join(files)), repair.risky, repair.effect
        )
        for repair in fitting
        for table, key, value in repair.wanted
        if (table, key) not in had
    )


def _is_set(key: Key, environment: Mapping[str, str]) -> bool:
    value = environment.get(key.carried, "")
    return is_true(value) if key.kind == "flag" else value != ""


def are_buffered(subject: Subject, buffered: Collection[str]) -> bool:
    """Tell whether a file of the subject has pario's buffers already."""
    return any(path in buffered for path in subject.files)


def reason_against(repairs: Iterable[Repair], subject: Subject) -> str:
    """Return why a finding has no settings although repairs for its calls exist; empty if none
    exist."""
    known = _find_applicable(repairs, subject)
    if known and subject.inherited and all(repair.at_open for repair in known):
        return "the program inherited the open file, such as standard input; buffers need its open"
    if all(subject.writers <= repair.writers for repair in known):
        return "the run had the settings for it already" if known else ""
    if any(repair.writers for repair in known):
        return "several processes write the file, and none would see the buffered bytes of another"
    return "the file is written at the same time, which buffers that were read ahead would not show"


def _find_applicable(repairs: Iterable[Repair], subject: Subject) -> list[Repair]:
    """Return the repairs for calls of the subject's layers whose needs its evidence meets."""
    figures, layers = _figures(subject), set(subject.layers)
    fitting = [
        repair for repair in repairs if not repair.layer or set(repair.layer.split()) & layers
    ]
    return [repair for repair in fitting if not repair.needs or figures.get(repair.needs)]


def _figures(subject: Subject) -> dict[str, float]:
    return {name: value for one in subject.evidence for name, value in one.values.items()}


def fixes_by(settings: tuple[FileSetting, ...]) -> tuple[Fix, ...]:
    """Return the commands that apply the settings, one per effect."""
    effects = {
        setting.effect: f" --allow {setting.key}" if setting.risky else "" for setting in settings
    }
    return tuple(
        Fix("setting", f"pario run --fix{allow} -- COMMAND, the program as it is: {effect}")
        for effect, allow in effects.items()
    )
