"""``pario records`` by the ranks of a launcher: they divide the work and write the bytes of one
process; a dead rank ends all."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from pario.publishing import is_part
from tests.mpi.conftest import MPIS
from tests.mpi.test_records import HELD_EXCHANGE, held_variables, signal_rank
from tests.mpi.test_records import PARIO as MAIN
from tests.support.commands import Command, run_command, start_command
from tests.support.ports import reserve_port
from tests.support.tiers import select_for_ci

pytestmark = pytest.mark.mpi
PARIO = [sys.executable, "-m", "pario", "records"]
HELD = [sys.executable, "-c", HELD_EXCHANGE + MAIN, "records"]
#: Commands that write OUT, or files whose names begin with it.
WRITERS = {
    "pack": "pack tree -o OUT --shuffle --seed 3",
    "to packed": "convert a.txt b.txt --to prec -o OUT",
    "to tfrecord": "convert a.txt b.txt --to tfrecord -o OUT",
    "to tar": "convert a.txt b.txt --to tar -o OUT",
    "to raw": "convert a.txt b.txt --to raw -o OUT",
    "to packed again": "convert old.prec --to prec -o OUT",
    "damaged": "convert damaged.tfrecord --to prec -o OUT --errors skip",
    "split": "split a.txt --shards 5 -o OUT",
    "split packed": "split old.prec --shards 4 -o OUT",
    "merge": "merge a.txt b.txt -o OUT",
    "empty": "convert empty.txt --to tar -o OUT",
    "shuffle": "shuffle a.txt b.txt -o OUT --seed 5",
}


def alone(words: str, folder: Path, **options) -> subprocess.CompletedProcess[str]:
    return run_command([*PARIO, *words.split()], cwd=folder, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Makes the inputs of all commands."""
    chance = random.Random(1)
    for name in ("a.txt", "b.txt"):
        lines = [b"%d %s\n" % (n, b"x" * chance.randrange(150)) for n in range(2000)]
        (tmp_path / name).write_bytes(b"".join(lines) + b"no end")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    for number in range(60):
        size = chance.choice([0, 10, 5000, 100_000])
        (tmp_path / "tree" / ("deep" if number % 2 else "") / f"f{number}").write_bytes(
            chance.randbytes(size)
        )
    return tmp_path


