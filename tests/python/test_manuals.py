"""The manual page and the completions of shells, generated from the parsers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tools.write_manuals import COMPLETIONS, write_manuals

from pario.cli import COMMANDS
from tests.support.commands import run_command

#: Completes the last of some words as bash does, and prints the candidates.
COMPLETE = """
source {file}
COMP_WORDS=({words} '')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
COMP_WORDS[$COMP_CWORD]='{prefix}'
_shtab_pario
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("shtab", reason="shtab is not installed")
    pytest.importorskip("build_manpages", reason="argparse-manpage is not installed")
    made = tmp_path_factory.mktemp("share")
    write_manuals(made)
    return made


def test_the_manual_page_describes_each_command(folder: Path) -> None:
    page = (folder / "man/man1/pario.1").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"pario {name}" not in page] == []
    assert "\\-\\-fail\\-above" in page


def test_the_manual_page_is_found_by_its_purpose(folder: Path) -> None:
    page = folder / "man/man1/pario.1"
    name = page.read_text(encoding="utf-8").partition(".SH NAME\n")[2].splitlines()[0]
    assert name.startswith("pario \\- see why a program's I/O is slow")
    if shutil.which("lexgrog"):  # of man-db
        assert '"pario - see why' in run_command(["lexgrog", page], status=0).stdout


@pytest.mark.parametrize("name", COMPLETIONS.values(), ids=COMPLETIONS)
def test_completions_know_each_command(folder: Path, name: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert [command for command in COMMANDS if command not in text] == []
    assert "fail-above" in text


@pytest.mark.parametrize(
    ("words", "prefix", "expected"),
    [
        ("pario", "rep", {"report", "replay"}),
        ("pario report", "--fail", {"--fail-above"}),
        ("pario stripe", "sh", {"show"}),
    ],
)
def test_bash_completes_commands_actions_and_options(
    folder: Path, words: str, prefix: str, expected: set[str]
) -> None:
    if (shell := shutil.which("bash")) is None:
        pytest.skip("bash is not installed")
    script = COMPLETE.format(file=folder / COMPLETIONS["bash"], words=words, prefix=prefix)
    done = run_command([shell, "-c", script])
    assert expected <= set(done.stdout.split())
