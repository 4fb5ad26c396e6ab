"""bench/micro.py runs a program of Google Benchmark and prints its figures."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_command

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "release"


@pytest.fixture(scope="module")
def pattern_bench() -> Path:
    """Returns the folder of the built benchmark programs."""
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("cmake or ninja is not on the PATH")
    if not Path("/usr/include/benchmark/benchmark.h").exists():
        pytest.skip("Google Benchmark is not installed (Debian: libbenchmark-dev)")
    run_command(["cmake", "--preset", "release"], cwd=ROOT, status=0)
    run_command(["cmake", "--build", BUILD, "--target", "pattern_bench"], cwd=ROOT, status=0)
    return BUILD / "bench"


@pytest.mark.system
def test_repetitions_of_one_benchmark_are_run_and_summarised(pattern_bench: Path) -> None:
    options = ["--no-record", "--repetitions=2", "--seconds=0.001", "--filter=^mark/64$"]
    command = [sys.executable, ROOT / "bench" / "micro.py", f"--build={pattern_bench}", *options]
    done = run_command([*command, "pattern_bench"], status=0)
    figures = re.findall(r"^\| (\S+) \| ([\d,.]+) \| ([\d,]+) \|$", done.stdout, re.MULTILINE)
    assert [name for name, *_ in figures] == ["mark/64"]
    assert all(float(text.replace(",", "")) > 0 for text in figures[0][1:])


@pytest.mark.system
def test_a_filter_without_a_match_is_an_error(pattern_bench: Path) -> None:
    command = [sys.executable, ROOT / "bench" / "micro.py", f"--build={pattern_bench}"]
    done = run_command([*command, "--no-record", "--filter=no-such-name", "pattern_bench"])
    assert done.returncode == 2
    assert "--filter=no-such-name: no benchmark has such a name" in done.stderr
