"""The table of intercepted functions agrees with the MPI standard's mpi_abi.h."""

import re
import sys
from pathlib import Path

import pytest

HEADER = Path(sys.prefix) / "include" / "mpi_abi.h"
SOURCES = Path(__file__).parents[2] / "src"
TABLE = SOURCES / "observe" / "pmpi" / "functions.def"
OWN = SOURCES / "parallel" / "mpiio" / "files.def"
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason=f"{HEADER} is not here (PyPI: mpich)")

PROTOTYPE = re.compile(r"^(?:int|MPI_File) (MPI_\w+)\((.*)\);", re.MULTILINE)


def prototypes() -> dict[str, list[str]]:
    return {
        name: [] if arguments == "void" else arguments.split(",")
        for name, arguments in PROTOTYPE.findall(HEADER.read_text())
    }


def rows() -> list[list[str]]:
    found = re.findall(r"^PARIO_MPI(?:_FILE|_QUIET)?\((.*)\)", TABLE.read_text(), re.MULTILINE)
    return [[cell.strip() for cell in row.split(",")] for row in found]


def test_every_function_has_the_number_of_arguments_of_the_standard():
    known = prototypes()
    assert [
        row[:2] for row in rows() if len(known.get("MPI_" + row[0], [None])) != int(row[1])
    ] == []


def test_large_forms_are_those_of_the_standard():
    known = prototypes()
    assert [row[0] for row in rows() if (f"MPI_{row[0]}_c" in known) != bool(int(row[2]))] == []


def test_communicators_and_windows_stand_where_the_table_says():
    known = prototypes()
    recorded = [row for row in rows() if len(row) > 3 and not row[0].startswith("File_")]
    for name, _, _, category, role, comm, *_ in recorded:
        if int(comm) >= 0:
            expected = "MPI_Win" if role.endswith("_win") and role != "make_win" else "MPI_Comm"
            assert known["MPI_" + name][int(comm)].split()[0] == expected, (name, category)


def test_everything_that_moves_data_or_waits_is_in_the_table():
    moving = re.compile(r"MPI_Request|MPI_Win win$|void \*(buf|sendbuf|buffer)\b")
    local = re.compile(
        r"_(c2f|f2c|toint|fromint|attr|name|errhandler|info|group)$"
        r"|^MPI_(T_|Cancel|Grequest|Request_free|Pack|Unpack|Reduce_local|Free_mem|Win_attach"
        r"|Win_detach|Win_shared_query|Status_|Type_)"
        r"|attach_buffer|Buffer_attach|detach_buffer|_i?flush"  # the buffers of MPI_Bsend
    )
    names = {"MPI_" + row[0] for row in rows()}
    candidates = {
        name
        for name, arguments in prototypes().items()
        if any(moving.search(argument.strip()) for argument in arguments)
    }
    assert {
        name for name in candidates - names if not name.endswith("_c") and not local.search(name)
    } == set()


def test_every_function_of_files_is_in_both_tables():
    """Any other call would pass pario's file handle to the MPI."""
    of_files = {
        name.removeprefix("MPI_")
        for name in prototypes()
        if name.startswith("MPI_File_") and not name.endswith("_c")
    }
    own = set(re.findall(r"^PARIO_(?:FILE|DATA|END)\((\w+),", OWN.read_text(), re.MULTILINE))
    assert of_files - own == set()
    assert own - {row[0] for row in rows()} == set()
