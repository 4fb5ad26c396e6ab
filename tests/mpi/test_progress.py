"""pario's collective calls sleep; the program's own messages in flight must progress
nevertheless."""

from pathlib import Path

import pytest

from tests.mpi.conftest import PROGRAMS, Mpi, compile_program, environment, parameters
from tests.support.commands import run_command

RANKS = 4


@pytest.fixture(scope="module", params=parameters())
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Mpi, Path]:
    place = tmp_path_factory.mktemp("program")
    return request.param, compile_program(request.param, PROGRAMS / "under_way.c", place)


@pytest.mark.system
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("how", ["blocking", "split", "started", "open", "close", "sync"])
def test_a_large_message_arrives_while_its_sender_is_in_a_collective_call(
    program: tuple[Mpi, Path], how: str, nodes: int, tmp_path: Path
) -> None:
    mpi, executable = program
    variables = environment(tmp_path) | {"PARIO_MPIIO": "1", "PARIO_NODES": str(nodes)}
    command = mpi.start(str(executable), str(tmp_path), how, ranks=RANKS)
    done = run_command(command, env=variables)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    if how in ("blocking", "split", "started"):
        assert (tmp_path / "out").read_bytes() == b"".join(
            bytes([ord("a") + rank]) * 1000 for rank in range(RANKS)
        )