def make_inputs(folder: Path) -> None:
    """Makes files of other formats, one of them with damaged records."""
    alone("pack tree -o old.prec", folder, status=0)
    alone("convert a.txt --to tfrecord -o damaged.tfrecord", folder, status=0)
    damaged = folder / "damaged.tfrecord"
    data = bytearray(damaged.read_bytes())
    for at in (12, len(data) // 2, len(data) - 5):
        data[at] ^= 1
    alone("index damaged.tfrecord", folder, status=0)
    times = damaged.stat()
    damaged.write_bytes(data)
    os.utime(damaged, ns=(times.st_atime_ns, times.st_mtime_ns))


def outputs_of(folder: Path, name: str) -> dict[str, bytes]:
    """The outputs of a command; of an index without its head."""
    return {
        path.name.removeprefix(name): path.read_bytes()[256 if path.suffix == ".pidx" else 0 :]
        for path in folder.glob(f"{name}*")
    }


@contextmanager
def torch_ranks(
    words: Sequence[str],
    folder: Path,
    program: Sequence[str] = PARIO,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[list[Command]]:
    """Starts two processes with the variables of torchrun."""
    ranks, common = 2, {**os.environ, **variables}
    with ExitStack() as running:
        port = running.enter_context(reserve_port())
        common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
        common |= {"LOCAL_WORLD_SIZE": str(ranks)}
        yield [
            running.enter_context(
                start_command(
                    [*program, *words],
                    env=os.environ
                    | variables
                    | common
                    | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    cwd=folder,
                    stderr=subprocess.PIPE,
                )
            )
            for rank in range(ranks)
        ]


def check_same_bytes(name: str, folder: Path, said: str) -> None:
    expected = alone(WRITERS[name].replace("OUT", "alone"), folder, status=0).stderr
    assert outputs_of(folder, "together") == outputs_of(folder, "alone") != {}

    results = [
        [line.partition(": ")[2] for line in text.splitlines() if line.startswith(stem)]
        for text, stem in ((said, "together"), (expected, "alone"))
    ]
    assert results[0] == results[1] != []
    assert not [path.name for path in folder.iterdir() if is_part(path.name)]


def together(words: str, folder: Path, ranks: int = 3) -> subprocess.CompletedProcess[str]:
    start = MPIS["mpich-5"].start(*PARIO, ranks=ranks)
    return run_command([*start, *words.split()], cwd=folder)


@pytest.mark.system
def test_ranks_of_mpi_pack_the_bytes_of_one(folder: Path) -> None:
    done = together(WRITERS["pack"].replace("OUT", "together"), folder)
    assert done.returncode == 0, done.stderr
    check_same_bytes("pack", folder, done.stderr)


@pytest.mark.system
@pytest.mark.parametrize("name", select_for_ci([name for name in WRITERS if name != "pack"], 4))
def test_ranks_of_mpi_write_the_bytes_of_one(name: str, folder: Path) -> None:
    make_inputs(folder)
    done = together(WRITERS[name].replace("OUT", "together"), folder)
    assert done.returncode == 0, done.stderr
    check_same_bytes(name, folder, done.stderr)


@pytest.mark.system
def test_ranks_of_mpi_index_each_file_once(folder: Path) -> None:
    names = [f"{number}.txt" for number in range(5)]
    for name in names:
        (folder / name).write_bytes((folder / "a.txt").read_bytes())
    done = together(f"index {' '.join(names)}", folder)
    assert done.returncode == 0
    # mpiexec may join lines of different ranks.
    assert sorted(re.findall(r"\d\.txt(?=: )", done.stderr)) == names
    for name in names:
        index = folder / f"{name}.pidx"
        found = index.read_bytes()
        index.unlink()
        alone(f"index {name}", folder, status=0)
        assert index.read_bytes() == found


@pytest.mark.system
def test_an_error_of_ranks_is_reported_once(folder: Path) -> None:
    (folder / "lines.prec").write_bytes(b"no trailer")
    for words, text in (
        ("pack none -o out", "none: no such file"),
        ("pack tree -o none/out", "none/.out."),
        ("convert lines.prec --to tar -o out", "lines.prec"),
        ("convert a.txt --to tar -o tree", "tree"),
        ("convert a.txt --to tar -o s3://bucket/x", "several ranks write to a shared file system"),
    ):
        done = together(words, folder)
        assert done.returncode != 0 and not (folder / "out").exists()
        assert done.stderr.count("pario records: ") == 1 and text in done.stderr, done.stderr
    assert not [path.name for path in folder.iterdir() if is_part(path.name)]


@pytest.mark.system
@pytest.mark.parametrize("name", select_for_ci(["shuffle", "to packed", "split", "pack"], 2))
def test_processes_of_torchrun_write_the_bytes_of_one(name: str, folder: Path) -> None:
    pytest.importorskip("torch")
    words = WRITERS[name].replace("OUT", "together").split()
    with torch_ranks(words, folder) as ranks:
        done = [one.finish() for one in ranks]
    assert [one.returncode for one in done] == [0, 0], done
    assert done[1].stderr == ""
    check_same_bytes(name, folder, done[0].stderr)


@pytest.mark.system
@pytest.mark.parametrize("killed", select_for_ci([0, 1], 1))
def test_a_dead_process_of_torchrun_ends_the_other(
    killed: int, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("torch")
    words = "convert a.txt --to prec -o out".split()
    before, held = set(folder.iterdir()), tmp_path_factory.mktemp("held") / "marks"
    with torch_ranks(words, folder, HELD, held_variables(held, killed)) as ranks:
        signal_rank(held, killed, 2, signal.SIGKILL)
        done = ranks[1 - killed].finish()
    assert done.returncode == 2 and f"rank {killed}" in done.stderr, done.stderr
    assert done.stderr.count("pario records: ") == 1
    assert not (folder / "out").exists()
    alone("convert a.txt --to prec -o out", folder, status=0)
    assert set(folder.iterdir()) - before == {folder / "out", folder / "a.txt.pidx"}


@pytest.mark.system
def test_a_killed_rank_of_mpi_leaves_no_output(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before, held = set(folder.iterdir()), tmp_path_factory.mktemp("held") / "marks"
    start = MPIS["mpich-5"].start(*HELD, ranks=3)
    words = [*start, *"convert a.txt --to prec -o out".split()]
    variables = os.environ | held_variables(held, 1)
    with start_command(words, cwd=folder, env=variables, stdout=subprocess.PIPE) as running:
        signal_rank(held, 1, 3, signal.SIGKILL)
        done = running.finish()
    assert done.returncode != 0 and "BAD TERMINATION" in done.stdout, done
    assert not (folder / "out").exists()
    alone("convert a.txt --to prec -o out", folder, status=0)
    assert set(folder.iterdir()) - before == {folder / "out", folder / "a.txt.pidx"}


# Writes the bytes that the work of a rank reads and writes.
COUNTED = """
import os, sys, mpi4py.MPI, numpy
from pario import _native
from pario.cli import main, records_shuffle
def count():
    facts = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
    return int(facts["rchar"]) + int(facts["wchar"])
before = count()
status = main(sys.argv[1:])
open("io" + os.environ["PMI_RANK"], "w").write(str(count() - before))
raise SystemExit(status)
"""


@pytest.mark.system
def test_ranks_that_shuffle_through_buckets_move_four_times_the_data(folder: Path) -> None:
    big = folder / "big.txt"
    chance = random.Random(2)
    with big.open("wb") as file:
        for _ in range(40):
            piece = [b"%s\n" % chance.randbytes(chance.randrange(1, 99)).hex().encode()] * 10_000
            file.write(b"".join(piece))
    size = big.stat().st_size
    start = MPIS["mpich-5"].start(sys.executable, "-c", COUNTED, ranks=3)
    words = "records shuffle big.txt -o out --memory 500M --way buckets".split()
    done = run_command([*start, *words], cwd=folder, status=0)
    moved = sum(int((folder / f"io{rank}").read_text()) for rank in range(3))
    assert 3.9 * size < moved < 4.6 * size, (moved / size, done.stderr)
