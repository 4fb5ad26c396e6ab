"""Readers of files that other processes change."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.commands import start_command

READER = """
import os, sys
def read_all():
    os.lseek(file, 0, os.SEEK_SET)
    return b"".join(iter(lambda: os.read(file, 4096), b""))
file = os.open("in.dat", os.O_RDONLY)
print(len(read_all()), flush=True)
sys.stdin.readline()
print(read_all().count(b"B"), flush=True)
"""


def test_a_sequential_reader_sees_the_changes_of_other_processes(
    library: Path, tmp_path: Path
) -> None:
    size = 256 << 10
    (tmp_path / "in.dat").write_bytes(b"A" * size)
    time.sleep(0.2)  # such files are kept for longer
    env = os.environ | {"LD_PRELOAD": str(library), "PARIO_STREAMS": "*.dat:size=64K:count=16"}
    command = [sys.executable, "-c", READER]
    pipe = subprocess.PIPE
    with start_command(command, cwd=tmp_path, env=env, stdin=pipe, stdout=pipe) as reader:
        assert reader.stdin is not None and reader.stdout is not None
        assert reader.stdout.readline() == f"{size}\n"
        with (tmp_path / "in.dat").open("r+b") as file:
            file.write(b"B" * size)
        time.sleep(0.2)  # the time after which a reader notices a change
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == f"{size}\n"
