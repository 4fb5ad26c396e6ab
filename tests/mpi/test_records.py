"""``pario records shuffle`` by several ranks: the bytes of one process; an error of one rank is an
error of all; one rank prints."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.mpi.conftest import MPIS, parameters
from tests.support.commands import run_command, start_command
from tests.support.tiers import select_for_ci
from tests.support.waiting import wait_until

pytestmark = pytest.mark.mpi

# The Pythons of other MPIs have their own mpi4py and no pario: they use this Python's pario, after
# their own packages.
PARIO = (
    f"import site, sys; site.addsitedir({sysconfig.get_path('purelib')!r}); from pario.cli import"
    " main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture
def lines(tmp_path):
    chance = random.Random(1)
    path = tmp_path / "in.txt"
    path.write_bytes(
        b"".join(b"%d %s\n" % (number, b"x" * chance.randrange(150)) for number in range(30_000))
        + b"no end"
    )
    return path


def shuffle(start, lines, name, *options):
    output = lines.with_name(name)
    command = [
        "-c",
        PARIO,
        "records",
        "shuffle",
        str(lines),
        "-o",
        str(output),
        "--seed",
        "7",
        *options,
    ]
    done = run_command([*start, *command], env=os.environ)
    return done, output


def ranks_of(mpi, ranks):
    if missing := mpi.missing(mpi.python):
        pytest.skip(f"{mpi.name}: {missing} is not here")
    return mpi.start(mpi.python, ranks=ranks)


@pytest.mark.system
@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.python))
@pytest.mark.parametrize(
    ("ranks", "options"), [(2, ()), (4, ("--way", "gather")), (3, ("--shards", "2"))]
)
def test_the_bytes_are_those_of_one(mpi, ranks, options, lines):
    _, alone = shuffle([sys.executable], lines, "alone")
    done, _ = shuffle(ranks_of(mpi, ranks), lines, "together", *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("30,001 records") == 1, "one of them says so"
    shards = sorted(lines.parent.glob("together*"))
    assert b"".join(shard.read_bytes() for shard in shards) == alone.read_bytes()
    assert {path.name for path in lines.parent.iterdir()} == {
        "in.txt",
        "alone",
        *(shard.name for shard in shards),
    }


@pytest.mark.system
@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.python))
def test_an_error_is_said_once_and_nothing_is_left(mpi, lines):
    for options, said in (
        (("--tmp", "/none"), "/none"),
        (("--way", "memory"), "not in memory"),
        (("--format", "tar"), "in.txt"),
    ):
        done, _ = shuffle(ranks_of(mpi, 2), lines, "together", *options)
        assert done.returncode != 0
        assert done.stderr.count("pario records: ") == 1 and said in done.stderr
        assert [path.name for path in lines.parent.iterdir()] == ["in.txt"]


def index(start, path, *options):
    command = ["-c", PARIO, "records", "index", str(path), *options]
    return run_command([*start, *command], env=os.environ)


@pytest.mark.system
@pytest.mark.parametrize("mpi", parameters(lambda mpi: mpi.python))
def test_ranks_index_one_file_of_lines_as_one_process_does(mpi, lines):
    made = lines.with_name("in.txt.pidx")
    start = ranks_of(mpi, 3)
    for options in ((), ("--update",)):
        if options:
            lines.write_bytes(lines.read_bytes() + b" continues\nnew\n")
        done = index(start, lines, *options)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("in.txt: ") == 1, "one of them says so"
        together = made.read_bytes()
        assert index([sys.executable], lines).returncode == 0
        assert together == made.read_bytes()
        assert {path.name for path in lines.parent.iterdir()} == {"in.txt", "in.txt.pidx"}


@pytest.mark.system
def test_an_index_that_cannot_be_updated_is_said_once(lines):
    start = ranks_of(MPIS["mpich-5"], 3)
    assert index(start, lines).returncode == 0
    made = lines.with_name("in.txt.pidx").read_bytes()
    lines.write_bytes(b"other" + lines.read_bytes())
    done = index(start, lines, "--update")
    assert done.returncode != 0
    assert done.stderr.count("pario records: ") == 1 and "not only appended to" in done.stderr
    assert lines.with_name("in.txt.pidx").read_bytes() == made


# All ranks but one join an exchange in the middle of the work only after a signal was sent.
HELD_EXCHANGE = """
import itertools, os, pathlib, signal, time
from pario import ranks
signal.signal(signal.SIGINT, signal.default_int_handler)
gather, count = ranks.Ranks.gather, itertools.count(1)
def gather_after_signal(self, mine):
    if next(count) == 8:
        place, signalled = pathlib.Path(os.environ["PLACE"]), int(os.environ["SIGNALLED"])
        (place / f"rank{self.rank}").write_text(f"{os.getpid()} ")
        while self.rank != signalled and not (place / "sent").exists():
            time.sleep(0.01)
    return gather(self, mine)
