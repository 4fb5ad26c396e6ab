"""The tables of constants and handles agree with the mpi.h of each MPI of this machine."""

import re
from pathlib import Path

import pytest

from tests.mpi.conftest import Mpi, need, parameters
from tests.support.commands import run_command

TABLES = Path(__file__).parents[2] / "src" / "core" / "mpi"
COLUMNS = {"mpich-5": 1, "mpich-4": 1, "openmpi-4": 2, "openmpi-5": 2, "mpich-5-abi": 3}
ABSENT = {"kNoConstant", "kNoHandle", "nullptr"}


def rows(table: str, kind: str) -> list[list[str]]:
    found = re.findall(rf"^{kind}\((.*)\)", (TABLES / table).read_text(), re.MULTILINE)
    return [[cell.strip() for cell in row.split(",")] for row in found]


def constants(mpi: Mpi) -> list[tuple[str, str]]:
    """Returns the names that this MPI has, with the table's values."""
    return [
        (row[0], row[COLUMNS[mpi.name]])
        for row in rows("constants.def", "PARIO_CONSTANT")
        if row[COLUMNS[mpi.name]] not in ABSENT
    ]


def handles(mpi: Mpi) -> list[tuple[str, str]]:
    return [
        (row[0], row[COLUMNS[mpi.name]])
        for row in rows("handles.def", "PARIO_HANDLE")
        if row[COLUMNS[mpi.name]] not in ABSENT
    ]


def list_defined(mpi: Mpi, place: Path) -> set[str]:
    """Returns the names of the standard in mpi.h, without MPI_ and without removed functions."""
    source = place / "header.c"
    source.write_text("#include <mpi.h>\n")
    text = ""
    for option in ("-dM", "-P"):
        text += run_command([mpi.cc, "-E", option, str(source)], status=0, cwd=place).stdout
    refused = set(re.findall(r"#define MPI_(\w+) THIS_SYMBOL_WAS_REMOVED", text))
    return set(re.findall(r"\bMPI_(\w+)", text)) - refused


def differences(mpi: Mpi, place: Path, checks: dict[str, str]) -> list[str]:
    """Returns the names of the C conditions that do not hold under this MPI."""
    lines = [f'  if (!({condition})) puts("{name}");' for name, condition in checks.items()]
    source = place / "check.c"
    source.write_text(
        "\n".join(
            [
                "#include <mpi.h>",
                "#include <stddef.h>",
                "#include <stdio.h>",
                "int main(void) {",
                *lines,
                "}",
            ]
        )
    )
    program = place / "check"
    run_command([mpi.cc, "-w", "-o", str(program), str(source)], status=0, cwd=place)
    return run_command([str(program)], status=0).stdout.split()


@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.name in COLUMNS))
def test_constants_are_those_of_the_header(mpi: Mpi, tmp_path: Path) -> None:
    need(mpi)
    known = list_defined(mpi, tmp_path)
    checks = {
        name: f"(long long)MPI_{name} == {value}" for name, value in constants(mpi) if name in known
    }
    assert len(checks) >= 100
    assert differences(mpi, tmp_path, checks) == []


@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.name in COLUMNS))
def test_handles_are_those_of_the_header(mpi: Mpi, tmp_path: Path) -> None:
    need(mpi)
    known = list_defined(mpi, tmp_path)
    checks = {}
    for name, value in handles(mpi):
        if value.startswith('"') and name in known:
            checks[name] = f"(void*)MPI_{name} == (void*)&{value.strip(chr(34))}"
        elif name in known:
            checks[name] = f"(unsigned)(size_t)MPI_{name} == {value}u"
    if mpi.name == "mpich-4":  # has the name, but not the type
        del checks["INTEGER16"]
    assert len(checks) > 60
    assert differences(mpi, tmp_path, checks) == []


@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.name in COLUMNS))
def test_the_status_has_the_layout_that_the_library_assumes(mpi: Mpi, tmp_path: Path) -> None:
    need(mpi)
    size, first = {1: (20, 8), 2: (24, 0), 3: (32, 0)}[COLUMNS[mpi.name]]
    checks = {
        "size": f"sizeof(MPI_Status) == {size}",
        "source": f"offsetof(MPI_Status, MPI_SOURCE) == {first}",
        "tag": f"offsetof(MPI_Status, MPI_TAG) == {first + 4}",
        "error": f"offsetof(MPI_Status, MPI_ERROR) == {first + 8}",
        "ignore": f"(size_t)MPI_STATUS_IGNORE == {int(COLUMNS[mpi.name] == 1)}",
    }
    assert differences(mpi, tmp_path, checks) == []
