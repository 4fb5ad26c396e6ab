"""Which of several launchers am I: read from the variables that MPI launchers and schedulers set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: (rank, size) variables, most specific first.
_VARIABLES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # MPICH and its relatives (Hydra), Slurm's PMI
    ("PMIX_RANK", "PMIX_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
)


@dataclass(frozen=True)
class Seat:
    """This launcher among its siblings: ``Seat(0, 1)`` when it is alone."""

    rank: int
    size: int

    @property
    def is_first(self) -> bool:
        """The one that makes the directory and reports."""
        return self.rank == 0


def seat_of(environment: Mapping[str, str]) -> Seat:
    """The seat that the environment tells of. A batch script (SLURM_PROCID without a step) is alone."""
    for rank, size in _VARIABLES:
        if rank == "SLURM_PROCID" and "SLURM_STEP_ID" not in environment:
            continue
        if environment.get(rank, "").isdigit() and environment.get(size, "").isdigit():
            return Seat(int(environment[rank]), int(environment[size]))
    return Seat(0, 1)
