"""Commands for one process under launchers: a single process works, several are refused with one
line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pario.cli import build_parser, main

BATCH = {
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_TASKS_PER_NODE": "8",
}
STEP = {
    **BATCH,
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "8",
}
TORCHRUN = {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}
#: Environments of a single process.
ALONE: dict[str, dict[str, str]] = {
    "no launcher": {},
    "mpiexec -n 1": {"PMI_RANK": "0", "PMI_SIZE": "1"},
    "batch script": BATCH,
    "batch script with a number of its step": {**BATCH, "SLURM_STEP_ID": str(0xFFFFFFFB)},
    "interactive step": {**BATCH, "SLURM_STEP_ID": str(0xFFFFFFFA), "SLURM_STEP_NUM_TASKS": "1"},
    "srun --pty": {**STEP, "PMI_RANK": "0", "PMI_SIZE": "8", "SLURM_PTY_PORT": "40000"},
    "srun -n 1 in a job of 8": {**STEP, "SLURM_STEP_NUM_TASKS": "1"},
    "a single process of a program": {"PMI_RANK": "3", "PMI_SIZE": "8", "PARIO_ONE_PROCESS": "1"},
}
#: Environments of one of eight processes: the variables of a rank.
SEVERAL: dict[str, Callable[[str], dict[str, str]]] = {
    "mpiexec of MPICH": lambda rank: {
        "PMI_RANK": rank,
        "PMI_SIZE": "8",
        "MPI_LOCALRANKID": rank,
        "MPI_LOCALNRANKS": "8",
    },
    "mpiexec of Open MPI": lambda rank: {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": "8",
        "OMPI_COMM_WORLD_LOCAL_RANK": rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": "8",
    },
    "mpiexec in a batch script": lambda rank: {
        **BATCH,
        "PMI_RANK": rank,
        "PMI_SIZE": "8",
        "MPI_LOCALRANKID": rank,
        "MPI_LOCALNRANKS": "8",
    },
    "srun": lambda rank: {**STEP, "SLURM_PROCID": rank, "SLURM_LOCALID": rank},
    "srun with PMI": lambda rank: {
        **STEP,
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": rank,
        "PMI_RANK": rank,
        "PMI_SIZE": "8",
    },
    "torchrun": lambda rank: {**TORCHRUN, "RANK": rank, "LOCAL_RANK": rank},
    "torchrun in a batch script": lambda rank: {
        **BATCH,
        **TORCHRUN,
        "RANK": rank,
        "LOCAL_RANK": rank,
    },
    "torchrun in a step": lambda rank: {
        **STEP,
        **TORCHRUN,
        "SLURM_STEP_NUM_TASKS": "1",
        "RANK": rank,
        "LOCAL_RANK": rank,
        "TORCHELASTIC_RUN_ID": "none",
    },
}
#: Commands that write one output, "out" in the directory of the data.
WRITERS = {
    "records index": "records index lines.txt",
    "records pack": "records pack tree -o out",
    "records convert": "records convert lines.txt --to raw -o out",
    "records split": "records split lines.txt --shards 2 -o out",
    "records merge": "records merge lines.txt lines.txt -o out",
    "records shuffle": "records shuffle lines.txt -o out",
    "pack": "pack tree -o out",
    "merge": "merge lines.txt lines.txt -o out",
    "stage in": "stage in tree --to out",
    "checkpoint prune": "checkpoint prune tree --keep 1",
}
#: Commands whose processes do separate jobs, or that look at the ranks themselves.
SHARED = {
    "run",
    "checkpoint merge",
    "records index",
    "records pack",
    "records convert",
    "records split",
    "records merge",
    "records shuffle",
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_bytes(b"content")
    (tmp_path / "lines.txt").write_bytes(b"one\ntwo\nthree\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    names = (
        "SLURM",
        "PMI",
        "OMPI",
        "MPI_LOCAL",
        "PALS",
        "FLUX",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_",
        "PARIO_ONE",
    )
    for name in [name for name in os.environ if name.startswith(names)]:
        monkeypatch.delenv(name)
    return tmp_path


def run(words: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> int:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    try:
        return main(words.split())
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


@pytest.mark.parametrize(
    "command",
    [
        "records shuffle",
        "records index",
        *(
            pytest.param(name, marks=pytest.mark.system)
            for name in WRITERS
            if name not in ("records shuffle", "records index", "checkpoint prune")
        ),
    ],
)
def test_a_process_that_is_alone_works(
    command: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for environment in ALONE.values():
        with monkeypatch.context() as patch:
            assert run(WRITERS[command], environment, patch) == 0, capsys.readouterr().err
        assert list(directory.glob("out*")) or (directory / "lines.txt.pidx").exists()
        for path in (*directory.glob("out*"), *directory.glob("*.pidx")):
            os.system(f"rm -r {path}")


@pytest.mark.parametrize(
    "launcher",
    [
        "torchrun",
        pytest.param("srun", marks=pytest.mark.system),
        pytest.param("mpiexec of MPICH", marks=pytest.mark.system),
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in SEVERAL
            if name not in ("torchrun", "srun", "mpiexec of MPICH")
        ),
    ],
)
@pytest.mark.parametrize("command", WRITERS)
def test_several_processes_refuse_in_one_line(
    command: str,
    launcher: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(directory.rglob("*"))
    for rank in ("0", "3"):
        with monkeypatch.context() as patch:
            assert run(WRITERS[command], SEVERAL[launcher](rank), patch) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == (rank == "0"), said.err
        if rank == "0":
            assert "PARIO_ONE_PROCESS=1" in said.err and "1 of 8" not in said.err
            assert launcher.split()[0] in said.err
    assert sorted(directory.rglob("*")) == before


def commands_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yields all commands with their actions: "report", "records index" and so on."""
    for name, command in subparsers_of(parser).items():
        actions = subparsers_of(command)
        yield from (f"{name} {action}" for action in actions) if actions else (name,)


def subparsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def test_every_other_command_is_for_one_process(directory: Path) -> None:
    from pario.cli.one_process import PER_NODE, require_one_process
    from pario.errors import ParioError

    commands = set(commands_of(build_parser()))
    assert commands >= SHARED | PER_NODE | set(WRITERS)
    for command in commands:
        for environment in ALONE.values():
            require_one_process(command, environment)
        for variables in SEVERAL.values():
            if command in SHARED:
                require_one_process(command, variables("0"))
            else:
                with pytest.raises(ParioError, match="this is a job for one"):
                    require_one_process(command, variables("0"))


@pytest.mark.parametrize("rank", ["0", "3"])
def test_one_process_of_each_node_stages(
    rank: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = {"SLURM_PROCID": rank, "SLURM_NODEID": rank, "SLURM_STEP_TASKS_PER_NODE": "1(x8)"}
    assert run("stage in tree --to out", {**STEP, **node}, monkeypatch) == 0
    assert (directory / "out" / "tree" / "file").read_bytes() == b"content"
