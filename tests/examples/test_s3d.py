"""The S3D-like kernel: one canonical checkpoint, restarts on other numbers of ranks, and the calls
that its README promises."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pario import checkpoint
from pario.ranks import Ranks
from pario.see.analyze.rules.collective import MISSING
from pario.see.tables import read
from tests.examples.hdf5 import need_hdf5
from tests.library import need_library
from tests.python.support import threads
from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "s3d"
WHEEL_BIN = Path(sys.executable).parent
MODES = ["one", "files", "independent", "sieving", "collective"]
GRID = ["--size", "13x10x9"]

pytestmark = pytest.mark.mpi


def run(command: list[str | Path], *, status: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = run_command([str(word) for word in command])
    assert status is None or done.returncode == status, done.stdout + done.stderr
    return done


def make(build: Path, *words: str) -> None:
    """Builds the example into a folder, without warnings of the C compiler."""
    flags = "CFLAGS=-O2 -Wall -Wextra -Wshadow -Werror"
    run(["make", "-C", SOURCE, f"BUILD={build}", flags, *words])


@pytest.fixture(scope="session")
def s3d(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mpicc = WHEEL_BIN / "mpicc"
    if not mpicc.exists():
        pytest.skip("no mpicc beside this Python (pip install mpich)")
    build = tmp_path_factory.mktemp("s3d")
    make(build, f"MPICC={mpicc}")
    return build / "s3d"


def mpiexec(
    ranks: int, *command: str | Path, status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    return run([WHEEL_BIN / "mpiexec", "-n", str(ranks), *command], status=status)


def find_errors(*command: str | Path) -> str:
    """Returns the errors of a command that fails on two ranks.

    A busy Hydra may lose the output of a rank just before it aborts.
    """
    for _ in range(5):
        done = mpiexec(2, *command, status=None)
        assert done.returncode != 0
        if done.stderr:
            break
    return done.stderr


@pytest.fixture(scope="session")
def without_restart(s3d: Path, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The checkpoints of three steps, written by one rank."""
    directory = tmp_path_factory.mktemp("reference")
    mpiexec(1, s3d, *GRID, "--steps", "3", "--write", "one", "--dir", directory)
    return [path.read_bytes() for path in sorted(directory.iterdir())]


@pytest.fixture(scope="session")
def reference(without_restart: list[bytes]) -> bytes:
    return without_restart[1]


def check_restart(s3d: Path, ranks: int, path: Path, expected: bytes, directory: Path) -> None:
    """Asserts that the step after a restart writes the same bytes as without one."""
    done = mpiexec(ranks, s3d, "--restart", path, "--steps", "1", "--dir", directory)
    assert f"restart: step 2 on {ranks} ranks" in done.stdout
    assert (directory / "s3d-0003.ckpt").read_bytes() == expected


@pytest.mark.system
@pytest.mark.parametrize("mode", MODES)
def test_checkpoint_restarts_on_other_ranks(
    s3d: Path, without_restart: list[bytes], tmp_path: Path, mode: str
) -> None:
    mpiexec(4, s3d, *GRID, "--steps", "2", "--write", mode, "--dir", tmp_path)
    if mode != "files":
        assert (tmp_path / "s3d-0002.ckpt").read_bytes() == without_restart[1]
    for ranks in (1, 3):
        check_restart(s3d, ranks, tmp_path / "s3d-0002.ckpt", without_restart[2], tmp_path)


@pytest.fixture(scope="session")
def s3d_hdf5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_hdf5()
    build = tmp_path_factory.mktemp("s3d_hdf5")
    make(build, f"MPICC={WHEEL_BIN / 'mpicc'}", "hdf5")
    return build / "s3d_hdf5"


