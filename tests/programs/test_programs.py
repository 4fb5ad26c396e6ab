"""Programs of others behave the same under pario, and pario counts their I/O."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.programs.conftest import Compare

SCRIPTS = Path(__file__).parent / "scripts"
MPIEXEC = Path(sys.executable).parent / "mpiexec"
SAMPLES, SAMPLE = 400, 1024


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def needs_module(*modules: str) -> pytest.MarkDecorator:
    missing = [module for module in modules if find_spec(module) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def samples(directory: Path) -> None:
    (directory / "samples").mkdir()
    for i in range(SAMPLES):
        (directory / "samples" / f"{i:04}.bin").write_bytes(
            bytes((i + j) % 61 for j in range(SAMPLE))
        )


def numbers(directory: Path) -> None:
    (directory / "numbers.txt").write_text("".join(f"{i * 7919 % 100003}\n" for i in range(60000)))


def samples_and_numbers(directory: Path) -> None:
    samples(directory)
    numbers(directory)


def dataset(directory: Path) -> None:
    import h5py
    import numpy as np

    with h5py.File(directory / "in.h5", "w") as file:
        file.create_dataset("a/b", data=np.arange(5000.0).reshape(50, 100), chunks=(10, 10))
        file["a"].attrs["unit"] = "m"


@pytest.mark.system
@needs("tar")
def test_tar(same_under_pario: Compare) -> None:
    fixed = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0"]
    traced = same_under_pario(["tar", *fixed, "-cf", "all.tar", "samples"], samples)
    assert traced.count("bytes_written", "all.tar") == (traced.directory / "all.tar").stat().st_size
    assert traced.count("bytes_read", "samples/*") == SAMPLES * SAMPLE


@pytest.mark.system
@needs("cp")
def test_cp(same_under_pario: Compare) -> None:
    traced = same_under_pario(["cp", "-r", "samples", "copy"], samples)
    assert (
        traced.count("bytes_written", "copy/*")
        == traced.count("bytes_read", "samples/*")
        == SAMPLES * SAMPLE
    )


@needs("sort")
def test_sort_with_temporary_files(same_under_pario: Compare) -> None:
    traced = same_under_pario(
        ["sort", "-n", "-S", "100K", "-T", ".", "-o", "sorted.txt", "numbers.txt"], numbers
    )
    size = (traced.directory / "numbers.txt").stat().st_size
    assert (
        traced.count("bytes_written", "sorted.txt", "stdio")
        + traced.count("bytes_written", "sorted.txt")
        == size
    )


@needs("gzip")
def test_gzip(same_under_pario: Compare) -> None:
    traced = same_under_pario(["gzip", "-nk", "numbers.txt"], numbers)
    assert (
        traced.count("bytes_written", "numbers.txt.gz")
        == (traced.directory / "numbers.txt.gz").stat().st_size
    )


@pytest.mark.system
@needs("sh", "find", "xargs", "wc", "grep")
def test_shell_pipeline(same_under_pario: Compare) -> None:
    script = (
        "find samples -name '*7.bin' | sort | xargs -n 5 cat | wc -c; grep -c 1 numbers.txt; exec"
        " sh -c 'exit 3'"
    )
    same_under_pario(["sh", "-c", script], samples_and_numbers, status=3)


@pytest.mark.system
@needs("gcc")
def test_gcc(same_under_pario: Compare) -> None:
    source = '#include <stdio.h>\nint main(void) { return puts("made") < 0; }\n'
    same_under_pario(
        ["sh", "-c", "gcc -c -o a.o a.c && gcc a.o && ./a.out"],
        lambda directory: discard((directory / "a.c").write_text(source)),
    )


@pytest.mark.system
@needs("git")
def test_git(same_under_pario: Compare) -> None:
    script = (
        "export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000'"
        " GIT_CONFIG_GLOBAL=/dev/null; git init -q -b main . && git add . && git -c user.name=a -c"
        " user.email=b commit -qm x && git gc -q && git fsck && git rev-parse HEAD"
    )
    same_under_pario(["sh", "-c", script], samples, ignore=r"^\.git/")


@needs("sqlite3")
def test_sqlite(same_under_pario: Compare) -> None:
    statements = (
        "pragma journal_mode=wal; create table t(a integer primary key, b text); with recursive"
        " n(i) as (select 1 union all select i+1 from n where i < 5000) insert into t select i,"
        " hex(i*i) from n; create index x on t(b); select count(*), max(b) from t; pragma"
        " integrity_check;"
    )
    traced = same_under_pario(["sqlite3", "data.db", statements])
    assert traced.count("bytes_written", "data.db") >= (traced.directory / "data.db").stat().st_size


@pytest.mark.system
@needs("fio")
@pytest.mark.parametrize("engine", ["psync", "sync", "vsync", "posixaio", "mmap"])
def test_fio(same_under_pario: Compare, engine: str) -> None:
    job = [
        f"--ioengine={engine}",
        "--rw=randwrite",
        "--size=4m",
        "--bs=4k",
        "--filename=data",
        "--verify=crc32c",
        "--randseed=7",
    ]
    same_under_pario(
        ["fio", "--name=job", *job, "--output=out.json", "--output-format=json"],
        ignore="out.json|data",
    )


@pytest.mark.system
@needs("fio")
def test_fio_counts(same_under_pario: Compare) -> None:
    job = [
        "--ioengine=psync",
        "--rw=randrw",
        "--size=4m",
        "--bs=4k",
        "--norandommap",
        "--filename=data",
        "--randseed=7",
        "--thread",
    ]
    traced = same_under_pario(
        ["fio", "--name=job", *job, "--output=out.json", "--output-format=json"],
        lambda directory: discard((directory / "data").write_bytes(bytes(4 << 20))),
        ignore="out.json|data",
    )
    told = json.loads((traced.directory / "out.json").read_text())["jobs"][0]
    assert traced.count("reads", "data") == told["read"]["total_ios"]
    assert traced.count("writes", "data") == told["write"]["total_ios"]


@needs("h5dump", "h5repack", "h5diff")
@needs_module("h5py")
def test_hdf5_tools(same_under_pario: Compare) -> None:
    script = (
        "h5repack -f GZIP=6 in.h5 out.h5 && h5diff in.h5 out.h5 && h5dump -H out.h5 && h5dump -d"
        " /a/b -b LE -o raw out.h5"
    )
    traced = same_under_pario(["sh", "-c", script], dataset, ignore="out.h5")
    assert (traced.directory / "raw").stat().st_size == 5000 * 8
    assert (
        traced.count("bytes_written", "raw", "stdio") + traced.count("bytes_written", "raw")
        == 5000 * 8
    )


@pytest.mark.system
@needs_module("h5py")
def test_h5py(same_under_pario: Compare) -> None:
    traced = same_under_pario([sys.executable, str(SCRIPTS / "h5py_chunks.py")])
    assert (
        traced.count("end_written", "chunks.h5") <= (traced.directory / "chunks.h5").stat().st_size
    )
    assert traced.count("bytes_written", "chunks.h5") >= 8 << 17


@pytest.mark.system
@needs_module("mpi4py")
@pytest.mark.mpi
@pytest.mark.skipif(
    not MPIEXEC.exists(), reason="no mpiexec beside this Python (pip install mpich)"
)
def test_mpi4py(same_under_pario: Compare) -> None:
    traced = same_under_pario(
        [str(MPIEXEC), "-n", "2", sys.executable, str(SCRIPTS / "mpi4py_views.py")]
    )
    assert (
        traced.count("bytes_written", "matrix.dat", "mpiio")
        == traced.count("bytes_read", "matrix.dat", "mpiio")
        == 2 * 256 * 32 * 8
    )
    assert (
        traced.count("collective_writes", "matrix.dat", "mpiio")
        == traced.count("writes", "matrix.dat", "mpiio")
        == 2
    )
    assert traced.count("collective_reads", "matrix.dat", "mpiio") == 0


@pytest.mark.system
def test_process_pool_loader(same_under_pario: Compare) -> None:
    traced = same_under_pario([sys.executable, str(SCRIPTS / "process_loader.py")], samples)
    assert traced.count("bytes_read", "samples/*") == SAMPLES * SAMPLE
    assert traced.count("opens", "samples/*.bin") == SAMPLES


@needs_module("torch")
@pytest.mark.system
def test_torch_loader(same_under_pario: Compare) -> None:
    traced = same_under_pario(
        [sys.executable, str(SCRIPTS / "torch_loader.py")], samples, ignore="network.pt"
    )
    read = traced.count("bytes_read", "samples/*", "stdio") + traced.count(
        "bytes_read", "samples/*"
    )
    assert read == SAMPLES * SAMPLE


def discard(_: object) -> None:
    """Turns an expression into a preparation, which returns None."""
