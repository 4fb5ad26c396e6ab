"""Random views, datatypes, counts, ranks and routines: pario's MPI-IO against a byte-by-byte model
of the file.

The program (differential/*.c) prints the seed of each failing case; `--seed SEED --cases 1
--verbose` repeats it. PARIO_DIFFERENTIAL_SEED selects other cases, PARIO_DIFFERENTIAL_CASES their
number on one rank (more ranks run fewer), PARIO_LIBRARY another build of the library.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi, parameters
from tests.mpi.differential import build, cases_pass
from tests.suites.runs import under_pario
from tests.support.waiting import PATIENCE

SEED = int(os.environ.get("PARIO_DIFFERENTIAL_SEED", "1"))
QUICK = 10
CASES = int(os.environ.get("PARIO_DIFFERENTIAL_CASES", "120"))
#: Features that are not tested with the MPI's own MPI-IO: its defects, and cases MPI leaves open.
OPEN = [
    word
    for name in ("eof", "status", "holes", "nonblocking", "external32", "resize", "order")
    for word in ("--without", name)
]
#: Features in which the types of an MPI are not those of the standard.
DEFECTS = {"intel-mpi": ["--without", "cyclic_blocks"]}  # MPI_Pack takes other elements
_NODES = {"PARIO_NODES": "2"}
_ALONE = {"PARIO_HINTS": "*:romio_cb_write=disable:romio_cb_read=disable"}
_SMALL = {
    "PARIO_HINTS": (
        "*:romio_cb_write=enable:romio_cb_read=enable:cb_buffer_size=4096:pario_buffers=2"
    )
}
#: Number of ranks, and variables that select other code paths.
WAYS = {
    "1": (1, {}),
    "3": (3, {}),
    "2-alone": (2, _ALONE),
    "3-meeting-in-every-call": (3, {"PARIO_HINTS": "*:pario_run_ahead=disable"}),
    "4-on-two-nodes": (4, _NODES),
    "4-on-two-nodes-through-small-windows": (4, _NODES | _SMALL),
}

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("differential")


def run(
    mpi: Mpi,
    ranks: int,
    folder: Path,
    directory: Path,
    environment: dict[str, str],
    *arguments: object,
    limit: float = PATIENCE,
) -> None:
    words = [*map(str, arguments), *DEFECTS.get(mpi.name, [])]
    command = mpi.start(str(build(mpi, folder)), str(directory), *words, ranks=ranks)
    cases_pass(command, directory, environment, limit)


@pytest.mark.system
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.name != "mpich-5-abi"))
def test_a_few_cases(mpi: Mpi, ranks: int, folder: Path, tmp_path: Path) -> None:
    run(mpi, ranks, folder, tmp_path, under_pario(need_library()), "--seed", SEED, "--cases", QUICK)


@pytest.mark.system
def test_a_few_cases_with_the_standard_abi(folder: Path, tmp_path: Path) -> None:
    run(
        MPIS["mpich-5-abi"],
        2,
        folder,
        tmp_path,
        under_pario(need_library()),
        "--seed",
        SEED,
        "--cases",
        QUICK,
    )


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name for name in MPIS if name != "mpich-5-abi"])
def test_many_cases(name: str, way: str, folder: Path, tmp_path: Path) -> None:
    ranks, variables = WAYS[way]
    environment = under_pario(need_library(), variables)
    cases = ["--seed", 1000 * ranks + SEED, "--cases", CASES // ranks]
    run(MPIS[name], ranks, folder, tmp_path, environment, *cases, limit=12 * PATIENCE)


@pytest.mark.system
def test_the_model_agrees_with_romio(folder: Path, tmp_path: Path) -> None:
    """Guards against an error in both the model and pario.

    Leaves out cases that MPI leaves open and known defects of ROMIO.
    """
    run(
        MPIS["mpich-5"],
        3,
        folder,
        tmp_path,
        under_pario(None),
        "--seed",
        SEED,
        "--cases",
        QUICK,
        *OPEN,
    )
