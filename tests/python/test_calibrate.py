"""``pario bench --calibrate`` states how it measured each rate and does not wait for a failed
process; predictions and references use the kept rates of their file system."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
from itertools import islice
from pathlib import Path

import pytest

from pario import state
from pario.cli import main
from pario.prove.bench import calibrate
from pario.prove.calibration import keep, machine_of_run
from pario.prove.model.machine import Machine, text_of
from pario.see.analyze.facts import Facts
from pario.see.analyze.split import Times
from tests.python.jobs import add_filesystem, add_record, make_job
from tests.support.commands import run_command

MIB = 1 << 20


@pytest.mark.parametrize(("left", "said"), [(0.5, True), (0.0, False)])
def test_a_rate_measured_in_memory_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: float, said: bool
) -> None:
    monkeypatch.setattr(calibrate, "resident", lambda _: left)
    found = dict(
        islice(calibrate.measure(tmp_path, 1, lambda path, _: path.touch(), 4 << 20, 0.001), 2)
    )
    assert ("stayed in the page cache" in found["read_rate"].how) == said
    assert "stayed in the page cache" not in found["write_rate"].how


@pytest.mark.parametrize(("first", "second"), [("no/a", "b"), ("a", "no/b")])
def test_a_failing_process_of_two_that_write_in_turn_ends_both(
    tmp_path: Path, first: str, second: str
) -> None:
    with pytest.raises(OSError, match="no/"):
        calibrate._time_alternating(tmp_path / first, tmp_path / second)


def test_an_answering_process_ends_quietly_when_its_peer_has_ended(tmp_path: Path) -> None:
    here, there = multiprocessing.Pipe()
    others = here.__class__(os.dup(here.fileno()))
    here.send(0)
    here.close()
    calibrate._answer(others, there, tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_size > 0


def test_a_result_that_cannot_be_written_is_kept_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    words = [
        "bench",
        "api",
        str(tmp_path),
        "--size",
        "256K",
        "--pieces",
        "4K",
        "--repeat",
        "1",
        "--seconds",
        "0.001",
    ]
    too_long = tmp_path / ("x" * 300)
    assert main([*words, "--json", str(too_long)]) == 2
    assert f"cannot write {too_long}: File name too long" in capsys.readouterr().err
    assert len(list((tmp_path / "state").rglob("api-*.json"))) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_comparison_ended_by_a_signal_leaves_no_files(
    tmp_path: Path, number: signal.Signals
) -> None:
    program = """\
import os, signal, sys
from pathlib import Path
from pario.cli.bench_common import place_below
signal.signal(int(sys.argv[2]), signal.SIG_DFL)
with place_below(Path(sys.argv[1])) as place:
    (place / "large").touch()
    os.kill(os.getpid(), int(sys.argv[2]))
"""
    done = run_command([sys.executable, "-c", program, str(tmp_path), str(int(number))])
    assert done.returncode == 128 + number, done.stderr
    assert not list(tmp_path.iterdir())


def machine_at(mount: tuple[str, str]) -> Machine:
    values = {"targets": 8.0, "write_rate": 1e6, "read_rate": 2e6, "round_trip": 0.25}
    return Machine(
        "this", "m", "lustre", MIB, 4, values, dict.fromkeys(values, "m"), (), mount=mount
    )


def keep_machine(mount: tuple[str, str]) -> None:
    path = state.folder(state.MACHINES) / f"{mount[1].strip('/')}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(machine_at(mount)))


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.usefixtures("own_state")
@pytest.mark.parametrize(
    ("network", "host", "holds"),
    [(True, "elsewhere", True), (False, "elsewhere", False), (False, platform.node(), True)],
)
def test_kept_rates_replace_the_defaults_of_their_file_system(
    network: bool, host: str, holds: bool
) -> None:
    job = make_job(ranks=1)
    job.hosts = [host]
    for mount in ("/scratch", "/home"):
        add_filesystem(job, mount, "lustre", network=network)
        add_record(job, 0, f"{mount}/out", writes=10, bytes_written=MIB, write_time=1.0)
    usual = Facts(Times(job)).reference.default
    keep_machine(("lustre", "/scratch"))
    (state.folder(state.MACHINES) / "damaged.toml").write_text("mount = 1\n[")
    found = Facts(Times(job)).reference.default
    scratch = [2e6, 1e6, 0.25 if network else usual[0][2]] if holds else usual[0]
    assert found.tolist() == [list(scratch), list(usual[1])]
    assert (machine_of_run(job) is not None) is holds


@pytest.mark.usefixtures("own_state")
def test_whatif_predicts_for_the_measured_file_system_of_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(ranks=4)
    add_filesystem(job, "/scratch", "lustre", network=True)
    add_record(job, range(4), "/scratch/out", writes=1, bytes_written=2 * MIB, write_time=1.0)
    monkeypatch.setattr("pario.see.tables.read", lambda _: job)
    keep_machine(("lustre", "/home"))
    assert main(["whatif", "x", "--stripes", "1,8"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3  # nothing but the recorded times
    keep_machine(("lustre", "/scratch"))
    keep_machine(("nfs", "/scratch2"))  # the newest one
    for words in ([], ["--machine", "this"]):
        assert main(["whatif", "x", "--stripes", "1,8", *words]) == 0
        rows = capsys.readouterr().out.splitlines()[2:]
        assert [row.split()[0] for row in rows] == ["as", "1", "1", "8", "8"]
        assert " 8.39 s " in rows[1]  # 8 MiB on a target of 1 MB/s


@pytest.mark.usefixtures("own_state")
def test_stripe_advice_predicts_seconds_on_a_measured_file_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["stripe", "advise", "--size", "64M", "--ranks", "8", "--targets", "8"]
    assert main([*words, str(tmp_path / "new")]) == 0
    assert "predicted" not in capsys.readouterr().out
    keep(machine_at(("lustre", "/scratch")), tmp_path)
    assert main([*words, str(tmp_path / "new")]) == 0
    said = capsys.readouterr().out
    assert (
        "  predicted, with the measured rates of the file system: written in 8.89 s, 67.1 s with"
        " one stripe\n" in said
    )
