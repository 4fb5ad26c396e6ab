"""The processes that an MPI launcher, a scheduler or torchrun started together with this one, read
from the variables that they set.

A batch script is one process, also when its job has several tasks (``SLURM_NTASKS``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: This variable declares that a process which inherited the variables of a launcher is alone.
ALONE = "PARIO_ONE_PROCESS"
#: First number of Slurm's special steps: batch scripts, interactive shells and others.
_FIRST_SPECIAL_STEP = 0xFFFFFFF0


@dataclass(frozen=True)
class Seat:
    """This process among its siblings: ``Seat(0, 1)`` when it is alone."""

    rank: int
    size: int

    @property
    def is_first(self) -> bool:
        """True in the process that makes the directory and reports."""
        return self.rank == 0


@dataclass(frozen=True)
class Launch:
    """A launcher, and the seat of this process among all its processes and among those of its node
    (None: not known). ``mpi``: the processes are ranks of an MPI program."""

    launcher: str
    seat: Seat
    on_node: Seat | None = None
    mpi: bool = False


@dataclass(frozen=True)
class _Variables:
    """A launcher, its variables for rank and size, and those for rank and size on the node."""

    launcher: str
    rank: str
    size: str
    local_rank: str
    local_size: str


#: Launchers of MPI, most specific first.
_MPI = (
    _Variables(
        "mpiexec",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    _Variables(
        "mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"
    ),  # MPICH and its relatives, Slurm's PMI
    _Variables("mpiexec", "PMIX_RANK", "PMIX_SIZE", "", ""),
    _Variables("mpiexec", "PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"),
    _Variables("flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "", ""),
)
_ALONE = Launch("", Seat(0, 1))
#: The launcher of PyTorch.
TORCHRUN = "torchrun"
_TORCHRUN = _Variables(TORCHRUN, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def launch_of(environment: Mapping[str, str]) -> Launch:
    """The launch that the variables describe; the innermost one of several."""
    if environment.get(ALONE, "") not in ("", "0"):
        return _ALONE
    torchrun = (
        _launch_by(_TORCHRUN, environment) if environment.get("LOCAL_RANK", "").isdigit() else None
    )
    if torchrun and "TORCHELASTIC_RUN_ID" in environment:
        return torchrun
    step = _slurm_step(environment)
    mpi = next(filter(None, (_launch_by(row, environment, mpi=True) for row in _MPI)), None)
    if step and (mpi is None or mpi.seat == step.seat):
        return _ALONE if _has_terminal(step, environment) else step
    return mpi or torchrun or _ALONE


def find_mpiexec() -> str | None:
    """The path of the mpiexec beside this Python, else of that on the PATH."""
    import shutil  # several milliseconds, which pario run does not need

    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def seat_of(environment: Mapping[str, str]) -> Seat:
    """The seat among the processes of an MPI launcher or a Slurm step; alone under torchrun."""
    launch = launch_of(environment)
    return Seat(0, 1) if launch.launcher == TORCHRUN else launch.seat


def _seat(rank: str, size: str) -> Seat | None:
    return Seat(int(rank), int(size)) if rank.isdigit() and size.isdigit() else None


def _launch_by(
    row: _Variables, environment: Mapping[str, str], *, mpi: bool = False
) -> Launch | None:
    seat = _seat(environment.get(row.rank, ""), environment.get(row.size, ""))
    local = _seat(environment.get(row.local_rank, ""), environment.get(row.local_size, ""))
    return Launch(row.launcher, seat, local, mpi) if seat else None


def _slurm_step(environment: Mapping[str, str]) -> Launch | None:
    """Tasks that srun started; None in a batch script."""
    step = environment.get("SLURM_STEP_ID", "")
    if not step.isdigit() or int(step) >= _FIRST_SPECIAL_STEP:
        return None
    size = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS", "")
    seat = _seat(environment.get("SLURM_PROCID", ""), size)
    local = _seat(environment.get("SLURM_LOCALID", ""), _tasks_of_node(environment))
    mpi = any(name.startswith(("PMI_", "PMIX_")) for name in environment)
    return Launch("srun", seat, local, mpi) if seat else None


def _has_terminal(step: Launch, environment: Mapping[str, str]) -> bool:
    """True for the first task of ``srun --pty``, the only one that has the terminal and
    continues."""
    return step.seat.is_first and "SLURM_PTY_PORT" in environment


def _tasks_of_node(environment: Mapping[str, str]) -> str:
    """The number for this node in ``SLURM_STEP_TASKS_PER_NODE`` ("4(x2),2")."""
    counts: list[str] = []
    for count, times in re.findall(
        r"(\d+)(?:\(x(\d+)\))?", environment.get("SLURM_STEP_TASKS_PER_NODE", "")
    ):
        counts += [count] * min(int(times or 1), 1 << 20)
    node = environment.get("SLURM_NODEID", "")
    return counts[int(node)] if node.isdigit() and int(node) < len(counts) else ""
