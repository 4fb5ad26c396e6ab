"""Commands that a launcher started as several processes: those for one process refuse in one line
before they have done anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from pario.errors import ParioError
from pario.launchers import ALONE, Launch, launch_of

#: Commands whose processes divide the work and write one result.
RECORDS = frozenset(
    f"records {action}" for action in ("index", "pack", "shuffle", "split", "merge", "convert")
)
#: Commands whose processes work together, or each on their own.
SHARED = RECORDS | {"run", "checkpoint merge"}
#: Commands that one process of each node runs.
PER_NODE = frozenset({"stage in", "stage out"})
_ONE = {"mpiexec": "mpiexec -n 1", "srun": "srun -n 1", "flux run": "flux run -n 1"}
_ONE_PER_NODE = {
    "mpiexec": "mpiexec -ppn 1",
    "srun": "srun --ntasks-per-node=1",
    "flux run": "flux run --tasks-per-node=1",
}


def require_one_process(command: str, environment: Mapping[str, str]) -> None:
    """Refuses as :func:`refuse` does if ``command`` ("records index") is started several times."""
    launch = launch_of(environment)
    if launch.seat.size == 1 or command in SHARED:
        return
    if command not in PER_NODE:
        refuse(
            launch,
            f"{launch.launcher} started {launch.seat.size} processes, this is a job for one:"
            f" {run_once(launch, command)}",
        )
    if launch.on_node and launch.on_node.size > 1:
        once = _ONE_PER_NODE.get(launch.launcher)
        how = f"{once} pario {command} ..." if once else f"run it before {launch.launcher}"
        refuse(
            launch,
            f"{launch.launcher} started {launch.on_node.size} processes on this node, this is a job"
            f" for one: {how}{_CALLED}",
        )


_CALLED = f" ({ALONE}=1 if a single process of a program calls it)"


def run_once(launch: Launch, command: str) -> str:
    """The way to run a command by one process."""
    once = _ONE.get(launch.launcher)
    return (
        f"{once} pario {command} ..." if once else f"run it once, before {launch.launcher}"
    ) + _CALLED


def refuse(launch: Launch, text: str) -> NoReturn:
    """Raises ParioError on the first process, which prints it, and SystemExit on the others."""
    if launch.seat.is_first:
        raise ParioError(text)
    raise SystemExit(2)
