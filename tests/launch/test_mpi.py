"""``pario run`` before and after the MPI launcher: output and exit status are those of the job, and
the logs of all ranks lie in one directory."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pario.see.tables import read
from pario.see.tables.model import Job
from tests.launch.conftest import PARIO, wait_for_end_of_processes
from tests.mpi.conftest import MPIS, Mpi
from tests.support.commands import run_command, start_command

RANKS = 4
Build = Callable[[Mpi], str]

pytestmark = pytest.mark.mpi
each_mpi = pytest.mark.parametrize(
    "mpi",
    [pytest.param(mpi, id=mpi.name) for mpi in MPIS.values() if "abi" not in mpi.name],
)
each_form = pytest.mark.parametrize("form", ["around the launcher", "under the launcher"])


def command(mpi: Mpi, form: str, *program: str, options: tuple[str, ...] = ()) -> list[str]:
    run = [*PARIO, "run", *options, "--"]
    if form == "around the launcher":
        return [*run, *mpi.start(*program, ranks=RANKS)]
    return mpi.start(*run, *program, ranks=RANKS)


def start(words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    return run_command(words, cwd=place)


def ranks_of(job: Job) -> list[int]:
    return sorted(job.processes["rank"][job.processes["rank"] >= 0].tolist())


@pytest.mark.system
@each_mpi
@each_form
def test_job_reports_once_and_keeps_its_output(
    mpi: Mpi, form: str, ranks_program: Build, tmp_path: Path
) -> None:
    done = start(command(mpi, form, ranks_program(mpi), options=("-o", "logs/here")), tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{RANKS} ranks wrote\n"), done.stderr
    assert done.stderr.count("HTML report:") == 1
    assert f"{RANKS} ranks" in done.stderr
    job = read([tmp_path / "logs" / "here"])
    assert ranks_of(job) == list(range(RANKS))
    assert job.exit_status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "logs",
        *(f"out.{rank}" for rank in range(RANKS)),
    ]
    wait_for_end_of_processes(tmp_path / "logs" / "here")


@pytest.mark.system
@each_mpi
@each_form
@pytest.mark.parametrize("fate", ["fail", "kill"])
def test_job_that_loses_a_rank_ends_as_without_pario(
    mpi: Mpi, form: str, fate: str, ranks_program: Build, tmp_path: Path
) -> None:
    """A launcher may kill ``pario run`` below it, so a report is not guaranteed; the logs are."""
    plain = start(mpi.start(ranks_program(mpi), fate, ranks=RANKS), tmp_path)
    done = start(command(mpi, form, ranks_program(mpi), fate), tmp_path)
    assert done.returncode == plain.returncode != 0
    wait_for_end_of_processes(tmp_path / "run.pario")
    job = read([tmp_path / "run.pario"])
    assert ranks_of(job) == list(range(RANKS))
    if form == "around the launcher":
        assert job.exit_status == plain.returncode
        assert done.stderr.count("HTML report:") == 1
    lost = job.processes[job.processes["rank"] == 1][0]
    assert np.isnan(lost["end"]) == (fate == "kill")
    assert all(count == 1000 for count in _values_written(job))


@pytest.mark.system
@each_mpi
@each_form
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_job_and_leaves_readable_logs(
    mpi: Mpi, form: str, number: signal.Signals, ranks_program: Build, tmp_path: Path
) -> None:
    """SIGTERM reaches only the outer command, as from a batch system; SIGINT reaches the whole
    process group, as from a terminal. After SIGINT, the mpiexec of MPICH returns 0 in one of a
    hundred runs, also without pario."""
    words = command(mpi, form, ranks_program(mpi), "wait")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_command(words, cwd=tmp_path, **pipes, process_group=0) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == f"{RANKS} ranks wrote\n"
        if number == signal.SIGTERM:
            job.send_signal(number)
        else:
            os.killpg(job.pid, number)
        status = job.finish().returncode
        assert status or number == signal.SIGINT
        wait_for_end_of_processes(tmp_path / "run.pario")
    assert ranks_of(read([tmp_path / "run.pario"])) == list(range(RANKS))


def _values_written(job: Job) -> list[int]:
    """Counts the fprintf calls to the files of the ranks."""
    rows = job.records[job.records["layer"] == 1]
    return [
        int(row["writes"]) for row in rows if Path(job.path(row["file"])).name.startswith("out.")
    ]
