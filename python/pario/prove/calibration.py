"""The measured machine of a file system: measures it, keeps it between runs, and finds it again."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path

import numpy as np

from pario import state
from pario.errors import ParioError, name_errors
from pario.fix.stripe.filesystem import facts_of, mount_of
from pario.fix.stripe.layout import Part, Wanted, set_stripes
from pario.machine import count_processors
from pario.prove.bench.calibrate import measure
from pario.prove.model.machine import THIS, Machine, load_file, text_of
from pario.publishing import keep_file
from pario.scratch import scratch
from pario.see.analyze.kept_rates import applies_to
from pario.see.tables.model import Job

_SIZE = 32 << 20
_SECONDS = 0.25


def file_system(directory: Path) -> str:
    """The name of a directory's file system, for files kept between runs."""
    mount = mount_of(directory)
    return state.name_of(mount.type, mount.source, mount.point)


def path_of(directory: Path) -> Path:
    """The file that keeps the machine of a directory's file system; it may not exist."""
    return state.folder(state.MACHINES) / f"{file_system(directory)}.toml"


def kept_machine(directory: Path) -> Machine | None:
    """The kept machine of a directory's file system; None if it was not measured, or if its file is
    damaged."""
    with suppress(ParioError):
        return load_file(path_of(directory), THIS)
    return None


def machine_of_run(job: Job) -> Machine | None:
    """The kept machine of the file system on which a run moved most bytes; None without one."""
    mount = _find_busiest_mount(job)
    paths = state.folder(state.MACHINES).glob("*.toml")
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        with suppress(ParioError):
            machine = load_file(path, THIS)
            if mount and machine.mount == (mount["type"], mount["mount"]):
                return machine if applies_to(job.hosts, bool(mount["network"])) else None
    return None


def _find_busiest_mount(job: Job) -> np.void | None:
    records = job.records[job.records["file"] >= 0]
    numbers = job.files["filesystem"][records["file"]]
    moved = np.zeros(len(job.filesystems) + 1)
    np.add.at(moved, numbers, records["bytes_read"] + records["bytes_written"])
    moved[-1] = 0  # of unknown file systems
    return job.filesystems[int(moved.argmax())] if moved.any() else None


def keep(machine: Machine, directory: Path) -> Path:
    """Keep the machine of a directory's file system; returns its path. Raises ParioError."""
    path = path_of(directory)
    keep_file(path, text_of(machine))
    return path


def measure_machine(directory: Path) -> Machine:
    """Measure this machine with the file system of a directory. Raises ParioError."""
    with name_errors(directory), scratch(directory, "pario-bench") as place:
        return _measure(place)


def _measure(place: Path) -> Machine:
    facts = facts_of(place)

    def create_striped(path: Path, count: int) -> None:
        if facts.targets:
            set_stripes(path, Wanted((Part(count=count),)))
        else:
            path.touch()

    found = dict(measure(place, facts.targets or 1, create_striped, _SIZE, _SECONDS))
    source = "reported by the file system" if facts.targets else "the file system reports no more"
    return Machine(
        THIS,
        f"{platform.node()}, {facts.mount.type} at {facts.mount.point}",
        facts.stripes.kind,
        facts.lock_unit or facts.block,
        count_processors(),
        {
            "targets": float(facts.targets or 1),
            **{name: float(f"{parameter.value:.4g}") for name, parameter in found.items()},
        },
        {
            "targets": source,
            **{name: f"measured: {parameter.how}" for name, parameter in found.items()},
        },
        (),
        "Measured from one host, by pario bench --calibrate: network, aggregators, and locks"
        " between hosts are not known.",
        (facts.mount.type, facts.mount.point),
    )
