"""MPI_File_get_info and MPI_File_set_info of pario's MPI-IO (programs/info.c), against the
library's table of hints."""

from __future__ import annotations

from pathlib import Path

import pytest

from pario.settings import keys
from tests.library import need_library
from tests.mpi.conftest import PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = pytest.mark.mpi

#: A value other than the default for every type: as it is set, and as it is returned.
_VALUES = {
    "bytes": ("2M", "2097152"),
    "count": ("7", "7"),
    "seconds": ("7.5", "7.5"),
    "flag": ("yes", "yes"),
    "choice": ("disable", "disable"),
}
_TEXTS = {"file_perm": ("600", "600"), "pario_report": ("json", "json")}
#: Hints that are returned only on file systems with stripes.
_STRIPES = {"striping_factor", "striping_unit", "start_iodevice"}


def hints_of(
    mpi: Mpi, folder: Path, settings: dict[str, str], *, mode: str = "rw", nodes: int = 1
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the hints after opening, and after MPI_File_set_info."""
    program = str(compile_program(mpi, PROGRAMS / "info.c", folder))
    pairs = [f"{key}={value}" for key, value in settings.items()]
    job = mpi.start(program, str(folder / "file"), mode, *pairs, ranks=2)
    lines = run_job(
        job, folder, under_pario(need_library(), {"PARIO_NODES": str(nodes)})
    ).stdout.splitlines()
    found: dict[str, dict[str, str]] = {"open": {}, "set": {}}
    for line in lines:
        when, _, setting = line.partition(" ")
        if when in found:
            key, _, value = setting.partition(" ")
            found[when][key] = value
    return found["open"], found["set"]


@pytest.mark.system
def test_set_info_changes_the_hints_that_are_not_read_at_open_and_no_others(
    mpi: Mpi, tmp_path: Path
) -> None:
    hints = [key for key in keys() if key.carrier == "hint"]
    values = {key.name: _TEXTS.get(key.name) or _VALUES[key.kind] for key in hints}
    before, after = hints_of(mpi, tmp_path, {key: value for key, (value, _) in values.items()})
    for key in hints:
        fixed = key.when != "anytime" or key.name in _STRIPES
        expected = before.get(key.name) if fixed else values[key.name][1]
        assert after.get(key.name) == expected, key.name
    assert sum(before.get(key) != after.get(key) for key in values) > 15


@pytest.mark.system
def test_visibility_is_immediate_unless_collective_writes_are_merged(
    mpi: Mpi, tmp_path: Path
) -> None:
    key = "romio_visibility_immediate"
    before, after = hints_of(mpi, tmp_path, {"pario_merge_collectives": "1M"}, nodes=2)
    assert (before[key], after[key]) == ("true", "false")
