"""Checkpoints by real ranks: saved and loaded on different numbers of ranks; failing, absent and
killed ranks."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pario import checkpoint
from pario.checkpoint.header import read_header
from tests.mpi.conftest import MPIS, PROGRAMS, ROOT, environment, need
from tests.mpi.programs.checkpoint_forever import content
from tests.support.commands import run_command, start_command
from tests.support.tiers import select_for_ci
from tests.support.waiting import wait_until

pytest.importorskip("mpi4py")
MPI = MPIS["mpich-5"]
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith("PARIO_")}
VARIABLES["PYTHONPATH"] = str(ROOT)  # programs use tests.support


def run(
    program: str, *arguments: object, ranks: int, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    need(MPI)
    command = MPI.start(
        sys.executable, "-m", "mpi4py", str(PROGRAMS / program), *map(str, arguments), ranks=ranks
    )
    return run_command(command, env=variables or VARIABLES)


@pytest.mark.parametrize(
    ("saving", "loading", "seed"), [(1, 3, 10), pytest.param(4, 2, 20, marks=pytest.mark.system)]
)
@pytest.mark.system
def test_saved_on_some_ranks_and_loaded_on_others(
    tmp_path: Path, saving: int, loading: int, seed: int
) -> None:
    saved = run("checkpoints.py", "save", tmp_path, seed, ranks=saving)
    assert saved.stdout == "good\n", saved.stderr
    loaded = run("checkpoints.py", "load", tmp_path, seed, ranks=loading)
    assert loaded.stdout == "good\n", loaded.stderr


@pytest.mark.system
@pytest.mark.parametrize(("saving", "loading", "seed"), [(4, 3, 60), (2, 5, 30), (3, 1, 10)])
def test_saved_compressed(tmp_path: Path, saving: int, loading: int, seed: int) -> None:
    saved = run("checkpoints.py", "save", tmp_path, seed, "zstd", ranks=saving)
    assert saved.stdout == "good\n", saved.stderr
    loaded = run("checkpoints.py", "load", tmp_path, seed, ranks=loading)
    assert loaded.stdout == "good\n", loaded.stderr
    header = read_header(tmp_path / "latest")
    assert (header.step, header.format) == (1, 3)


@pytest.mark.system
@pytest.mark.parametrize(
    ("files", "saving", "loading", "seed"),
    [("2", 5, 2, 40), ("rank", 3, 4, 70), ("node", 2, 3, 60)],
)
def test_saved_in_several_files(
    tmp_path: Path, files: str, saving: int, loading: int, seed: int
) -> None:
    saved = run("checkpoints.py", "save", tmp_path, seed, files, ranks=saving)
    assert saved.stdout == "good\n", saved.stderr
    loaded = run("checkpoints.py", "load", tmp_path, seed, ranks=loading)
    assert loaded.stdout == "good\n", loaded.stderr


@pytest.mark.system
def test_ranks_of_a_node_join_short_rows_in_memory(tmp_path: Path) -> None:
    done = run("checkpoint_nodes.py", tmp_path, ranks=4)
    assert done.stdout == "good\n", done.stderr


@pytest.mark.system
def test_an_interrupt_of_one_rank_reaches_the_ranks_that_write_or_read_with_it(
    tmp_path: Path,
) -> None:
    done = run("checkpoint_interrupted.py", tmp_path, ranks=4)
    assert done.stdout == "good\n", done.stdout + done.stderr


def interrupt_wait(place: Path, *words: object) -> dict[int, str]:
    """Interrupts rank 0 in a joint call; returns the outcome of each rank."""
    done = run("checkpoint_interrupted_wait.py", place, *words, ranks=4)
    outcomes = {}
    for line in done.stdout.replace("}{", "}\n{").splitlines():
        if line.startswith("{"):  # else of the launcher, which sees no MPI_Finalize
            outcomes |= {int(rank): text for rank, text in json.loads(line).items()}
    assert outcomes.pop(0, done.stderr) == "KeyboardInterrupt: "
    return outcomes


@pytest.mark.system
@pytest.mark.parametrize("way", ["save", "load"])
def test_an_interrupt_in_a_joint_call_is_raised_when_all_ranks_have_come(
    tmp_path: Path, way: str
) -> None:
    outcomes = interrupt_wait(tmp_path, way, "late", 1, 600)
    assert outcomes == dict.fromkeys((1, 2, 3), "CheckpointError: rank 0: KeyboardInterrupt")


@pytest.mark.system
@pytest.mark.parametrize("way", ["save", "load"])
def test_an_interrupt_in_a_joint_call_is_raised_when_patience_with_an_absent_rank_ends(
    tmp_path: Path, way: str
) -> None:
    outcomes = interrupt_wait(tmp_path, way, "absent", 1, 5)
    assert sorted(outcomes) == [2, 3]
    for text in outcomes.values():
        assert text.startswith("CheckpointError: ") and "waited 5 s" in text


@pytest.mark.system
@pytest.mark.parametrize("way", select_for_ci(["save", "load"], 1))
def test_a_second_interrupt_ends_a_joint_call_of_all_ranks(tmp_path: Path, way: str) -> None:
    outcomes = interrupt_wait(tmp_path, way, "absent", 2, 10_000)
    assert sorted(outcomes) == [2, 3]
    for text in outcomes.values():
        assert text.startswith("CheckpointError: ") and "interrupted" in text
    state = checkpoint.load(None, tmp_path)
    assert (state.step, float(state["T"][-1, -1, -1])) == (0, 64 * 64 * 1024 - 1)


@pytest.mark.system
def test_merged_by_several_ranks(tmp_path: Path) -> None:
    assert run("checkpoints.py", "save", tmp_path, 80, "rank", ranks=3).stdout == "good\n"
    need(MPI)
    command = MPI.start(
        sys.executable, "-m", "pario", "checkpoint", "merge", str(tmp_path), ranks=2
    )
    merged = run_command(command, env=VARIABLES)
    assert merged.stdout == f"{tmp_path}/step-00000001.h5\n", merged.stderr
    loaded = run("checkpoints.py", "load", tmp_path, 80, ranks=2)
    assert loaded.stdout == "good\n", loaded.stderr


@pytest.mark.system
def test_saved_and_loaded_with_parios_mpi_io(tmp_path: Path) -> None:
    variables = environment(tmp_path) | {"PARIO_MPIIO": "1"}
    for what, ranks in (("save", 3), ("load", 2)):
        done = run("checkpoints.py", what, tmp_path / "ckpt", 50, ranks=ranks, variables=variables)
        assert done.stdout == "good\n", done.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 160, 10))
@pytest.mark.parametrize(("saving", "loading"), [(8, 3), (5, 8), (2, 1), (1, 6)])
def test_many_decompositions(tmp_path: Path, saving: int, loading: int, seed: int) -> None:
    for what, ranks in (("save", saving), ("load", loading)):
        done = run("checkpoints.py", what, tmp_path, seed, ranks=ranks)
        assert done.stdout == "good\n", done.stderr


#: Kind, ranks, files, and the number of kills.
_FEW = [
    ("serial", 1, 1, 2),
    ("mpi", 2, 1, 2),
    ("mpi", 2, 2, 2),
    ("staged", 2, "rank", 2),
    ("zstd", 2, 1, 2),
]
_MANY = [
    ("serial", 1, 1, 300),
    ("mpi", 2, 1, 240),
    ("mpi", 2, 2, 120),
    ("mpi", 3, "node", 120),
    ("staged", 2, 1, 100),
    ("staged", 2, "rank", 100),
    ("staged", 3, 2, 100),
    ("zstd", 3, 1, 100),
]
Files = int | str


@pytest.mark.system
@pytest.mark.parametrize(
    ("kind", "ranks", "files", "moments"),
    [*_FEW, *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in _MANY)],
)
def test_after_a_kill_the_last_complete_checkpoint_is_loaded(
    tmp_path: Path, record_count: Any, kind: str, ranks: int, files: Files, moments: int
) -> None:
    chance = random.Random(moments + ranks)
    record_count("kills", moments)
    for moment in range(moments):
        place = tmp_path / str(moment)
        place.mkdir()
        _run_until_killed(place, kind, ranks, files, chance)
        complete = int((place / "complete").read_text())
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            if kind == "staged":  # the newest checkpoint may be only in the stage
                checkpoint.Writer(
                    None, place / "ckpt", durable=False, stage=place / "stage"
                ).close()
            state = checkpoint.load(None, place / "ckpt")
        assert complete <= state.step <= complete + 3
        assert state.attrs["step_again"] == state.step == int(state["step"])
        assert (state["T"] == content(state.step)).all()
        assert all(
            "not finished" in str(one.message) or "it is drained" in str(one.message)
            for one in warned
        ), list(map(str, warned))
        with checkpoint.Writer(
            None, place / "ckpt", durable=False
        ) as writer:  # the next run cleans up and continues
            writer.save(state.step + 1, {"T": 1})
        assert (
            not [path for path in (place / "ckpt").iterdir() if path.suffix in (".part", ".gone")]
            and checkpoint.load(None, place / "ckpt").step == state.step + 1
        )


def _run_until_killed(
    place: Path, kind: str, ranks: int, files: Files, chance: random.Random
) -> None:
    """Kills a run some time after its first checkpoint is complete."""
    program = [
        sys.executable,
        str(PROGRAMS / "checkpoint_forever.py"),
        str(place),
        kind,
        str(files),
    ]
    if kind != "serial":
        need(MPI)
    command = MPI.start(*program, ranks=ranks) if kind != "serial" else program
    with start_command(command, env=VARIABLES, stderr=subprocess.PIPE) as running:
        complete = place / "complete"
        wait_until(lambda: complete.exists() or running.poll() is not None, "a checkpoint")
        assert complete.exists(), running.finish().stderr
        time.sleep(chance.random() * 0.15)  # at a random moment
        processes = [int((place / f"process{rank}").read_text()) for rank in range(ranks)]
        for process in chance.sample(processes, ranks):
            with suppress(ProcessLookupError):  # the launcher may end the others first
                os.kill(process, signal.SIGKILL)
        running.finish()


@pytest.mark.system
def test_every_rank_learns_of_trouble(tmp_path: Path) -> None:
    done = run("checkpoint_trouble.py", tmp_path, ranks=3)
    assert done.returncode == 0, done.stderr
    twice = "array 'T': [0:3] is given twice, by rank 0 [0:3] and rank 1 [0:3]"
    raised = "rank 1: ZeroDivisionError: of the program"
    absent = "save(step 2): rank 1 did not come within 1.00 s"
    whole = "[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]"
    others = ["saved", twice, raised, absent, whole]
    rank_1 = ["saved", twice, "of the program", "is absent", whole]
    assert done.stdout.splitlines() == [*others, *rank_1, *others]


@pytest.mark.system
def test_a_file_that_one_rank_cannot_open_is_an_error_on_all(tmp_path: Path) -> None:
    done = run("checkpoint_unopened.py", tmp_path, ranks=3)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    ranks = [lines[len(lines) // 3 * rank : len(lines) // 3 * (rank + 1)] for rank in range(3)]
    for each in ranks:
        # A rank without descriptors can load the whole array, which other ranks read.
        assert all(line == "done" or "open" in line for line in each[:-1])
        assert "done" not in each[:-1:3]
        assert [line == "done" for line in each] == [line == "done" for line in ranks[0]]
        assert each[-1] == "1.015625"
