"""``pario run --fix`` chooses read-ahead for libraries that map their files, and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pario.fix.stripe.layout import Part, Wanted, set_stripes
from pario.prove.lab.mount import reset, status
from pario.settings import load
from tests.filesystems.conftest import Labs
from tests.support.commands import run_command
from tests.support.tiers import select_for_ci
from tests.support.waiting import PATIENCE

MIB = 1 << 20
READER = Path(__file__).parents[2] / "bench" / "mapped_reader.py"

pytestmark = pytest.mark.system


def drop_pages(path: Path) -> None:
    """Drops a file from the kernel's cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.parametrize("library", select_for_ci(["numpy", "safetensors", "torch"], 1))
def test_mapped_files_are_read_ahead(library: str, labs: Labs, tmp_path: Path) -> None:
    for needed in ("safetensors", "torch"):
        pytest.importorskip(needed, reason="writes the files of all libraries")
    # So slow that the waits are longer than those for processors.
    point = labs(rate=8 * MIB, latency=500_000, cache=True)
    (point / "files").mkdir()
    set_stripes(point / "files", Wanted((Part(unit=MIB, count=8),)))
    reader = [sys.executable, str(READER)]
    run_command([*reader, "write", point / "files", "32"], status=0)
    for file in (point / "files").iterdir():
        drop_pages(file)
    reset(point)
    words = ["-m", "pario", "run", "--fix", "--measure", "0", "--repeat", "1", "-o", "loop", "--"]
    done = run_command(
        [sys.executable, *words, *reader, library, point / "files"],
        cwd=tmp_path,
        status=0,
        limit=4 * PATIENCE,
    )
    (section,) = load(tmp_path / "loop" / "pario.toml").sections
    keys = [(setting.key.table, setting.key.name) for setting in section.settings]
    assert keys == [("streams", "map_ahead")], done.stderr
    sent = sum(int(target["bytes_read"]) for target in status(point)["targets"])
    assert sent < 2 * 34 * MIB  # both runs read each byte once
