"""pario's MPI-IO with dead and late ranks, full disks, very large files and transfers
(`programs/troubles.c`)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.library import need_library
from tests.mpi.conftest import MPIS, PROGRAMS, Mpi, compile_program
from tests.suites.runs import under_pario
from tests.support.commands import run_command, run_job, start_command

SHARED = Path("/dev/shm")
#: Seconds of the hint pario_watchdog; ranks that come in time are never so far apart.
WATCHDOG = 3
#: The parent of a killed rank. It exits only after the given number of other ranks have reported
#: their results, because the launcher would end them after its exit.
KEEPER = """#!/bin/sh
left=$1
shift
"$@" && exit
tries=0
until [ $tries = 1200 ] || [ "$(ls "$2" | grep -c '^troubles-')" = "$left" ]; do
  sleep 0.1
  tries=$((tries + 1))
done
sleep 1
"""

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compile_program(mpi, PROGRAMS / "troubles.c", tmp_path_factory.mktemp("troubles")))


def keeper(folder: Path) -> str:
    path = folder / "keeper"
    path.write_text(KEEPER)
    path.chmod(0o755)
    return str(path)


def environment(*, hints: str = "", nodes: int = 1) -> dict[str, str]:
    variables = under_pario(need_library(), {"PARIO_HINTS": f"*:{hints}"} if hints else {})
    # MPICH 4: with cma, UCX ends a rank that reads from a rank that dies; with tcp, MPI_Finalize
    # can hang after large messages.
    return variables | {"PARIO_NODES": str(nodes), "UCX_TLS": "^cma,tcp"}


def run_program(
    mpi: Mpi, command: list[str], files: Path, *, hints: str = "", ranks: int = 3, nodes: int = 1
) -> list[str]:
    """Returns the lines printed; a line of rank R begins with "rank R: "."""
    variables = environment(hints=hints, nodes=nodes)
    return run_job(mpi.start(*command, ranks=ranks), files, variables).stdout.splitlines()


def find_left_memory(folder: Path) -> list[str]:
    """Finds shared memory that the ranks of a program have left behind."""
    processes = [path.name.partition("-")[2] for path in folder.glob("process-*")]
    assert processes, "the ranks have noted their processes"
    return [path.name for process in processes for path in SHARED.glob(f"pario-{process}-*")]


def of(rank: int, lines: list[str]) -> list[str]:
    return [
        line.removeprefix(f"rank {rank}: ") for line in lines if line.startswith(f"rank {rank}: ")
    ]


def expect_all_to_learn(lines: list[str], ranks: int, killed: int, *, silent: bool = False) -> None:
    """Requires that two calls of every survivor failed and named the killed rank or an MPI error.

    silent: the MPI drops the texts of errors.
    """
    for rank in set(range(ranks)) - {killed}:
        assert len(of(rank, lines)) == 2, lines
        for line in of(rank, lines):
            named = (
                f"rank {killed} ({killed} of the program) has died" in line
                or "the MPI failed" in line
            )
            assert named or (silent and "Other I/O error" in line), line


@pytest.mark.system
@pytest.mark.parametrize(
    "call",
    [
        "write_all",
        "iwrite_all",
        *(
            pytest.param(call, marks=pytest.mark.exhaustive)
            for call in ("write_at_all", "split", "open")
        ),
    ],
)
def test_the_others_learn_which_rank_was_killed(
    mpi: Mpi, program: str, call: str, tmp_path: Path
) -> None:
    lines = run_program(
        mpi, [keeper(tmp_path), "2", program, str(tmp_path), "killed", call, "1"], tmp_path
    )
    expect_all_to_learn(lines, 3, 1, silent=mpi.name == "mpich-4")
    assert find_left_memory(tmp_path) == []


@pytest.mark.system
@pytest.mark.parametrize(
    ("call", "ranks", "nodes", "killed"),
    [
        ("write_all", 4, 2, 3),
        ("iwrite_all", 4, 2, 2),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in [
                ("write_all", 4, 2, 0),
                ("write_all", 4, 2, 1),
                ("write_all", 4, 2, 2),
                ("iwrite_all", 4, 2, 3),
                ("iwrite_all", 4, 2, 0),
                ("split", 6, 3, 2),
                ("write_at_all", 6, 3, 5),
                ("open", 4, 2, 3),
                ("open", 6, 3, 0),
            ]
        ),
    ],
)
def test_all_nodes_learn_which_rank_was_killed(
    mpi: Mpi, program: str, call: str, ranks: int, nodes: int, killed: int, tmp_path: Path
) -> None:
    command = [
        keeper(tmp_path),
        str(ranks - 1),
        program,
        str(tmp_path),
        "killed",
        call,
        str(killed),
    ]
    lines = run_program(mpi, command, tmp_path, ranks=ranks, nodes=nodes)
    expect_all_to_learn(lines, ranks, killed, silent=mpi.name == "mpich-4")


@pytest.mark.system
def test_delayed_writes_of_a_killed_rank_are_in_the_file(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    command = [keeper(tmp_path), "2", program, str(tmp_path), "orphaned", "-", "1"]
    lines = run_program(mpi, command, tmp_path, hints="pario_write_behind=4M")
    for rank in (0, 2):
        assert len(of(rank, lines)) == 1 and "close: good" not in of(rank, lines), lines
    pieces = [bytes([ord("a") + rank]) * 100 for rank in range(3)]
    assert (tmp_path / "troubles").read_bytes() == b"".join(pieces) * ((1 << 20) // 100)


def lines_of_late(
    mpi: Mpi, program: str, how: list[str], tmp_path: Path, *, nodes: int = 1, traced: bool = False
) -> list[str]:
    """Returns the output of a run in which a rank arrives after the watchdog's message on its call.

    Messages on other calls, in which a slow machine let a rank wait, are left out.
    """
    job = mpi.start(program, str(tmp_path), *how, ranks=3)
    awaited = "MPI_File_open of " if how == ["late_open"] else "MPI_File_write_all of "
    variables = environment(hints=f"pario_watchdog={WATCHDOG}", nodes=nodes)
    come = tmp_path / "troubles-come"
    if traced:
        variables["PARIO_TRACE_DIR"] = str(tmp_path / "logs")
        os.mkfifo(come)  # the late rank waits inside open()
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": variables}
    lines = []
    with start_command(job, cwd=tmp_path, **options) as running:
        assert running.stdout is not None
        for line in running.stdout:
            spoken = "has waited" in line
            if awaited in line or not spoken:
                lines.append(line.rstrip("\n"))
            if spoken and awaited in line:
                come.open("w").close()  # lets the late rank continue
    return lines


def message_of_watchdog(lines: list[str]) -> str:
    """Returns the watchdog's only line."""
    spoken = [line for line in lines if "has waited" in line]
    assert len(spoken) == 1, lines
    return spoken[0]


