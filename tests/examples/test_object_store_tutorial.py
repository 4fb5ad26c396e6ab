"""The tutorial on training from an object store runs, with the output that the page shows."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.python.support.stores import run_s3_server
from tests.support.commands import run_command
from tests.support.pages import read_code

PAGE = "tutorials/object-store.md"
CODE = read_code(PAGE)


def test_all_code_of_the_page_is_run() -> None:
    assert {heading: len(blocks) for heading, blocks in CODE.items()} == {
        "Pack the images": 1,
        "The program": 1,
        "Stop and continue on two ranks": 2,
        "Waiting and caching": 1,  # the name of a directory
    }


@pytest.mark.system
def test_the_commands_print_the_lines_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("torch", "PIL", "obstore", "moto"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    from PIL import Image

    chance = np.random.default_rng(1)
    for number in range(200):
        path = tmp_path / "images" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (8, 8, 3), "u1")).save(path)
    (tmp_path / "train.py").write_text(CODE["The program"][0])
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    commands, expected = CODE["Stop and continue on two ranks"]
    with run_s3_server(latency=0):
        printed = ""
        for line in [*CODE["Pack the images"], *commands.splitlines()]:
            printed += run_command(shlex.split(line), cwd=tmp_path, status=0).stdout
    assert re.findall(r"^\d ranks: .*$", printed, re.M) == expected.splitlines()
