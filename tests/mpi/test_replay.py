"""Replays of MPI programs: MPI-IO calls with their views and groups, POSIX calls in the order of
barriers."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pario.prove.replay import Script, fidelity, perform, script_of
from pario.prove.replay.collective import method_of
from pario.prove.replay.perform import Manner
from pario.prove.replay.script import BARRIER
from pario.see.analyze.split import Times
from pario.see.tables import read
from pario.see.tables.model import LAYERS, Job
from tests.diagnosis import corpus
from tests.diagnosis.corpus import Tracing
from tests.support.commands import run_command

pytestmark = pytest.mark.mpi

needs_mpi4py = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="no mpi4py (pip install mpi4py)"
)
SMALL = 0.02
CHOSEN = ["missing_collectives", "hole_rmw", "healthy_collective", "one_rank", "healthy_files"]


def mpiexec() -> tuple[str, ...]:
    found = corpus.mpiexec()
    if not found:
        pytest.skip("no mpiexec beside this Python (pip install mpich)")
    return (str(found),)


@pytest.fixture(scope="module")
def programs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mpiexec()
    directory = tmp_path_factory.mktemp("counted")
    corpus.build(directory, *CHOSEN)
    return directory


Record = Callable[[str], Job]


@pytest.fixture(scope="module")
def record(programs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Runs a counted program once per module, and reads its log: ``record("one_rank")``."""
    library = corpus.library()
    if library is None:
        pytest.skip("pario's native parts are not built")

    @cache
    def run(name: str) -> Path:
        (program,) = corpus.select([name])
        place = tmp_path_factory.mktemp(name)
        work, log = place / "work", place / "log"
        work.mkdir()
        log.mkdir()
        corpus.prepare(program, programs_folder, work, SMALL)
        corpus.run(program, programs_folder, work, scale=SMALL, tracing=Tracing(library, log))
        return log

    return lambda name: read([run(name)])


def play_job(job: Job, place: Path) -> tuple[Script, Job, bool]:
    script = script_of(job)
    performance = perform(script, place, Manner(mpiexec=mpiexec()))
    return script, performance.job, fidelity(job, script, performance).exact


@pytest.mark.system
@needs_mpi4py
@pytest.mark.parametrize("name", CHOSEN)
def test_calls_and_bytes_are_the_same(name: str, record: Record, tmp_path: Path) -> None:
    job = record(name)
    script, _, exact = play_job(job, tmp_path)
    assert exact
    assert script.mpiio == (
        "as MPI-IO calls" if (job.records["layer"] == LAYERS.index("mpiio")).any() else ""
    )


@pytest.mark.system
@needs_mpi4py
def test_a_rank_pauses_for_its_computation_before_a_barrier(record: Record) -> None:
    """Without it ranks would leave the barrier at different times."""
    for seat in script_of(record("missing_collectives")).seats:
        barriers = np.flatnonzero(seat["verb"] == BARRIER)
        after_another = barriers[1:][np.diff(barriers) == 1]
        assert len(after_another) and (seat["pause"][after_another] > 0).all()


@needs_mpi4py
def test_blocking_transfers_are_played_natively() -> None:
    """Runs in a separate process, because it starts MPI."""
    words = """if True:
        import numpy as np
        from pario.prove.replay.ranks import Ranks
        from pario.prove.replay.script import MPI, OPERATION
        from pario.prove.replay.verbs import numbers
        names = ["Open", "Write_at_all", "Read", "Iwrite_at"]
        calls = Ranks().prepare({"groups": [], "paths": [], "names": names, "views": []})
        operations = np.zeros(5, OPERATION)
        operations["verb"], operations["other"] = MPI, (0, 1, 2, 3, 1)
        operations["length"] = 0, 8, 8, 8, 1 << 31
        verbs = numbers()
        expected = [MPI, verbs["mpi_transfer_at"], verbs["mpi_transfer"], MPI, MPI]
        print(*calls.native(operations)["verb"] - expected)
    """

    library = corpus.library()
    if library is None:
        pytest.skip("pario's native parts are not built")
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = run_command([sys.executable, "-c", words], env=environment)
    assert done.stdout == "0 0 0 0 0\n", done.stderr


