"""Writes the samples of the documentation: the code of tutorials, the output of real runs, and the
picture of a report.

usage: python -m tools.write_samples [--code] [NAME...]

NAME is a tutorial (a folder of examples/tutorials), or ``demo`` for the report and the picture that
`make demo` shows. Without names all are written; record them on an idle machine. ``--code`` runs
nothing: it renews the code alone.

A part of a page lies between the comments ``<!-- PART -->`` and ``<!-- end -->``. The parts
``exercise``, ``test`` and ``solution`` are files of a tutorial; ``failure`` is the message of its
failing test, ``report`` the report of its run up to the first finding. ``demo`` is the first part
of examples/demo.sh, up to its tables of files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES, PROGRAMS = ROOT / "docs" / "tutorials", ROOT / "examples" / "tutorials"
FILES = {"exercise": "exercise.py", "test": "test_exercise.py", "solution": "solution.py"}
_PART = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)
_FAILURE = re.compile(
    r"^The test exceeds its limits.*?^The report: pario report (\S+)$", re.M | re.S
)
_REPORT_LINES = 30
DEMO, PICTURE = ROOT / "docs/explanation/example.md", ROOT / "docs/images/report.png"
#: Width and height of the picture, in pixels.
_SIZE = (1180, 1050)


def list_names() -> list[str]:
    """Return the names of all tutorials."""
    return sorted(path.name for path in PROGRAMS.iterdir() if path.is_dir())


def run_test(name: str, folder: Path, program: str = "exercise.py") -> str:
    """Run the test of a tutorial in ``folder`` with one of its programs; return its output."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PROGRAMS / name / "test_exercise.py", folder)
    shutil.copy(PROGRAMS / name / program, folder / "exercise.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--basetemp", str(folder / "tmp"), "--rootdir", str(folder), "test_exercise.py"]
    # A run of pytest inside a test of pytest: its options do not hold here.
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def find_failure(output: str) -> tuple[str, str]:
    """Return the message of the failed test without the path of the logs, and this path."""
    found = _FAILURE.search(output)
    if not found:
        raise SystemExit(f"the test did not fail by its limits:\n{output}")
    return found[0].replace(found[1], "LOGS"), found[1]


def read_report(logs: str) -> str:
    """Return the first lines of a report, up to its second finding or its tables."""
    command = [str(Path(sys.executable).parent / "pario"), "report", logs]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.rstrip() for line in text.splitlines()]
    after = (" 2 ", "File ", "Slow ")
    ends = [number for number, line in enumerate(lines) if line.startswith(after)]
    return "\n".join(lines[: min([*ends, _REPORT_LINES])]).strip()


def read_code(name: str) -> dict[str, str]:
    """Return the parts with code."""
    files = {part: (PROGRAMS / name / file).read_text() for part, file in FILES.items()}
    return {part: f"```python\n{text}```" for part, text in files.items()}


def replace_parts(page: str, parts: dict[str, str]) -> str:
    """Return a page with new parts; others stay."""

    def replace(found: re.Match[str]) -> str:
        part = found[1]
        if part not in parts:
            return found[0]
        return f"<!-- {part} -->\n{parts[part]}\n<!-- end -->"

    return _PART.sub(replace, page)


def write_page(name: str, *, only_code: bool) -> None:
    """Write the parts of one page."""
    parts = read_code(name)
    if not only_code:
        with tempfile.TemporaryDirectory() as folder:
            failure, logs = find_failure(run_test(name, Path(folder) / name))
            parts["failure"] = f"```text\n{failure}\n```"
            parts["report"] = f"```text\n$ pario report LOGS\n{read_report(logs)}\n```"
    path = PAGES / f"{name.replace('_', '-')}.md"
    path.write_text(replace_parts(path.read_text(), parts))


def cut_demo(output: str) -> str:
    """Return the first part of the output of examples/demo.sh without its tables of files."""
    found = re.search(r"^1\. See\n(.*?)^(?:File |Slow |2\. Fix)", output, re.M | re.S)
    if not found or "Costs and remedies" not in found[1]:
        raise SystemExit(f"the demonstration shows no finding of an MPI program:\n{output}")
    return "\n".join(line.rstrip() for line in found[1].strip().splitlines())


def write_demo(browser: str) -> None:
    """Run the demonstration; write its report to the page, and a picture of its HTML page."""
    with named_folder("checkpoints") as folder:
        command = ["sh", str(ROOT / "examples/demo.sh"), str(folder)]
        environment = os.environ | {"BIN": str(Path(sys.executable).parent)}
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"examples/demo.sh: status {done.returncode}\n{done.stdout}")
        parts = {"demo": f"```text\n{cut_demo(done.stdout)}\n```"}
        DEMO.write_text(replace_parts(DEMO.read_text(), parts))
        take_picture(browser, folder / "demo.html", PICTURE)


@contextmanager
def named_folder(name: str) -> Iterator[Path]:
    """Make a temporary folder whose name can stand in a report; remove it afterwards."""
    folder = Path(tempfile.gettempdir()) / name
    try:
        folder.mkdir()
    except FileExistsError:
        raise SystemExit(f"{folder} exists: remove it, the demonstration runs there") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def take_picture(browser: str, page: Path, picture: Path) -> None:
    """Write a picture of the top of a page."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={_SIZE[0]},{_SIZE[1]}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, capture_output=True, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--code", action="store_true", help="write the code, run nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*list_names(), "demo"]))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {*list_names(), "demo"}:
        parser.error(f"{', '.join(unknown)}; expected: {', '.join([*list_names(), 'demo'])}")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    for name in arguments.names or [*list_names(), "demo"]:
        if name != "demo":
            write_page(name, only_code=arguments.code)
        elif not arguments.code:
            write_demo(browser or parser.error("no chromium on the PATH, for the picture"))


if __name__ == "__main__":
    main()
