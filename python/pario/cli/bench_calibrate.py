"""Measures this machine and a file system, and describes them as a machine of the cost model."""

from __future__ import annotations

from pathlib import Path

from pario.cli.paths import require_directory
from pario.errors import ParioError
from pario.messages import print_line
from pario.progress import progress
from pario.publishing import write_text


def calibrate(directory: Path, output: Path | None) -> int:
    """Writes the description to the user's state directory, and to ``output``."""
    from pario.prove.calibration import keep, measure_machine
    from pario.prove.model.machine import text_of

    if output and output.suffix != ".toml":
        raise ParioError(f"-o {output}: expected a name that ends in .toml")
    require_directory(directory, "a directory on the file system to measure")
    with progress("pario bench: measuring"):
        machine = measure_machine(directory)
    print(text_of(machine), end="")
    path = keep(machine, directory)
    if output:
        write_text(output, text_of(machine))
    print()
    print_line(f"Kept in {output or path}: pario whatif LOG --machine {output or 'this'}")
    return 0