@pytest.mark.system
@needs_mpi4py
def test_a_log_without_all_calls_is_replayed_without_mpi_io(record: Record) -> None:
    """With it ranks would wait for missing calls."""
    job = record("healthy_collective")
    job.processes["lost"][0] = 1
    script = script_of(job, partial=True)
    assert script.mpiio == "as POSIX calls: the log lacks some calls"
    assert not script.names


@pytest.mark.system
@needs_mpi4py
def test_the_holes_of_a_view_are_left_in_a_replay_too(record: Record, tmp_path: Path) -> None:
    job = record("hole_rmw")
    _, replay, _ = play_job(job, tmp_path)

    def beneath(of: Job) -> set[tuple[int, int]]:
        rows = [
            row
            for row in of.records
            if of.path(row["file"]).endswith("/hole_rmw.dat")
            and row["layer"] == LAYERS.index("posix")
        ]
        return {(int(row["nested_writes"]), int(row["bytes_written"])) for row in rows}

    assert beneath(job) == beneath(replay) != set()


HANDED_ON = """\
import os, time
from mpi4py import MPI
world = MPI.COMM_WORLD
if world.Get_rank() == 0:
    time.sleep(0.5)
    out = os.open("handed", os.O_CREAT | os.O_WRONLY)
    os.write(out, b"x" * 100)
    os.close(out)
    world.send(1, 1)
else:
    world.recv()
    os.stat("handed")
    os.close(os.open("handed", os.O_RDONLY))
"""


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a file that rank 0 made for rank 1, and the log."""
    place = tmp_path_factory.mktemp("run")
    program = [*mpiexec(), "-n", "2", sys.executable, "-c", HANDED_ON]
    words = [sys.executable, "-m", "pario", "run", "--no-report", "-o", "log", "--", *program]
    run_command(words, cwd=place, status=0)
    return place


@pytest.mark.system
@needs_mpi4py
def test_a_rank_waits_for_a_file_that_another_rank_creates(run_directory: Path) -> None:
    script = script_of(read([run_directory / "log"]))
    handed = script.paths.index(str(run_directory / "handed"))
    assert handed not in {made.path for made in script.files}
    perform(script, run_directory, Manner(pauses=True, mpiexec=mpiexec()))


@pytest.mark.system
@needs_mpi4py
def test_uncounted_calls_of_the_launcher_do_not_matter(run_directory: Path) -> None:
    """A signal interrupts the tracer of mpiexec now and then; its calls are not played."""
    job = read([run_directory / "log"])
    launcher = Times(job).lanes.of_process < 0
    assert launcher.any()
    job.processes["lost"][launcher] = 1
    assert script_of(job).seats


@pytest.mark.system
@pytest.mark.parametrize("name", ["missing_collectives", "hole_rmw"])
def test_without_mpi4py_the_posix_calls_beneath_would_be_played(
    name: str, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = record(name)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    script = script_of(job)
    assert script.mpiio == "as POSIX calls: mpi4py is not installed"
    assert script.names == []


#: Size, lower bound and extent of the datatype of each layout.
LAYOUTS = {
    "8": "8 0 8",
    "4x8/16": "32 0 56",
    "3x(2x8/16)/100": "48 0 224",
    "[0:8 24:4x8/16]": "40 0 80",
    "8@-8+32": "8 -8 32",
    "2x[0:4 12:4]/32": "16 0 48",
    "4x8/24@0+96": "32 0 96",
}


@pytest.mark.system
@needs_mpi4py
def test_layouts_are_datatypes() -> None:
    words = f"""if True:
        from pario.prove.replay.layouts import datatype
        for text in {list(LAYOUTS)}:
            kind = datatype(text)
            print(text, "=", kind.Get_size(), *kind.Get_extent())
    """
    done = run_command([sys.executable, "-c", words])
    expected = [f"{text} = {numbers}" for text, numbers in LAYOUTS.items()]
    assert done.stdout.splitlines() == expected, done.stderr


@pytest.mark.parametrize(
    ("function", "method"),
    [
        ("MPI_File_write_at_all", "Write_at_all"),
        ("MPI_File_iread_c", "Iread"),
        ("MPI_File_write_all_begin", "Write_all"),
        ("MPI_File_write_all_end", ""),
        ("MPI_File_set_info", ""),
        ("write", ""),
    ],
)
def test_a_function_has_its_method_of_mpi4py(function: str, method: str) -> None:
    assert method_of(function) == method
