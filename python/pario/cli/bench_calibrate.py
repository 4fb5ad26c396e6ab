"""Measures this machine and a file system, and describes them as a machine of the cost model."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path

from pario import wording
from pario.cli.bench_common import file_system, place_below, write
from pario.errors import ParioError
from pario.progress import progress

_SIZE = 32 << 20
_SECONDS = 0.25


def calibrate(directory: Path, output: Path | None) -> int:
    """Writes the description to the user's state directory, and to ``output``."""
    from pario import state
    from pario.fix.stripe.filesystem import facts_of
    from pario.fix.stripe.layout import Part, Wanted, set_stripes
    from pario.prove.bench.calibrate import measure
    from pario.prove.model.machine import Machine, text_of

    if output and output.suffix != ".toml":
        raise ParioError(f"-o {output}: expected a name that ends in .toml")
    with place_below(directory) as place, progress("pario bench: measuring"):
        facts = facts_of(place)

        def create_striped(path: Path, count: int) -> None:
            if facts.targets:
                set_stripes(path, Wanted((Part(count=count),)))
            else:
                path.touch()

        found = dict(measure(place, facts.targets or 1, create_striped, _SIZE, _SECONDS))
    told = "reported by the file system" if facts.targets else "the file system reports no more"
    machine = Machine(
        "this",
        f"{platform.node()}, {facts.mount.type} at {facts.mount.point}",
        facts.stripes.kind,
        facts.lock_unit or facts.block,
        os.cpu_count() or 1,
        {
            "targets": float(facts.targets or 1),
            **{name: float(f"{parameter.value:.4g}") for name, parameter in found.items()},
        },
        {
            "targets": told,
            **{name: f"measured: {parameter.how}" for name, parameter in found.items()},
        },
        (),
        "Measured from one host, by pario bench --calibrate: network, aggregators, and locks"
        " between hosts are not known.",
    )
    text = text_of(machine)
    path = state.folder("machines") / f"{file_system(directory)}.toml"
    print(text, end="")
    with suppress(OSError):  # write() reports it
        path.parent.mkdir(parents=True, exist_ok=True)
    for where in (path, *((output,) if output else ())):
        write(where, text)
    print()
    print(
        wording.printable(
            f"Kept in {output or path}: pario whatif LOG --machine {output or 'this'}"
        )
    )
    return 0