ranks.Ranks.gather = gather_after_signal
"""


def held_variables(place: Path, rank: int) -> dict[str, str]:
    """The variables of ranks of HELD_EXCHANGE, of which one gets a signal."""
    place.mkdir()
    return {"PLACE": str(place), "SIGNALLED": str(rank)}


def signal_rank(place: Path, rank: int, ranks: int, number: signal.Signals) -> None:
    """Sends a signal to a rank in the middle of its work, which needs the other ranks."""

    def find_processes() -> list[str]:
        return [path.read_text() for path in sorted(place.glob("rank*"))]

    processes = wait_until(
        lambda: (found := find_processes())[ranks - 1 :] and all(found) and found, "the work"
    )
    os.kill(int(processes[rank]), number)
    (place / "sent").touch()


@pytest.mark.system
@pytest.mark.parametrize("rank", select_for_ci([1, 0], 1))
def test_an_interrupt_of_one_rank_ends_all_and_leaves_nothing(lines, tmp_path, rank):
    mpi = MPIS["mpich-5"]
    output, held = lines.with_name("out"), tmp_path / "held"
    words = ["records", "shuffle", lines, "-o", output, "--seed", "7", "--way", "buckets"]
    start = [*ranks_of(mpi, 2), "-c", HELD_EXCHANGE + PARIO, *words]
    environment = os.environ | held_variables(held, rank)
    with start_command(start, env=environment, stderr=subprocess.PIPE) as running:
        signal_rank(held, rank, 2, signal.SIGINT)
        done = running.finish()
    assert done.returncode != 0 and not output.exists()
    assert done.stderr.count("pario records: interrupted") == 1, done.stderr
    again, _ = shuffle(ranks_of(mpi, 2), lines, "out", "--way", "buckets")
    assert again.returncode == 0, again.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "out", "held"}


# A rank runs END before it joins one of the exchanges for which the other rank waits.
ENDED_EXCHANGE = """
import itertools, os, signal
from pario import ranks
signal.signal(signal.SIGINT, signal.default_int_handler)
gather, count = ranks.Ranks.gather, itertools.count(1)
def gather_or_end(self, mine):
    if self.rank == int(os.environ["RANK"]) and next(count) == int(os.environ["EXCHANGE"]):
        exec(os.environ["END"])
    return gather(self, mine)
ranks.Ranks.gather = gather_or_end
"""
INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"


def end_before_exchange(rank, exchange, end, *words):
    """Runs a command by two ranks, one of which ends before an exchange."""
    return run_command(
        [*ranks_of(MPIS["mpich-5"], 2), "-c", ENDED_EXCHANGE + PARIO, "records", *words],
        env=os.environ | {"RANK": str(rank), "EXCHANGE": str(exchange), "END": end},
    )


@pytest.mark.system
@pytest.mark.parametrize(
    "case",
    select_for_ci(
        [
            (1, 1, INTERRUPT, "pario records: interrupted"),
            (1, 2, f"{INTERRUPT}; {INTERRUPT}", "rank 1: it was interrupted"),
            (0, 2, f"{INTERRUPT}; {INTERRUPT}", "pario records: interrupted"),
            (1, 2, "raise MemoryError('none')", "pario records: rank 1: MemoryError: none"),
            (0, 3, "raise MemoryError('none')", "\nMemoryError: none"),
            (1, 3, INTERRUPT, "rank 1"),
        ],
        2,
    ),
)
def test_the_end_of_a_rank_before_an_exchange_ends_all_and_leaves_nothing(lines, case):
    rank, exchange, end, said = case
    words = ["shuffle", lines, "-o", lines.with_name("out"), "--way", "buckets"]
    done = end_before_exchange(rank, exchange, end, *words)
    assert done.returncode != 0
    assert done.stderr.count(said) == 1, done.stderr
    again, _ = shuffle(ranks_of(MPIS["mpich-5"], 2), lines, "out", "--way", "buckets")
    assert again.returncode == 0, again.stderr
    assert {path.name for path in lines.parent.iterdir()} == {"in.txt", "out"}


@pytest.mark.system
@pytest.mark.parametrize("exchange", select_for_ci([1, 2, 3, 4], 2))
def test_an_interrupt_before_an_exchange_of_an_index_ends_all(lines, exchange):
    done = end_before_exchange(1, exchange, INTERRUPT, "index", lines)
    assert done.returncode != 0
    assert done.stderr.count("pario records: interrupted") == 1, done.stderr
    assert "rank 1" in done.stderr, "the other rank names it"
    assert index(ranks_of(MPIS["mpich-5"], 2), lines).returncode == 0


FEW_FILES = """
import os, resource
if os.environ["PMI_RANK"] == "1":
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
"""


@pytest.mark.system
def test_an_error_of_one_rank_between_collective_calls_ends_all(lines):
    words = ["records", "split", lines, "-o", lines.with_name("out.txt"), "--shards", "40"]
    done = run_command(
        [*ranks_of(MPIS["mpich-5"], 2), "-c", FEW_FILES + PARIO, *words], env=os.environ
    )
    assert done.returncode == 2
    said = "pario records: rank 1: 80 shards are more files than may be open: 100"
    assert done.stderr.count("pario records: ") == 1 and said in done.stderr


def test_ranks_of_a_foreign_mpi_are_noticed(lines):
    command = [
        sys.executable,
        "-m",
        "pario",
        "records",
        "shuffle",
        str(lines),
        "-o",
        str(lines.with_name("out")),
    ]
    environment = os.environ | {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    done = run_command(command, env=environment)
    assert done.returncode == 2 and "another MPI than the launcher" in done.stderr
