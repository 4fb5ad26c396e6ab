"""Files read once per node: shared memory serves the reads, and is removed."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest

from pario.see.launch.leftovers import remove_unused_memory
from tests.streams.conftest import Start

#: Reads with O_DIRECT into unaligned memory: the kernel refuses these reads, so that successful
#: reads were served from shared memory.
READ = """
import hashlib, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
parts = iter(lambda: os.read(fd, 100_001), b"")
print(hashlib.sha256(b"".join(parts)).hexdigest())
if len(sys.argv) > 2:
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
CONTENTS = bytes(range(256)) * (9 << 12) + b"end"


def copies(path: Path) -> list[Path]:
    status = path.stat()
    return list(
        Path("/dev/shm").glob(f"pario-{os.geteuid()}-once-{status.st_dev}-{status.st_ino}-*")
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a.table"
    path.write_bytes(CONTENTS)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("no O_DIRECT here")
    return path


def test_shared_memory_serves_a_file_and_is_removed(start: Start, table: Path) -> None:
    for program in ("python3", "/usr/bin/python3"):
        done = start(program, "-c", READ, table, streams="*.table:read_once")
        assert (done.status, done.stdout.strip()) == (0, hashlib.sha256(CONTENTS).hexdigest()), (
            done.stderr
        )
    assert copies(table) == []


def test_memory_of_a_killed_process_is_reused_and_removed(start: Start, table: Path) -> None:
    killed = start("python3", "-c", READ, table, "die", streams="*.table:read_once")
    assert killed.status == -signal.SIGKILL
    assert len(copies(table)) == 1
    again = start("python3", "-c", READ, table, "die", streams="*.table:read_once")
    assert again.stdout == killed.stdout
    assert len(copies(table)) == 1
    remove_unused_memory()
    assert copies(table) == []


def test_verbose_reports_that_a_local_file_needs_no_copy(start: Start, table: Path) -> None:
    script = "import sys; open(sys.argv[1], 'rb').read()"
    done = start("python3", "-c", script, table, streams="*.table:read_once:verbose")
    assert done.status == 0
    assert "read_once is not needed" in done.stderr
