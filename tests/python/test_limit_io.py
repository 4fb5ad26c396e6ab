"""The pytest plugin: tests with limits for their I/O."""

import pytest

from pario.testing.limits import parse_limits

FIRST = """
import os, subprocess, sys
from pathlib import Path
import pytest

def print_lines(path, lines):
    with open(path, "w") as file:
        for line in range(lines):
            print(line, file=file, flush=True)

@pytest.mark.limit_io(writes=20, opens=10)
def test_many_writes_fail(tmp_path):
    print_lines(tmp_path / "many.txt", 300)

def test_plain():
    assert "libpario" not in os.environ.get("LD_PRELOAD", "")
"""
MORE = """
@pytest.fixture
def text(tmp_path):
    print_lines(tmp_path / "fixture.txt", 500)
    return tmp_path / "fixture.txt"

@pytest.mark.limit_io(writes=20)
def test_few_writes_pass_and_fixtures_do_not_count(text, tmp_path):
    print_lines(tmp_path / "few.txt", 20)

@pytest.mark.limit_io(bytes_written="1K")
def test_programs_count(tmp_path):
    program = "open('child.txt', 'w').write('a' * 5000)"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)

@pytest.mark.limit_io(writes=20, of="*.dat")
def test_other_files_do_not_count(tmp_path):
    print_lines(tmp_path / "many.txt", 300)

@pytest.mark.limit_io(files=10)
@pytest.mark.parametrize("count", [10, 11])
def test_files(tmp_path, count):
    for number in range(count):
        (tmp_path / str(number)).touch()

@pytest.mark.limit_io(writes=20)
def test_own_failure():
    print("printed before")
    assert 1 == 2

@pytest.mark.limit_io(writes=20)
def test_killed():
    os.kill(os.getpid(), 9)

@pytest.mark.limit_io(writings=20)
def test_wrong_limit():
    pass
"""


def run(pytester: pytest.Pytester, body: str) -> tuple[dict[str, str], pytest.RunResult]:
    """Runs tests; returns their outcomes by name."""
    pytester.makepyfile(test_body=body)
    result = pytester.runpytest_subprocess("-rA", "-p", "no:cacheprovider")
    lines = [line.split(" - ")[0].split("::") for line in result.outlines]
    return {
        line[1]: line[0].split()[0]
        for line in lines
        if len(line) == 2 and line[0].startswith(("PASSED ", "FAILED "))
    }, result


@pytest.mark.system
def test_a_failure_names_counts_limit_and_line(pytester: pytest.Pytester) -> None:
    outcomes, result = run(pytester, FIRST)
    assert outcomes == {"test_many_writes_fail": "FAILED", "test_plain": "PASSED"}
    result.stdout.fnmatch_lines(
        [
            "The test exceeds its limits of I/O.",
            "*writes: 300, limit 20 (most: many.txt 300, at test_body.py:8 in print_lines)",
            "It made: writes 300, opens 1, *",
            "The report: pario report *",
        ]
    )


@pytest.mark.system
def test_bodies_and_their_programs_are_limited(pytester: pytest.Pytester) -> None:
    outcomes, result = run(pytester, FIRST + MORE)
    assert outcomes == {
        "test_many_writes_fail": "FAILED",
        "test_plain": "PASSED",
        "test_few_writes_pass_and_fixtures_do_not_count": "PASSED",
        "test_programs_count": "FAILED",
        "test_other_files_do_not_count": "PASSED",
        "test_files[10]": "PASSED",
        "test_files[11]": "FAILED",
        "test_own_failure": "FAILED",
        "test_killed": "FAILED",
        "test_wrong_limit": "FAILED",
    }
    result.stdout.fnmatch_lines(
        [
            "*bytes_written: 5,000 B, limit 1,024 B (most: child.txt*",
            "*files: 11, limit 10*",
            "*printed before*",
            "*the process of the test ended with signal SIGKILL",
            "*limit_io: writings; expected limits by name: reads, writes, *",
        ]
    )


def test_limits_of_time_compare_shares_and_seconds() -> None:
    limits = parse_limits([], {"lost": "10%", "io": "2s", "reads": 3})
    assert limits.counts == {"reads": 3}
    assert limits.costs["lost"].is_exceeded(1.1, 10.0)
    assert not limits.costs["io"].is_exceeded(1.9, 2.0)


@pytest.mark.parametrize("wrong", [{}, {"reads": -1}, {"reads": "many"}, {"io": "fast"}])
def test_wrong_limits_are_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_limits([], wrong)