@pytest.fixture(scope="session")
def from_hdf5(s3d: Path, s3d_hdf5: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the checkpoints of two steps in HDF5 files."""
    directory = tmp_path_factory.mktemp("hdf5")
    mpiexec(4, s3d_hdf5, *GRID, "--steps", "2", "--write", "hdf5", "--dir", directory)
    return directory


@pytest.mark.system
@pytest.mark.parametrize("ranks", [1, 3])
def test_hdf5_checkpoint_restarts_on_other_ranks(
    s3d_hdf5: Path, from_hdf5: Path, without_restart: list[bytes], tmp_path: Path, ranks: int
) -> None:
    check_restart(s3d_hdf5, ranks, from_hdf5 / "step-00000002.h5", without_restart[2], tmp_path)


@pytest.mark.system
@pytest.mark.parametrize("options", [{}, {"files": 2}, {"files": "rank"}], ids=str)
def test_what_pario_loads_and_saves_again_restarts(
    s3d_hdf5: Path,
    from_hdf5: Path,
    without_restart: list[bytes],
    tmp_path: Path,
    options: dict[str, object],
) -> None:
    def copy_checkpoint(ranks: Ranks) -> Path:
        state = checkpoint.load(ranks, from_hdf5)
        given = {}
        for name in state:
            box = checkpoint.divide(state.shape(name), ranks.size, ranks.rank)
            part = state.read(name, box.begin, box.shape)
            given[name] = checkpoint.block(
                part, state.shape(name), box.begin, dims=state.dims(name)
            )
        with checkpoint.Writer(ranks, tmp_path / "ckpt", durable=False, **options) as writer:
            return writer.save(state.step, given, state.attrs)

    saved = threads.run(5, copy_checkpoint)[0]
    check_restart(
        s3d_hdf5, 3, saved / "master.h5" if saved.is_dir() else saved, without_restart[2], tmp_path
    )


@pytest.mark.parametrize("mode", ["independent", "sieving"])
@pytest.mark.system
def test_the_repair_of_small_pieces_moves_the_bytes_of_the_program_once(
    s3d: Path, tmp_path: Path, mode: str
) -> None:
    need_library()
    wanted = [setting for repair in MISSING.repairs for setting in repair.wanted]
    hints = [f"{key}={value}" for table, key, value in wanted if table == "mpiio"]
    pario = [WHEEL_BIN / "pario", "run", "-o", tmp_path / "log", "--mpiio", "--no-report"]
    kernel = [s3d, "--size", "32x40x40", "--write", mode, "--dir", tmp_path]
    hint = ["--hint", "*:" + ":".join(hints)]
    run([*pario, *hint, "--", WHEEL_BIN / "mpiexec", "-n", "4", *kernel])
    job = read([str(tmp_path / "log")])
    path = tmp_path / "s3d-0001.ckpt"
    own = [row["layer"] == 0 and job.path(row["file"]) == str(path) for row in job.records]
    rows = job.records[own]
    moved = rows["bytes_read"].sum() + rows["bytes_written"].sum()
    assert path.stat().st_size <= moved <= 1.5 * path.stat().st_size
    assert rows["writes"].sum() < 100  # of 102,400 pieces
    mpiexec(3, s3d, "--restart", path)


@pytest.mark.system
def test_damaged_checkpoint_is_refused(s3d: Path, reference: bytes, tmp_path: Path) -> None:
    damaged = bytearray(reference)
    damaged[104 + 8 * 600 + 6] ^= 0x40  # in the exponent of a double
    (tmp_path / "damaged").write_bytes(damaged)
    (tmp_path / "short").write_bytes(reference[:-8])
    assert "differ from the exact solution" in find_errors(s3d, "--restart", tmp_path / "damaged")
    assert f"{tmp_path}/short: the file ends too early" in find_errors(
        s3d, "--restart", tmp_path / "short"
    )


@pytest.mark.system
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "10x10"], "expected three numbers such as 64x64x64"),
        (["--write", "fast"], "expected one, files, independent, sieving, collective or hdf5"),
        (["--steps"], "not known, or without its value"),
        (
            ["--dir", "/nonexistent"],
            "MPI_File_open /nonexistent/s3d-0001.ckpt: File does not exist",
        ),
        (["--write", "hdf5"], "built without HDF5"),
        (["--restart", "/nonexistent"], "neither this file nor a first piece of it"),
        (["--restart", __file__], "not a checkpoint of s3d"),
        (["--size", "1x1x1"], "fewer cells than ranks along a side"),
    ],
)
def test_errors_name_operation_and_value(s3d: Path, arguments: list[str], message: str) -> None:
    assert message in find_errors(s3d, *arguments)


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("mode", "writes", "mib"),
    [("independent", 102401, "6.25"), ("sieving", 81, "87.11"), ("collective", 5, "6.25")],
)
def test_published_table_is_reproduced(
    s3d: Path, tmp_path: Path, mode: str, writes: int, mib: str
) -> None:
    strace = ["strace", "-ff", "-y", "-e", "trace=pwrite64,write", "-o", tmp_path / "trace"]
    run(
        [
            *strace,
            WHEEL_BIN / "mpiexec",
            "-n",
            "16",
            s3d,
            "--size",
            "32x40x40",
            "--write",
            mode,
            "--dir",
            tmp_path,
        ]
    )
    calls = [
        line
        for file in tmp_path.glob("trace.*")
        for line in file.read_text(errors="replace").splitlines()
        if "0001.ckpt>" in line
    ]
    moved = sum(int(re.search(r"= (\d+)$", line)[1]) for line in calls)
    assert (len(calls), f"{moved / 2**20:.2f}") == (writes, mib)


@pytest.fixture(scope="session")
def s3d_fortran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("mpif90.mpich") is None:
        pytest.skip("no mpif90.mpich (apt install libmpich-dev gfortran)")
    build = tmp_path_factory.mktemp("s3d_f90")
    make(build, "MPIFORT=mpif90.mpich", "fortran")
    return build / "s3d_f90"


@pytest.mark.system
@pytest.mark.parametrize("mode", MODES[2:])
def test_fortran_twin_has_the_same_checkpoint(
    s3d: Path, s3d_fortran: Path, reference: bytes, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "c.ckpt").write_bytes(reference)
    run(["mpiexec.mpich", "-n", "3", s3d_fortran, "--restart", tmp_path / "c.ckpt"])
    run(["mpiexec.mpich", "-n", "3", s3d_fortran, *GRID, "--write", mode, "--dir", tmp_path])
    assert (
        "restart: step 1 on 2 ranks"
        in mpiexec(2, s3d, "--restart", tmp_path / "s3d-0001.ckpt").stdout
    )
