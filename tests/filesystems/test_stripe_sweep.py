"""``pario stripe sweep`` on a lab."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pario import state
from pario.cli import main
from pario.fix.stripe.filesystem import mount_of
from pario.fix.stripe.layout import stripes_of
from pario.prove import calibration
from pario.prove import sweep as module
from pario.prove.model.machine import load
from pario.prove.replay.script import Script
from pario.see.analyze.sweeps import Point, Sweep, keep
from tests.filesystems.conftest import Labs
from tests.python.test_replay import record_run
from tests.support.commands import run_command

MIB = 1 << 20


@pytest.fixture(autouse=True)
def use_known_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab's machine is known, so that it is not measured."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(calibration, "measure_machine", lambda _: load("lab"))


@pytest.mark.system
def test_each_stripe_count_is_measured_and_the_best_becomes_the_advice(
    labs: Labs, capsys: pytest.CaptureFixture[str]
) -> None:
    point = labs(targets=4)
    words = ["--size", "2M", "--ranks", "2", "--units", "64K,1M", "--repeat", "1"]
    assert main(["stripe", "sweep", str(point), *words]) == 0
    table, *_ = capsys.readouterr().out.split("Best:")
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [(int(row[0]), row[1]) for row in rows] == [
        (1, "64"),
        (2, "64"),
        (2, "1"),
        (4, "64"),
    ]
    assert list(point.iterdir()) == []
    (path,) = state.folder("stripes").iterdir()
    kept = json.loads(path.read_text())
    assert (kept["writers"], kept["size"], kept["targets"]) == (2, 2 * MIB, 4)
    best = next(row for row in rows if row[-1] == "best")
    assert main(["stripe", "advise", "--size", "2M", "--ranks", "2", "--json", str(point)]) == 0
    choice = json.loads(capsys.readouterr().out)["choice"]
    assert (choice["rule"], choice["count"]) == ("sweep", int(best[0]))


@pytest.mark.system
def test_a_log_is_replayed_in_files_of_these_stripes(
    labs: Labs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = 'with open("found.dat", "rb") as a, open("made.dat", "wb") as b: b.write(a.read())'
    (tmp_path / "found.dat").write_bytes(bytes(3 * MIB))
    log = record_run(tmp_path, program)
    point, seen = labs(targets=4), []

    def play(script: Script, root: Path, manner: Any) -> SimpleNamespace:
        stripes = [stripes_of(path).parts[0] for path in root.rglob("*.dat")]
        seen.append([(part.count, part.unit) for part in stripes])
        return SimpleNamespace(longest=1.0 / stripes[0].count)

    monkeypatch.setattr(module, "play", play)
    picture = tmp_path / "sweep.svg"
    words = ["--counts", "1,3", "--units", "1M", "--repeat", "2", "--plot", str(picture)]
    assert main(["stripe", "sweep", str(point), str(log), *words]) == 0
    assert seen == [[(1, MIB)], [(3, MIB)]] * 2  # found.dat, which existed before the run
    told = capsys.readouterr().out
    assert "Best: 3 stripes of 1 MiB, 0.33 s; 1 stripe of 1 MiB" in told
    assert "Seconds to replay" in picture.read_text()


@pytest.mark.system
def test_a_file_of_expected_size_gets_the_stripes_of_the_kept_sweep(
    labs: Labs, tmp_path: Path
) -> None:
    point = labs(targets=8)
    settings = tmp_path / "pario.toml"
    settings.write_text(
        '[[file]]\nmatch = "*/new.*"\n'
        'striping = { pario_expected_size = "16M", pario_expected_writers = 8 }\n'
    )

    def stripes_of_new_file(name: str) -> tuple[int, int]:
        program = f"open({str(point / name)!r}, 'wb').close()"
        words = ["run", "--no-report", "-o", tmp_path / f"{name}.log", "--with", settings, "--"]
        run_command(
            [sys.executable, "-m", "pario", *words, sys.executable, "-c", program], status=0
        )
        (part,) = stripes_of(point / name).parts
        return part.count, part.unit

    assert stripes_of_new_file("new.1") == (1, MIB)  # by the table
    mount = mount_of(point)
    points = (Point(4, 2 * MIB, {"write": (1.0,)}, {}),)
    keep(Sweep(mount.type, mount.point, "lustre", 8, 8, 16 * MIB, "", 0.0, points), "lab")
    assert stripes_of_new_file("new.2") == (4, 2 * MIB)
