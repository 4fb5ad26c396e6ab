"""``pario bench patterns``: every pattern writes the array and reads it back, with the calls that
are typical of it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pario.cli import main
from pario.prove.bench.array import Block, shape_of
from pario.prove.bench.launch import launcher
from pario.prove.bench.results import Measure, Repetitions, rows_of
from pario.prove.bench.table import PATTERNS
from tests.support.commands import run_command, start_command
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="no mpi4py (pip install mpi4py)"
)


@pytest.mark.parametrize("grid", [(4,), (2, 3), (2, 1, 2)])
def test_blocks_tile_the_array(grid: tuple[int, ...]) -> None:
    whole = shape_of(100_000, grid)
    seen = np.zeros(whole)
    for rank in range(int(np.prod(grid))):
        block = Block.of(rank, grid, whole)
        seen[block.indices] += 1
        assert np.array_equal(
            block.make(), np.arange(seen.size, dtype=float).reshape(whole)[block.indices]
        )
    assert (seen == 1).all() and 50_000 < 8 * seen.size <= 110_000


def test_runs_are_where_the_elements_are() -> None:
    block = Block.of(3, (2, 2, 1), (4, 6, 5))
    file = np.arange(4 * 6 * 5, dtype=float)
    data = block.make().reshape(-1)
    for offset, position in block.runs():
        length = block.run // 8
        assert np.array_equal(
            file[offset // 8 : offset // 8 + length], data[position // 8 : position // 8 + length]
        )
    assert sum(block.run for _ in block.runs()) == block.bytes


def test_rates_are_of_the_median() -> None:
    measure = Measure(Repetitions((1.0, 4.0, 2.0)), 10, 3, 3)
    assert (measure.seconds.median, measure.rate, measure.seconds.spread) == (2.0, 5.0, 1.5)


@pytest.mark.system
@needs_mpi
@pytest.mark.mpi
@pytest.mark.parametrize("options", [[], ["--mpiio"]])
def test_every_pattern_reads_back_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    kept = tmp_path / "kept.json"
    words = [
        "--ranks",
        "4",
        "--size",
        "200K",
        "--groups",
        "2",
        "--repeat",
        "1",
        "--json",
        str(kept),
        *options,
    ]
    assert main(["bench", "patterns", str(tmp_path), *words]) == 0
    printed = capsys.readouterr().out
    result = json.loads(kept.read_text())
    rows = {row.pattern: row for row in rows_of(result)}
    assert list(rows) == list(PATTERNS) and all(name in printed for name in rows)
    calls = {name: (row.write.calls, row.read.calls) for name, row in rows.items()}
    runs = result["shape"][0] * result["shape"][1]  # the ranks divide two of the three sides
    assert (
        calls["one"] == (1, 1)
        and calls["files"] == (4, 4)
        and calls["collective"] == (4, 4)
        and calls["groups-files"] == (2, 2)
    )
    assert (
        calls["independent"] == (runs, runs)
        and rows["independent"].write.system_calls
        >= runs
        > 4 * rows["collective"].write.system_calls
    )
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


SMALL_RUN = "--ranks 2 --size 64K --array 2d --repeat 1".split()


@pytest.mark.system
@needs_mpi
@pytest.mark.mpi
def test_a_log_for_each_pattern_and_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SMALL_RUN, "--pattern", "files"]
    assert (
        main(["bench", "patterns", str(tmp_path), *words, "--json", str(tmp_path / "a.json")]) == 0
    )
    again = ["--compare", str(tmp_path / "a.json"), "--logs", str(tmp_path / "logs")]
    assert main(["bench", "patterns", str(tmp_path), *words, *again]) == 0
    assert "2 of 2 rates do not differ clearly from the earlier ones" in capsys.readouterr().out
    assert (tmp_path / "logs" / "files.pario" / "report.html").exists()


@pytest.mark.system
@needs_mpi
@pytest.mark.mpi
@pytest.mark.parametrize("options", [[], ["--mpiio"]])
def test_one_that_is_ended_leaves_nothing(tmp_path: Path, options: list[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "pario",
        "bench",
        "patterns",
        str(tmp_path),
        "--size",
        "1M",
        "--repeat",
        "100000",
        *options,
    ]
    with start_command(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert any("repetitions" in line for line in process.stderr)
        process.terminate()
        assert process.wait_for_end() == 143
    assert not any(tmp_path.iterdir())

    def have_ranks_ended() -> bool:
        return str(tmp_path) not in run_command(["ps", "axww"], status=0).stdout

    wait_until(have_ranks_ended, "the end of the ranks")  # the launcher ends before them


@pytest.mark.system
@needs_mpi
@pytest.mark.mpi
def test_a_picture_of_what_the_ranks_did(tmp_path: Path) -> None:
    patterns = ["--pattern", "one", "--pattern", "independent"]
    words = [*SMALL_RUN, *patterns, "--plot", str(tmp_path / "ranks.svg")]
    assert main(["bench", "patterns", str(tmp_path), *words]) == 0
    picture = (tmp_path / "ranks.svg").read_text()
    shown = [title.split(",")[0] for title in re.findall(r'font-weight="600">([^<]*)<', picture)]
    assert shown == ["one: write", "one: read", "independent: write", "independent: read"]
    assert {"write", "read", "communication", "in MPI-IO"} <= set(
        re.findall(r"<title>([^<]*)</title>", picture)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["ranks.svg"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pattern", "fast"], "--pattern fast: not known; expected one of one, one-text, files"),
        (["--compare", "/nonexistent"], "/nonexistent: No such file or directory"),
        (
            ["--plot", "ranks.pdf"],
            "--plot ranks.pdf: expected a name that ends in .svg, .html or .png",
        ),
        (["--mpiexec", "'mpiexec"], "--mpiexec 'mpiexec: No closing quotation"),
        (["--mpiexec", "true"], "the ranks ended with status 0: true -n 4"),
    ],
)
def test_errors_name_what_was_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["bench", "patterns", str(tmp_path), *words]) == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_the_table_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "patterns", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(PATTERNS)


# Rank 1 receives Ctrl-C where the other rank waits in a barrier.
INTERRUPTED_RANK = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from mpi4py import MPI
from pario.prove.bench.worker import run_worker
def main(request):
    if MPI.COMM_WORLD.Get_rank() == 1:
        os.kill(os.getpid(), signal.SIGINT)
    MPI.COMM_WORLD.Barrier()
run_worker(main)
"""


@pytest.mark.system
@needs_mpi
@pytest.mark.mpi
def test_an_interrupt_of_one_rank_ends_all() -> None:
    start = [*launcher(None), "-n", "2", sys.executable, "-c", INTERRUPTED_RANK, "{}"]
    done = run_command(start)
    assert done.returncode != 0
    assert "pario bench: rank 1: KeyboardInterrupt" in done.stderr
