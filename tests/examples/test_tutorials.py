"""The tutorials: exercises exceed the limits of their tests, solutions keep them, and the pages
show the code and the counts."""

import os
import re
import sys
from pathlib import Path

import pytest
from tools.write_samples import (
    DEMO,
    PAGES,
    PROGRAMS,
    cut_demo,
    find_failure,
    list_names,
    read_code,
    replace_parts,
    run_test,
)

from tests.support.commands import run_command

#: The modules that a tutorial needs beside numpy.
NEEDS = {"columns": "mpi4py", "checkpoint": "h5py", "loader": "torch"}
#: A part of a report that names the line of a finding.
NAMED = "of these calls)"


def page(name: str) -> Path:
    return PAGES / f"{name.replace('_', '-')}.md"


@pytest.mark.parametrize("name", list_names())
def test_a_page_shows_the_code_of_its_tutorial(name: str) -> None:
    text = page(name).read_text()
    assert replace_parts(text, read_code(name)) == text, "run python -m tools.write_samples --code"
    empty = re.findall(r"<!-- (\w+) -->\n<!-- end -->", text)
    assert not empty, "run python -m tools.write_samples"


@pytest.mark.parametrize("name", list_names())
def test_the_reports_of_a_page_name_the_line_of_a_finding(name: str) -> None:
    text = page(name).read_text()
    for part in ("failure", "report"):
        [shown] = re.findall(rf"<!-- {part} -->\n(.*?)<!-- end -->", text, re.S)
        assert NAMED in re.sub(r"\s+", " ", shown)


@pytest.mark.system
@pytest.mark.parametrize("file", ["exercise.py", "solution.py"])
@pytest.mark.parametrize("name", list_names())
def test_a_program_without_arguments_shows_its_usage(name: str, file: str) -> None:
    pytest.importorskip(NEEDS.get(name, "numpy"))
    done = run_command([sys.executable, file], cwd=PROGRAMS / name, status=1)
    assert re.fullmatch(rf"usage: {file} [A-Z ]+\n", done.stderr)


@pytest.mark.system
def test_the_tests_need_pytest_and_pario_alone() -> None:
    """Not the plugins of pytest that pario's own tests need."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "test_exercise.py"]
    command += ["-p", "no:timeout", "-p", "no:xdist", "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    done = run_command(command, cwd=PROGRAMS / "lines", env=environment, status=0)
    assert "1 test collected" in done.stdout


def test_the_sample_of_a_report_is_the_first_part_of_the_demonstration() -> None:
    report = "$ pario run -- mpiexec ./app\n\nI/O-bound.\n\nCosts and remedies\n\nFunction  calls"
    output = f"1. See\n{report}  \n\nFile  reads\na.dat\n\n2. Fix and prove\n$ pario run --fix\n"
    assert cut_demo(output) == report
    part = re.search(r"<!-- demo -->\n```text\n(.*?)\n```\n<!-- end -->", DEMO.read_text(), re.S)
    assert part and part[1].startswith("$ pario run -- mpiexec -n ")
    assert "\n\nCosts and remedies" in part[1]


@pytest.mark.system
@pytest.mark.parametrize("name", list_names())
def test_an_exercise_exceeds_its_limits_and_a_solution_keeps_them(
    name: str, tmp_path: Path
) -> None:
    pytest.importorskip(NEEDS.get(name, "numpy"))
    failure, _ = find_failure(run_test(name, tmp_path / name))
    exceeded = [line for line in failure.splitlines() if ", limit " in line]
    assert exceeded
    text = page(name).read_text()
    assert [line for line in exceeded if line not in text] == []
    assert NAMED in failure, "the report shows why"
    output = run_test(name, tmp_path / f"{name}-solved", "solution.py")
    assert re.search(r"^1 passed", output, re.M), output
