"""Two hosts that write one file of a lab collectively, with ROMIO and with pario: the locks that
stripes change hands for, the requests, and the bytes and messages on the link between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pario.fix.stripe.layout import Part, Wanted, set_stripes
from pario.prove.lab.mount import reset, status
from tests.filesystems.conftest import WRITE, Labs
from tests.hosts.conftest import launcher, make_hosts
from tests.library import need_library
from tests.mpi.conftest import MPIS, need
from tests.suites.runs import under_pario
from tests.support.commands import run_job

pytestmark = [pytest.mark.system, pytest.mark.mpi]

MPI = MPIS["mpich-5"]
EACH, TARGETS, UNIT = 2, 4, 64 << 10
RANKS = 2 * EACH
#: Bytes of a rank, in pieces that no stripe is a multiple of; and the bytes of the file.
PIECE, BYTES = 5120, 192 * 5120
WHOLE = RANKS * BYTES
STRIPES = WHOLE // UNIT
#: Several rounds of exchange, as in a large file.
BUFFER = f"cb_buffer_size={4 * UNIT}"


@dataclass(frozen=True)
class Counts:
    """One collective write: at the targets of the lab, and on the link of the hosts."""

    hand_overs: int
    bytes_written: int
    writes: int
    sent: int
    messages: int


@pytest.fixture
def lab_of_hosts(labs: Labs) -> Iterator[tuple[Path, list[str]]]:
    """A lab, and two hosts that see it: they are made after it."""
    point = labs(targets=TARGETS)
    for hosts in make_hosts("w", 2):
        yield point, hosts


def sent_bytes(hosts: list[str]) -> int:
    """Returns the bytes that have left the hosts."""
    counters = (Path(f"/sys/class/net/v{host}/statistics/rx_bytes") for host in hosts)
    return sum(int(counter.read_text()) for counter in counters)


def write_file(point: Path, hosts: list[str], *hints: str, pario: bool) -> Counts:
    """Writes a new file of all targets, and checks its bytes."""
    need(MPI, MPI.python)
    path = point / "data"
    path.unlink(missing_ok=True)
    set_stripes(path, Wanted((Part(unit=UNIT, count=TARGETS),)))
    reset(point)
    before = sent_bytes(hosts)
    command = [str(MPI.python), WRITE, str(path), str(BYTES), str(PIECE)]
    environment = under_pario(need_library() if pario else None)
    start = launcher(MPI, hosts, EACH)
    done = run_job([*start, *command, "write", BUFFER, *hints], point.parent, environment)
    assert done.returncode == 0, done.stdout
    sent = sent_bytes(hosts) - before
    targets = status(point)["targets"]
    message = re.search(r"^\s+messages\s+(\d+)$", done.stdout, re.MULTILINE)
    checked = run_job([*start, *command, "read"], point.parent, under_pario(None))
    assert f"{RANKS} ranks, 0 wrong" in checked.stdout
    return Counts(
        *(
            sum(int(target[name]) for target in targets)
            for name in list(Counts.__annotations__)[:3]
        ),
        sent=sent,
        messages=int(message[1]) if message else 0,
    )


def test_stripes_stay_with_a_host_and_bytes_cross_once(
    lab_of_hosts: tuple[Path, list[str]],
) -> None:
    romio = write_file(*lab_of_hosts, pario=False)
    aligned = write_file(*lab_of_hosts, f"striping_unit={UNIT}", pario=False)
    pario = write_file(*lab_of_hosts, "pario_report=statistics", pario=True)
    print(f"ROMIO {romio}\nROMIO, aligned {aligned}\npario {pario}")
    for counts in (romio, aligned, pario):
        assert counts.bytes_written == WHOLE
        assert counts.sent < 1.15 * WHOLE / 2, "half of each window comes from the other host"
    assert pario.hand_overs == 0 < min(romio.hand_overs, aligned.hand_overs)
    assert pario.writes == STRIPES
    assert 0 < pario.messages <= STRIPES, "one for a stripe with pieces of the other host"
