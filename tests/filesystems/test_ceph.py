"""pario's MPI-IO on a real CephFS, on this machine and on hosts with separate clients."""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.examples.test_mpiio import PROGRAMS, SOURCE
from tests.filesystems.conftest import WRITE, Ceph
from tests.hosts.conftest import launcher
from tests.library import need_library
from tests.mpi.conftest import MPIS, Mpi, compile_program
from tests.mpi.conftest import PROGRAMS as MPI_PROGRAMS
from tests.mpi.differential import build, cases_pass
from tests.suites.runs import under_pario
from tests.support.commands import run_command, run_job
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.system, pytest.mark.mpi]
MPICH, OPENMPI = MPIS["mpich-5"], MPIS["openmpi-5"]
MIB = 1 << 20
#: Files of CephFS have at most 2^40 bytes by default; many thousand tiny requests of one rank take
#: minutes through FUSE. PARIO_CEPH_CASES: the number of random cases; each may take a minute.
HOW_MANY = int(os.environ.get("PARIO_CEPH_CASES", "2"))
CASES = [
    "--cases",
    str(HOW_MANY),
    "--seconds",
    str(30 * HOW_MANY),
    "--without",
    "huge",
    "--without",
    "large",
]


def only_all(*values: object) -> Any:
    """Returns test parameters that CI does not run."""
    return pytest.param(*values, marks=pytest.mark.exhaustive)


@pytest.fixture
def place(ceph: Ceph) -> Path:
    """A new folder on the CephFS."""
    folder = ceph.mount / uuid.uuid4().hex
    folder.mkdir()
    return folder


def run_write(
    command: list[str], path: Path, count: int, piece: int, *hints: str, report: str = "json"
) -> dict[str, Any]:
    """Runs write.py, checks that all bytes are right, and returns pario's report on the file."""
    variables = {"PARIO_HINTS": f"*:pario_report={report}"}
    arguments = [WRITE, str(path), str(count), str(piece), *hints]
    environment = under_pario(need_library(), variables)
    done = run_job([*command, sys.executable, *arguments], path.parent, environment)
    assert " 0 wrong" in done.stdout, done.stdout
    said: dict[str, Any] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith('{"note"'))
    )
    return said


def audit(said: dict[str, Any]) -> dict[str, tuple[str, str, str, str]]:
    return {
        hint["key"]: (hint["requested"], hint["applied"], hint["effective"], hint["reason"])
        for hint in said["hints"]
    }


def layout(path: Path) -> str:
    return os.getxattr(path, "ceph.file.layout").decode()


@pytest.mark.parametrize(
    ("mpi", "nodes"),
    [(MPICH, 1), (MPICH, 2), only_all(OPENMPI, 2)],
    ids=lambda value: getattr(value, "name", value),
)
def test_random_cases(mpi: Mpi, nodes: int, place: Path, tmp_path: Path) -> None:
    command = mpi.start(
        str(build(mpi, tmp_path)), str(place), "--seed", str(510 + 20 * nodes), *CASES, ranks=4
    )
    environment = under_pario(need_library(), {"PARIO_NODES": str(nodes)})
    cases_pass(command, tmp_path, environment, 5 * PATIENCE)


