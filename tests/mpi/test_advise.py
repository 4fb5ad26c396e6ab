"""``pario advise`` of MPI programs: replays measure pario's MPI-IO and collective calls."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.waiting import PATIENCE

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.system

# Measures runs and replays of any length: a pause of the machine in one of them is no reason
# against a measurement.
PARIO = """
import sys
from math import inf
from pario.cli import main
from pario.prove.tune import remedies
remedies.BUSY = remedies.SECONDS_EACH = inf
sys.exit(main(sys.argv[1:]))
"""
INTERLEAVED = """\
import sys
from mpi4py import MPI
world, piece = MPI.COMM_WORLD, bytes(400)
file = MPI.File.Open(world, "array.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
if sys.argv[1:]:  # collectively, through a view of 2,000 pieces
    view = MPI.BYTE.Create_vector(2000, len(piece), world.size * len(piece)).Commit()
    file.Set_view(world.rank * len(piece), MPI.BYTE, view)
    for part in range(10):
        file.Write_all(piece * 2000)
else:
    for row in range(20000):  # enough to be worth a measurement on a fast machine
        file.Write_at((row * world.size + world.rank) * len(piece), piece)
file.Close()
"""


@pytest.fixture
def pario(tmp_path: Path):
    """Returns a function that runs pario in the test's directory; returns the process."""
    (tmp_path / "program.py").write_text(INTERLEAVED)

    def run(*words: str):
        command = [sys.executable, "-c", PARIO, *words]
        return run_command(command, cwd=tmp_path, status=0, limit=4 * PATIENCE)

    return run


def record(pario, *options: str) -> None:
    launcher = Path(sys.executable).with_name("mpiexec")
    program = [str(launcher), "-n", "2", sys.executable, "program.py", *options]
    pario("run", "--no-report", "-o", "log", "--", *program)


def times(lines: str) -> dict[str, float]:
    """Returns the seconds of the table by remedy."""
    rows = re.findall(r"^ +([\d.]+) (m?)s  (.*)$", lines, re.MULTILINE)
    return {name: float(value) / (1000 if milli else 1) for value, milli, name in rows}


def test_independent_calls_are_measured_as_they_are_and_as_collective_ones(
    pario, tmp_path: Path
) -> None:
    record(pario)
    done = pario("advise", "log", "-o", "pario.toml", "--measure", "240")
    found = times(done.stderr)
    assert "as it is" in found
    assert any(name.startswith("pario's MPI-IO") for name in found)
    together = [name for name in found if name.startswith("collective calls on pario's MPI-IO")]
    assert together and all("(a change of the program)" in name for name in together)
    chosen = [name for name in found if name.endswith(": set")]
    assert ("mpiio = true" in (tmp_path / "pario.toml").read_text()) == bool(chosen)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "array.dat",
        "log",
        "pario.toml",
        "program.py",
    ]


def test_a_collective_program_is_measured_on_parios_mpiio(pario) -> None:
    record(pario, "collectively")
    done = pario("advise", "log", "-o", "pario.toml", "--measure", "240")
    found = times(done.stderr)
    assert any("pario's MPI-IO" in name for name in found)
    assert not any("a change of the program" in name for name in found)
    assert "left open" not in done.stderr
