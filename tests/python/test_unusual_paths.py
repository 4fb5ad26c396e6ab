"""Commands name unusual paths in their errors: status 2, or 1 of a check, and no traceback."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from pario.cli import main
from pario.paths import resolve

COMMANDS = [
    "report PATH",
    "survey PATH",
    "compare PATH PATH",
    "export PATH --json out.json",
    "advise PATH --measure 0",
    "stripe show PATH",
    "stripe advise PATH",
    "fs PATH",
    "replay PATH --on .",
    "whatif PATH --machine theta",
    "tune PATH --on .",
    "records index PATH",
    "records stat PATH",
    "records head PATH",
    "records get PATH 0",
    "records verify PATH",
    "records pack PATH -o out.prec",
    "records shuffle PATH -o out.txt",
    "records convert PATH -o out.prec",
    "checkpoint ls PATH",
    "checkpoint show PATH",
    "checkpoint verify PATH",
    "checkpoint compare PATH PATH",
    "checkpoint convert PATH -o out.safetensors",
    "merge PATH -o out",
    "join PATH",
    "pack PATH -o out.pack",
    "unpack PATH out.directory",
    "ls PATH",
    "settings explain PATH",
    "stage in PATH --to stage",
]


@pytest.fixture(scope="module")
def unusual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with files and links that no command can use."""
    place = tmp_path_factory.mktemp("unusual")
    (place / "empty").touch()
    (place / "bytes").write_bytes(random.Random(1).randbytes(5000))
    (place / os.fsdecode(b"not-utf-8-\xff")).write_text("a\n")
    (place / "loop").symlink_to("loop")
    (place / "dangling").symlink_to("missing")
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_no_path_leads_to_a_traceback(
    command: str,
    unusual: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for path in [*map(str, unusual.iterdir()), ""]:
        words = [path if word == "PATH" else word for word in command.split()]
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
        printed = capfd.readouterr()
        assert status in (0, 1, 2), words
        assert status == 0 or printed.err.strip() or printed.out.strip(), words


def test_a_loop_of_links_is_its_own_path(unusual: Path) -> None:
    assert resolve(unusual / "loop") == unusual / "loop"
    assert resolve(unusual / "dangling") == unusual / "missing"
    assert resolve("") == Path.cwd()
