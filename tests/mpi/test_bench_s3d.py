"""``pario bench s3d``: the calls of the published table, counted from pario's log."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from pario.cli import main
from pario.prove.bench.s3d_table import PUBLISHED, rows_of

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(
        importlib.util.find_spec("mpi4py") is None, reason="no mpi4py (pip install mpi4py)"
    ),
]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.exhaustive
def test_four_ranks_write_what_their_rows_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "--ranks",
        "4",
        "--grid",
        "8x6x4",
        "--repeat",
        "1",
        "--json",
        str(tmp_path / "kept.json"),
    ]
    assert main(["bench", "s3d", str(tmp_path), *words]) == 0
    assert "independent" in capsys.readouterr().out
    rows = {row.way: row for row in rows_of(json.loads((tmp_path / "kept.json").read_text()))}
    size = 8 * 16 * 8 * 6 * 4 + 512
    assert rows["independent"].writes == 16 * 6 * 4 * 2 + 1  # two ranks along x, two along y
    assert (
        rows["independent"].written
        == rows["collective"].written
        == rows["independent"].bytes
        == size
    )
    assert rows["collective"].writes == 4 + 1
    assert rows["sieved"].written > size and rows["sieved"].read > 0


@pytest.mark.exhaustive
def test_the_published_counts_are_reproduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["bench", "s3d", str(tmp_path), "--repeat", "1", "--json", str(tmp_path / "kept.json")]
        )
        == 0
    )
    assert "published for this case" in capsys.readouterr().out
    rows = {row.way: row for row in rows_of(json.loads((tmp_path / "kept.json").read_text()))}
    for way, (writes, _, mib, unaligned, _) in PUBLISHED.items():
        row = rows[way]
        assert (row.writes, f"{row.written / 2**20:.2f}", row.unaligned) == (
            writes,
            f"{mib:.2f}",
            unaligned,
        )
    assert rows["independent"].reads == rows["collective"].reads == 0 and rows["sieved"].reads >= 80


@pytest.mark.system
def test_a_grid_that_the_ranks_cannot_share_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["bench", "s3d", str(tmp_path), "--ranks", "4", "--grid", "7x5x3", "--repeat", "1"])
        == 2
    )
    assert "cannot be divided evenly among" in capfd.readouterr().err
