"""The table of build seconds."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOG = """\
# ninja log v5
0\t2000\t1\tsrc/CMakeFiles/pario_base.dir/base/clock.cpp.o\taa
500\t4500\t1\ttests/unit/CMakeFiles/base_test.dir/base_clock_test.cpp.o\tbb
4500\t5000\t1\ttests/unit/base_test\tcc
9000\t10000\t2\tsrc/CMakeFiles/pario_base.dir/base/clock.cpp.o\tdd
"""


def run_tool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "show_build_times.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_seconds_are_summed_by_module_and_the_latest_build_counts(tmp_path: Path) -> None:
    (tmp_path / ".ninja_log").write_text(LOG)
    assert run_tool(tmp_path, "--files", 1).stdout.splitlines() == [
        "6 compiler seconds in 3 steps",
        "     4.0 s  base_test",
        "     1.0 s  base",
        "     0.5 s  links and other steps",
        "slowest files:",
        "     4.0 s  tests/unit/CMakeFiles/base_test.dir/base_clock_test.cpp.o",
    ]


def test_a_directory_without_a_build_is_an_error(tmp_path: Path) -> None:
    done = run_tool(tmp_path)
    assert done.returncode == 2
    assert "no such file; expected a build directory of ninja" in done.stderr
