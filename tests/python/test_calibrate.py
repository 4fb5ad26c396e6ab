"""``pario bench --calibrate`` states how it measured each rate and does not wait for a failed
process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from itertools import islice
from pathlib import Path

import pytest

from pario.cli import main
from pario.prove.bench import calibrate
from tests.support.commands import run_command


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
