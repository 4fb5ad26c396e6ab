"""The tutorial on serving a sharded model runs, with the output that the page shows."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.pages import read_code
from tests.support.waiting import PATIENCE

CODE = read_code("tutorials/serve.md")
RESUME, INSPECT = "Stop, and continue on three processes", "Open the weights by safetensors"
SERVE, SHARDS = "Serve it", "Shards with an index"


def test_all_code_of_the_page_is_run() -> None:
    assert {heading: len(blocks) for heading, blocks in CODE.items()} == {
        "The program": 1,
        RESUME: 2,
        INSPECT: 3,
        SERVE: 3,
        SHARDS: 1,
    }


@pytest.mark.exhaustive
def test_the_commands_print_the_lines_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "safetensors", "transformers"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    def run(commands: str) -> str:
        return "".join(
            run_command(shlex.split(line), cwd=tmp_path, status=0, limit=5 * PATIENCE).stdout
            for line in commands.splitlines()
        )

    (tmp_path / "train.py").write_text(CODE["The program"][0])
    commands, expected = CODE[RESUME]
    printed = run(commands)
    assert printed.startswith(expected) and "step-00000080.h5" in printed

    program, commands, expected = CODE[INSPECT]
    (tmp_path / "show.py").write_text(program)
    assert run(commands).strip() == expected

    program, commands, expected = CODE[SERVE]
    (tmp_path / "serve.py").write_text(program)
    assert run(commands).strip() == expected
    assert run(CODE[SHARDS][0]).strip().endswith(expected)
    index = json.loads((tmp_path / "shards" / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