@pytest.mark.parametrize(
    ("mpi", "count", "each"),
    [only_all(MPICH, 2, 2), (OPENMPI, 2, 2), (MPICH, 4, 1)],
    ids=lambda value: getattr(value, "name", value),
)
def test_random_cases_on_hosts_with_clients_of_their_own(
    mpi: Mpi, count: int, each: int, ceph: Ceph, place: Path, tmp_path: Path
) -> None:
    program = str(build(mpi, tmp_path))
    cases = [program, str(place), "--seed", str(600 + 20 * count), *CASES]
    command = [*launcher(mpi, ceph.hosts[:count], each), *cases]
    cases_pass(command, tmp_path, under_pario(need_library()), 5 * PATIENCE)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the example programs, compiled."""
    built = tmp_path_factory.mktemp("examples")
    run_command(["make", "-s", "-C", SOURCE, f"MPICC={MPICH.cc}", f"BUILD={built}"], status=0)
    shutil.copy(SOURCE / "blocks.py", built)
    return built


@pytest.mark.parametrize("program", PROGRAMS)
def test_examples(program: str, examples: Path, place: Path, tmp_path: Path) -> None:
    interpreter = [sys.executable] if program.endswith(".py") else []
    command = MPICH.start(*interpreter, str(examples / program), str(place / "data"), ranks=3)
    done = run_job(command, tmp_path, under_pario(need_library()))
    assert done.stdout.splitlines()[-1].endswith(" 0 wrong"), done.stdout


def test_possible_stripes_are_set(place: Path) -> None:
    said = run_write(
        MPICH.start(ranks=2), place / "file", MIB, 0, "striping_factor=3", "striping_unit=2M"
    )
    assert audit(said)["striping_factor"] == ("3", "3", "3", "")
    assert audit(said)["striping_unit"] == ("2M", "2097152", "2097152", "")
    assert (
        layout(place / "file") == "stripe_unit=2097152 stripe_count=3 object_size=4194304 pool=data"
    )


def test_more_stripes_than_there_are_servers_are_no_trouble(place: Path) -> None:
    said = run_write(
        MPICH.start(ranks=2), place / "file", MIB, 0, "striping_factor=50", "striping_unit=65536"
    )
    assert audit(said)["striping_factor"] == ("50", "50", "50", "")


def test_an_impossible_unit_is_rounded(place: Path) -> None:
    said = run_write(
        MPICH.start(ranks=2), place / "file", MIB, 0, "striping_factor=2", "striping_unit=100000"
    )
    assert audit(said)["striping_unit"] == (
        "100000",
        "100000",
        "131072",
        "asked for stripes of 100000 bytes, they have 131072",
    )


def test_objects_are_multiples_of_the_unit(place: Path) -> None:
    said = run_write(
        MPICH.start(ranks=2), place / "file", MIB, 0, "striping_factor=2", "striping_unit=3145728"
    )
    assert audit(said)["striping_unit"][2:] == ("3145728", "")
    assert layout(place / "file").startswith(
        "stripe_unit=3145728 stripe_count=2 object_size=6291456"
    )


def test_a_unit_larger_than_the_largest_object(place: Path) -> None:
    said = run_write(MPICH.start(ranks=2), place / "file", 70 * MIB, 0, "striping_unit=4G")
    requested, _, effective, reason = audit(said)["striping_unit"]
    assert (requested, effective) == ("4G", str(128 * MIB))
    assert reason == f"asked for stripes of {4 << 30} bytes, they have {128 * MIB}"


def test_hints_that_ceph_cannot_follow(place: Path) -> None:
    said = run_write(MPICH.start(ranks=2), place / "file", MIB, 0, "start_iodevice=1")
    assert audit(said)["start_iodevice"][2:] == (
        "65535",
        "Ceph has no first target: it places objects by their names",
    )
    said = run_write(MPICH.start(ranks=2), place / "all", MIB, 0, "striping_factor=65535")
    assert audit(said)["striping_factor"][2:] == (
        "1",
        "Ceph does not tell how many targets there are",
    )


def test_a_file_that_exists_keeps_its_stripes(place: Path) -> None:
    (place / "file").write_bytes(b"old")
    said = run_write(MPICH.start(ranks=2), place / "file", MIB, 0, "striping_factor=3")
    assert audit(said)["striping_factor"] == (
        "3",
        "3",
        "1",
        "the file existed already: asked for 3 targets, the file has 1",
    )


def test_a_stripe_is_one_write(ceph: Ceph, place: Path) -> None:
    """Eight ranks on four hosts write 48,000,000 bytes: 45.8 stripes."""
    said = run_write(
        launcher(MPICH, ceph.hosts, 2),
        place / "file",
        6_000_000,
        0,
        "striping_factor=4",
        "striping_unit=1M",
    )
    figures = said["statistics"]
    assert (figures["stripe_count"], figures["stripe_size"], figures["aggregators"]) == (4, MIB, 4)
    assert (
        figures["system_writes"],
        figures["stripe_sized_writes"],
        figures["read_modify_writes"],
    ) == (46, 45, 0)
    assert figures["system_write_bytes"] == 48_000_000
    # less than all bytes twice (written and read), because some stay in their process
    assert figures["message_bytes"] < 2 * 48_000_000


def test_pieces_that_take_turns_become_stripes(ceph: Ceph, place: Path) -> None:
    said = run_write(
        launcher(MPICH, ceph.hosts, 2),
        place / "file",
        2 * MIB,
        4096,
        "striping_factor=2",
        "striping_unit=1M",
    )
    figures = said["statistics"]
    assert (figures["aggregators"], figures["system_writes"], figures["stripe_sized_writes"]) == (
        2,
        16,
        16,
    )


def test_subfiles_are_each_striped(place: Path) -> None:
    hints = "pario_subfiles=2", "striping_factor=3", "striping_unit=1M"
    said = run_write(MPICH.start(ranks=4), place / "file", 4 * MIB, 65536, *hints)
    assert said["statistics"]["system_writes"] == 16
    for number in range(2):
        part = place / "file.subfiles" / str(number)
        assert part.stat().st_size == 8 * MIB
        assert layout(part).startswith("stripe_unit=1048576 stripe_count=3 ")


#: Every rank opens its own handle; rank 0 writes pieces with holes between them and reports the
#: statistics.
SIEVE = """
import sys
from mpi4py import MPI
report = "json" if MPI.COMM_WORLD.rank == 0 else ""
hints = MPI.Info.Create({"romio_ds_write": "enable", "pario_report": report})
file = MPI.File.Open(MPI.COMM_SELF, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR, hints)
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    file.Set_view(0, MPI.BYTE, MPI.BYTE.Create_vector(1, 24, 1).Create_resized(0, 48).Commit())
    file.Write_at(0, b"x" * 24000)
