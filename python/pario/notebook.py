"""pario in notebooks (docs/how-to/notebooks.md): ``%load_ext pario.notebook`` adds the magic
``pario``, and a :class:`Run` shows its report."""

from __future__ import annotations

import html
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario.errors import ParioError

if TYPE_CHECKING:
    from pario.see.analyze.model import Analysis

_HEIGHT = 640  # of the report in a notebook, pixels


class Run:
    """A recorded run. As the value of a cell it is its HTML report.

    Parameters
    ----------
    directory
        A directory of ``pario run``, or a Darshan log.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    @cached_property
    def analysis(self) -> Analysis:
        """The verdict, the findings and the tables of the report. Raises ParioError if the logs
        cannot be read."""
        from pario.see.analyze import analyze
        from pario.see.symbols import resolve
        from pario.see.tables import read

        return analyze(resolve(read([self.directory])))

    def __repr__(self) -> str:
        return f"{self.directory}: {self.analysis.verdict.sentence}"

    def _repr_html_(self) -> str:
        """The report in a frame, because it has styles and scripts of its own."""
        from pario.see.report import html as page

        text = html.escape(page.render(self.analysis), quote=True)
        return (
            f'<iframe srcdoc="{text}" width="100%" height="{_HEIGHT}"'
            ' style="border:1px solid #ccc"></iframe>'
        )


def run_magic(line: str, cell: str | None = None) -> Run:
    """Run a command, or a cell as a Python program of its own, under ``pario run``.

    ``line`` has options of ``pario run``, then ``--`` and the command; without ``--`` all words are
    the command, or the options of a cell. A cell follows the command: ``%%pario -- mpiexec -n 4``.
    Raises ParioError if nothing was recorded.
    """
    from pario.see.launch.directory import find_free_name

    options, command = split_line(line, is_cell=cell is not None)
    place = find_free_name(Path())
    with tempfile.TemporaryDirectory() as folder:
        if cell is not None:
            program = Path(folder, "cell.py")
            program.write_text(cell, encoding="utf-8")
            command = [*command, sys.executable, str(program)]
        run = Run(place.absolute())
        _show([sys.executable, "-m", "pario", "run", "--no-report", "-o", str(place), *options,
               "--", *command])  # fmt: skip
        if not any(run.directory.glob("*.plog")):
            raise ParioError(f"nothing was recorded: {shlex.join(command)}")
        _ = run.analysis  # while the lines of the cell can be found
    return run


def split_line(line: str, *, is_cell: bool) -> tuple[list[str], list[str]]:
    """Return the options and the command of the magic's line."""
    words = shlex.split(line)
    if "--" in words:
        end = words.index("--")
        return words[:end], words[end + 1 :]
    return (words, []) if is_cell else ([], words)


def _show(command: Sequence[str]) -> None:
    """Run a command; print its output while it runs."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="")


def load_ipython_extension(shell: Any) -> None:
    """Register the magic in a shell of IPython."""
    shell.register_magic_function(run_magic, "line_cell", "pario")