@pytest.mark.system
def test_the_watchdog_names_the_ranks_that_have_come_to_the_first_opening(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    lines = lines_of_late(mpi, program, ["late_open"], tmp_path)
    come = (
        f"MPI_File_open of {tmp_path / 'troubles'} has waited {WATCHDOG} s; of the 3 ranks of its"
        " communicator ranks 0 and 2 have come, as far as this host can tell. pario"
    )
    assert come in message_of_watchdog(lines), lines
    assert all(of(rank, lines) == ["close: good"] for rank in range(3)), lines


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_watchdog_names_the_rank_that_has_not_come(
    mpi: Mpi, program: str, nodes: int, tmp_path: Path
) -> None:
    lines = lines_of_late(mpi, program, ["late"], tmp_path, nodes=nodes)
    spoken = message_of_watchdog(lines)
    waiting = (
        f"MPI_File_write_all of {tmp_path / 'troubles'} has waited {WATCHDOG} s for rank 1; ranks 0"
        " and 2 have come"
    )
    assert waiting in spoken, lines
    assert "(rank 1: its last call on this file was MPI_File_s" in spoken, lines
    assert all(of(rank, lines) == ["write: good", "close: good"] for rank in range(3)), lines


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_watchdog_names_the_current_call_of_a_traced_missing_rank(
    mpi: Mpi, program: str, nodes: int, tmp_path: Path
) -> None:
    lines = lines_of_late(mpi, program, ["late"], tmp_path, nodes=nodes, traced=True)
    call = (
        rf"\(rank 1: inside open\(\) of {tmp_path / 'troubles-come'} for [\d.]+ s,"
        r" its last call on this file was MPI_File_s\w+\)"
    )
    assert re.search(call, message_of_watchdog(lines)), lines
    assert all(of(rank, lines) == ["write: good", "close: good"] for rank in range(3)), lines


@pytest.mark.system
def test_the_watchdog_names_the_rank_whose_message_a_missing_rank_waits_for(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    lines = lines_of_late(mpi, program, ["late", "message"], tmp_path, traced=True)
    spoken = message_of_watchdog(lines)
    receives = r"\(rank 1: inside MPI_Recv for [\d.]+ s, waiting for a message from rank 2,"
    assert re.search(receives, spoken), lines
    assert f"; rank 2: inside open() of {tmp_path / 'troubles-come'} for " in spoken, lines
    assert all(of(rank, lines) == ["write: good", "close: good"] for rank in range(3)), lines


@pytest.mark.system
def test_the_watchdog_names_the_current_call_of_a_rank_missing_at_the_first_opening(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    lines = lines_of_late(mpi, program, ["late_open"], tmp_path, traced=True)
    call = rf"\(rank 1: inside open\(\) of {tmp_path / 'troubles-come'} for [\d.]+ s\)"
    assert re.search(call, message_of_watchdog(lines)), lines
    assert all(of(rank, lines) == ["close: good"] for rank in range(3)), lines


@pytest.mark.system
def test_the_watchdog_says_that_a_missing_rank_is_alone_on_another_node(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    lines = lines_of_late(mpi, program, ["late"], tmp_path, nodes=3, traced=True)
    assert "for rank 1; ranks 0 and 2 have come (rank 1: on another node)" in (
        message_of_watchdog(lines)
    ), lines


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a small file system is mounted")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = run_command(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder])
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        run_command(["umount", "-l", folder], status=0)


@pytest.mark.system
@pytest.mark.parametrize("manner", ["pieces", "blocks"])
def test_every_rank_is_told_that_there_is_no_space(
    mpi: Mpi, program: str, manner: str, small_disk: Path
) -> None:
    lines = run_program(mpi, [program, str(small_disk), "full", manner], small_disk)
    for rank in range(3):
        write, *then = of(rank, lines)
        assert write.startswith("write: MPI_ERR_NO_SPACE: "), lines
        assert then == ["a small write: good", "close: good"], lines


def test_bytes_far_behind_2_to_the_40(mpi: Mpi, program: str, tmp_path: Path) -> None:
    lines = run_program(mpi, [program, str(tmp_path), "far"], tmp_path)
    size = 3 * 1_048_500
    for rank in range(3):
        assert of(rank, lines) == [
            "write: good",
            "read: good",
            f"same, begins +{100 * rank}, size +{size}",
            "close: good",
        ], lines


@pytest.mark.system
@pytest.mark.parametrize("fails", [False, True])
def test_all_ranks_append_or_are_told_why_one_cannot(
    mpi: Mpi, program: str, fails: bool, tmp_path: Path
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    (tmp_path / "troubles").write_bytes(bytes(1000))
    calls = "fstat,newfstatat,statx"
    strace = f"strace -f -qq -o /dev/null -P {tmp_path}/troubles -e inject={calls}:error=ESTALE"
    start = f"{program} {tmp_path} append"
    rank = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
    if fails:
        start = f"[ {rank} = 1 ] && exec {strace} {start}; exec {start}"
    lines = run_program(mpi, ["sh", "-c", start], tmp_path)
    for rank in range(3):
        append, *then = of(rank, lines)
        if fails:
            assert "Stale file handle" in append, lines
            assert "rank 1" in append or rank == 1, lines
        else:
            assert [append, *then] == ["append: good", "position 1000", "close: good"], lines
    assert not find_left_memory(tmp_path)


@pytest.fixture
def large_place() -> Iterator[Path]:
    """A folder in memory for a file of two gigabytes; skips if memory for its reader is missing."""
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if not SHARED.is_dir() or min(shutil.disk_usage(SHARED).free, available) < 8 << 30:
        pytest.skip("needs 8 GiB of free memory in /dev/shm")
    folder = SHARED / f"test-large-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("8 GiB of memory")
@pytest.mark.parametrize("name", ["mpich-5", "openmpi-5"])
def test_one_rank_moves_more_than_two_gigabytes(
    name: str, large_place: Path, tmp_path: Path
) -> None:
    mpi = MPIS[name]
    made = str(compile_program(mpi, PROGRAMS / "troubles.c", tmp_path))
    lines = run_program(mpi, [made, str(large_place), "large"], large_place, ranks=2)
    for rank in range(2):
        assert of(rank, lines) == [
            "write: good",
            "wrote all",
            "read: good",
            "read all, same",
            "close: good",
        ], lines
