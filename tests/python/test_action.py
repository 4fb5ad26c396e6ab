"""The steps of the GitHub action, as the shell scripts that they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.commands import run_command
from tests.support.tiers import select_for_ci

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ACTION = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text())
INSTALL, RUN, REPORT = (step["run"] for step in ACTION["runs"]["steps"])
BASH = ["bash", "-e", "-c"]
pytestmark = pytest.mark.system


def write_wheel(folder: Path) -> Path:
    """A wheel whose command pario prints a word."""
    wheel = folder / "pario-1.0-py3-none-any.whl"
    files = {
        "stand_in.py": "def main(): print('installed')\n",
        "pario-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: pario\nVersion: 1.0\n",
        "pario-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
        "pario-1.0.dist-info/entry_points.txt": "[console_scripts]\npario = stand_in:main\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, "pario-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in (files | {"pario-1.0.dist-info/RECORD": record}).items():
            archive.writestr(name, text)
    return wheel


@pytest.mark.parametrize("given", select_for_ci(["PACKAGE", "SOURCE"], 1))
def test_the_installation_puts_only_pario_on_the_path(given: str, tmp_path: Path) -> None:
    """From a wheel, or from the source if no wheel is given."""
    temporary, path = tmp_path / "temporary", tmp_path / "path"
    temporary.mkdir()
    variables = {"PACKAGE": "", "SOURCE": "", given: str(write_wheel(tmp_path))}
    variables |= {"PYTHON": sys.executable, "RUNNER_TEMP": str(temporary), "GITHUB_PATH": str(path)}
    run_command([*BASH, INSTALL], env=os.environ | variables, status=0)
    [folder] = path.read_text().splitlines()
    assert [entry.name for entry in Path(folder).iterdir()] == ["pario"]
    command = shutil.which("pario", path=folder)
    assert run_command([command], status=0).stdout == "installed\n"


def test_the_inputs_of_the_steps_are_those_of_the_action() -> None:
    used = re.findall(r"inputs\.([\w-]+)", yaml.safe_dump(ACTION["runs"]["steps"]))
    assert set(used) == set(ACTION["inputs"])


def test_a_command_is_annotated_and_fails_above_the_limit(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "with open('log.txt', 'w') as log:\n"
        "    for step in range(200_000):\n"
        "        print(step, file=log, flush=True)\n"
    )
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COMMAND": f"{sys.executable} bad.py && true",
        "LOGS": "run.pario",
        "LIMIT": "1%",
        "GITHUB_WORKSPACE": str(tmp_path),
    }
    run_command([*BASH, RUN], cwd=tmp_path, env=environment, status=0)
    done = subprocess.run(
        [*BASH, REPORT], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "::warning file=bad.py,line=3" in done.stdout
    del environment["LIMIT"]
    run_command([*BASH, REPORT], cwd=tmp_path, env=environment, status=0)