MPI.COMM_WORLD.Barrier()
file.Close()
"""


@pytest.mark.parametrize(("count", "each", "sieves"), [(1, 1, True), (1, 2, False), (2, 1, False)])
def test_a_handle_sieves_as_long_as_it_is_the_only_one(
    count: int, each: int, sieves: bool, ceph: Ceph, place: Path
) -> None:
    (place / "sieve.py").write_text(SIEVE)
    command = [
        *launcher(MPICH, ceph.hosts[:count], each),
        sys.executable,
        str(place / "sieve.py"),
        str(place / "file"),
    ]
    done = run_job(command, place, under_pario(need_library()))
    assert done.returncode == 0, done.stdout
    said = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"note"'))
    assert (said["statistics"]["read_modify_writes"] > 0) == sieves, said["statistics"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["alone", "together"])
@pytest.mark.parametrize("count", [1, 2])
def test_several_handles_do_not_undo_what_others_write(
    count: int, how: str, ceph: Ceph, place: Path, tmp_path: Path
) -> None:
    """Runs handles.c on hosts with separate clients, whose locks the servers manage."""
    program = compile_program(MPICH, MPI_PROGRAMS / "handles.c", tmp_path)
    rounds, ranks = 10, 4
    command = [
        *launcher(MPICH, ceph.hosts[:count], ranks // count),
        str(program),
        str(place),
        how,
        str(rounds),
    ]
    done = run_job(command, tmp_path, under_pario(need_library()))
    assert done.returncode == 0, done.stdout
    assert f"0 of {ranks * rounds * 64 * 24} bytes are wrong" in done.stdout, done.stdout
