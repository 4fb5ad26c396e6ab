"""pario in notebooks."""

import html
import re
from pathlib import Path

import pytest

from pario.errors import ParioError
from pario.notebook import Run, run_magic, split_line

CELL = """
with open("log.txt", "w") as log:
    for step in range(2000):
        print(step, file=log, flush=True)
print("written")
"""


@pytest.mark.system
def test_a_cell_runs_traced_and_shows_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = run_magic("--events-limit 0", CELL)
    assert capsys.readouterr().out == "written\n"
    assert run.directory == tmp_path / "run.pario"
    [log] = [row for row in run.analysis.files if row.path == str(tmp_path / "log.txt")]
    assert log.writes == 2000
    found = re.fullmatch(r'<iframe srcdoc="([^"]*)" .*</iframe>', run._repr_html_())
    assert found
    assert "<!doctype html>" in html.unescape(found[1]).lower()
    assert run.analysis.verdict.sentence in repr(Run(run.directory))


def test_a_line_has_options_before_the_command() -> None:
    assert split_line("python a.py --x", is_cell=False) == ([], ["python", "a.py", "--x"])
    assert split_line("--mpiio -- mpiexec -n 2", is_cell=True) == (
        ["--mpiio"],
        ["mpiexec", "-n", "2"],
    )
    assert split_line("--mpiio", is_cell=True) == (["--mpiio"], [])


def test_a_command_that_cannot_be_traced_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParioError, match="nothing was recorded: no-such-program"):
        run_magic("no-such-program")


@pytest.mark.system
def test_the_extension_adds_the_magic_to_ipython(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    monkeypatch.chdir(tmp_path)
    shell = shells.InteractiveShell()
    shell.run_line_magic("load_ext", "pario.notebook")
    run = shell.run_cell_magic("pario", "", CELL)
    assert isinstance(run, Run)
