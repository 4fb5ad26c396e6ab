"""Languages with their own I/O library: the counters equal the kernel's view (strace)."""

from __future__ import annotations

import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.preload.conftest import Compile, Run, Trace
from tests.support.commands import run_command

READS, WRITES = ("read", "pread64", "readv", "preadv"), ("write", "pwrite64", "writev", "pwritev")
LINE = re.compile(r"^(?:\d+ +)?(\w+)\(\d+<([^>]*)>.*\) += (\d+)")


def whole_lines(listing: str) -> Iterator[str]:
    """Yields the calls of strace's listing; joins calls that another process's line split."""
    begun: dict[str, str] = {}
    for line in listing.splitlines():
        process, _, call = line.partition(" ")
        if call.endswith("<unfinished ...>"):
            begun[process] = call.removesuffix("<unfinished ...>")
        elif "resumed>" in call:
            yield f"{process} {begun.pop(process, '')}{call.partition('resumed>')[2]}"
        else:
            yield line


def count_by_strace(command: list[str], folder: Path) -> dict[str, tuple[int, int]]:
    """Counts the bytes read and written per file below `folder` with strace."""
    folder.mkdir(exist_ok=True)
    listing = folder.with_suffix(".strace")
    calls = ",".join(READS + WRITES)
    run_command(
        ["strace", "-f", "-y", "-e", f"trace={calls}", "-o", listing, *command],
        cwd=folder,
        status=0,
    )
    moved: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for line in whole_lines(listing.read_text(errors="replace")):
        if (match := LINE.match(line)) and match[2].startswith(f"{folder}/"):
            moved[match[2].removeprefix(f"{folder}/")][match[1] in WRITES] += int(match[3])
    return {path: (read, written) for path, (read, written) in moved.items()}


def count_by_log(run: Run, folder: Path) -> dict[str, tuple[int, int]]:
    """Reads the same counts from the log, POSIX and stdio together."""
    moved = {}
    for path in run.paths("posix") | run.paths("stdio"):
        layers = [run.counts(path, layer) for layer in ("posix", "stdio")]
        both = (
            sum(counts["bytes_read"] for counts in layers),
            sum(counts["bytes_written"] for counts in layers),
        )
        if path.startswith(f"{folder}/") and both != (0, 0):
            moved[path.removeprefix(f"{folder}/")] = both
    return moved


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


@pytest.mark.system
@needs_strace
def test_iostreams(trace: Trace, build: Compile, work: Path, tmp_path: Path) -> None:
    program = build("fstream.cpp")
    run = trace(program)
    assert run.status == 0
    assert count_by_log(run, work) == count_by_strace([str(program)], tmp_path / "bare")
    assert run.counts(work / "out.bin")["bytes_written"] == 800000 + 101 + 10


@needs_strace
def test_fortran(trace: Trace, build: Compile, work: Path, tmp_path: Path) -> None:
    program = build("records.f90")
    run = trace(program)
    assert (run.status, run.stdout) == (0, " done\n")
    assert count_by_log(run, work) == count_by_strace([str(program)], tmp_path / "bare")
    assert run.counts(work / "formatted.txt")["bytes_written"] == 1000 * 23
    assert run.counts(work / "unformatted.bin")["bytes_read"] == 10 * 8008


PYTHON = """
import json, subprocess, sys
import numpy as np
np.save("array.npy", np.arange(100000.0))
assert np.load("array.npy").sum() == 4999950000.0
with open("text.txt", "w") as f:
    for i in range(1000): f.write(f"line {i}\\n")
with open("raw.bin", "wb", buffering=0) as f:
    for i in range(100): f.write(bytes(100))
    f.seek(500); f.write(b"x" * 50)
lines = sum(1 for _ in open("text.txt"))
shell = ["sh", "-c", "cat text.txt | cat > copy.txt; wc -l < copy.txt"]
done = subprocess.run(shell, capture_output=True, text=True, close_fds=True)
json.dump([lines, int(done.stdout)], sys.stdout)
"""


@pytest.mark.system
@needs_strace
def test_python_with_numpy_and_subprocesses(trace: Trace, work: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PYTHON]
    run = trace(*command)
    assert (run.status, run.stdout) == (0, "[1000, 1000]")
    assert run.counts(work / "raw.bin")["writes"] == 101
    ours = count_by_log(run, work)
    assert ours["copy.txt"][1] == len("".join(f"line {i}\n" for i in range(1000)))
    # reads differ: numpy reads ahead, through stdio
    witness = count_by_strace(command, tmp_path / "bare")
    assert {path: both[1] for path, both in ours.items()} == {
        path: both[1] for path, both in witness.items()
    }


H5PY = """
import h5py, numpy as np
with h5py.File("data.h5", "w") as f:
    for i in range(20):
        chunks = (10, 100) if i % 2 else None
        f.create_dataset(f"set{i}", data=np.full((100, 100), i, "f8"), chunks=chunks)
with h5py.File("data.h5") as f:
    print(sum(float(f[name][0, 0]) for name in f))
"""


@pytest.mark.system
@needs_strace
def test_h5py(trace: Trace, work: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    command = [sys.executable, "-c", H5PY]
    run = trace(*command)
    assert (run.status, run.stdout) == (0, "190.0\n")
    assert count_by_log(run, work) == count_by_strace(command, tmp_path / "bare")


@pytest.mark.system
@needs_strace
def test_rust(trace: Trace, work: Path, tmp_path: Path) -> None:
    """ruff is written in Rust; its threads read sources, and it rewrites those with findings."""
    ruff = Path(sys.executable).parent / "ruff"
    if not ruff.exists():
        pytest.skip("no ruff beside this Python (pip install ruff)")
    command = [str(ruff), "check", "--isolated", "--no-cache", "--quiet", "--fix", "."]
    for folder in (work, tmp_path / "bare"):
        folder.mkdir(exist_ok=True)
        for number in range(20):
            (folder / f"source{number}.py").write_text("import os\nprint(1)\n" * 40)
    run = trace(*command)
    assert run.status == 0, run.stderr
    assert (work / "source7.py").read_text() == "print(1)\n" * 40
    counted = count_by_log(run, work)
    assert len(counted) == 20
    assert all(read and written for read, written in counted.values())
    assert counted == count_by_strace(command, tmp_path / "bare")
