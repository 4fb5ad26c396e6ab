"""Real programs whose I/O is seen in full, in part or not at all: the verdict begins with the part
that pario does not see."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from pario.see.analyze import analyze
from pario.see.report import json as json_report
from pario.see.tables.read import read
from tests.launch.conftest import PARIO
from tests.support.commands import run_command

SIZE, BLOCK = 16 << 20, 64 << 10
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of random bytes, on the disk."""
    path = tmp_path / "data"
    with path.open("wb") as file:
        file.write(os.urandom(SIZE))
        os.fsync(file.fileno())
    return path


def report(place: Path, *command: object, status: int | None = 0) -> dict[str, Any]:
    """Runs a command under pario; returns its report."""
    words = [*PARIO, "run", "--no-report", "-o", "log", "--", *map(str, command)]
    run_command(words, cwd=place, status=status)
    found: dict[str, Any] = json.loads(json_report.render(analyze(read([place / "log"]))))
    return found


def compile_program(place: Path, source: str, *flags: str) -> Path:
    program = place / Path(source).stem
    run_command(["gcc", "-O1", *flags, "-o", program, PROGRAMS / source], status=0)
    return program


def share_accounted(kernel: dict[str, Any]) -> float:
    seen = kernel["read_accounted"] + kernel["written_accounted"]
    return float(seen / (kernel["read"] + kernel["written"]))


@pytest.mark.parametrize("end", ["exit", "_exit", "kill"])
@pytest.mark.system
def test_raw_system_calls_lead_the_verdict(tmp_path: Path, data: Path, end: str) -> None:
    program = compile_program(tmp_path, "raw_reads.c")
    found = report(tmp_path, program, data, 2, end, status=None)
    (part,) = found["kernel"]["unattributed"]
    assert part["mechanism"].startswith("calls that pario does not see")
    assert part["bytes"] == pytest.approx(2 * SIZE, rel=0.01)
    assert found["verdict"]["sentence"].startswith("33.6 MB")
    assert found["verdict"]["bound"] == "unknown"


def test_a_static_child_is_named(tmp_path: Path, data: Path) -> None:
    program = compile_program(tmp_path, "raw_reads.c", "-static")
    found = report(tmp_path, "sh", "-c", f"{program} {data} 2 exit; :")
    (part,) = found["kernel"]["unattributed"]
    assert part["mechanism"] == "programs that pario cannot follow (raw_reads)"
    assert part["bytes"] == pytest.approx(2 * SIZE, rel=0.01)
    assert found["verdict"]["sentence"].startswith("33.6 MB")


@pytest.mark.parametrize("command", ["{program} data 2 exit", "{program} data 2 exit; true"])
@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.system
def test_bytes_of_a_static_program_of_a_shell_are_named(
    tmp_path: Path, data: Path, shell: str, command: str
) -> None:
    program = compile_program(tmp_path, "raw_reads.c", "-static")
    found = report(tmp_path, shell, "-c", command.format(program=program))
    (part,) = found["kernel"]["unattributed"]
    assert part["mechanism"] == "programs that pario cannot follow (raw_reads)"
    assert part["bytes"] == pytest.approx(2 * SIZE, rel=0.01)
    assert "Incomplete" not in found["verdict"]["sentence"]


def test_a_small_static_program_does_not_spoil_the_verdict(tmp_path: Path, data: Path) -> None:
    program = compile_program(tmp_path, "raw_reads.c", "-static")
    (tmp_path / "small").write_bytes(b"x" * 1000)
    found = report(tmp_path, "bash", "-c", f"cat data > copy; {program} small 1 exit; true")
    assert found["kernel"]["unattributed"] == []
    assert found["verdict"]["unseen"] == [f"{program} was not followed"]
    assert "Incomplete" not in found["verdict"]["sentence"]


@pytest.mark.parametrize(
    "command",
    [
        "cp data copy",
        "dd if=data of=copy bs=4k",
        "cat data | cat > copy",
        "tar cf archive data && tar xf archive -C /dev/shm --to-stdout | md5sum",
        "gzip -1 -k data",
        "(cat data & cat data & wait) > copy",
        "for i in 1 2 3 4 5 6 7 8 9 10; do cat data > /dev/null; done",
        "split -b 1M data part. && cat part.* > copy",
        '{python} -c \'import json, subprocess; subprocess.run(["cat", "data"], '
        "stdout=subprocess.PIPE)'",
        '{python} -c \'import shutil; shutil.copyfile("data", "copy")\'',
        "{python} -c 'import multiprocessing as m; m.Pool(2).map(abs, range(10))'",
    ],
)
@pytest.mark.system
def test_ordinary_programs_are_seen_in_full(tmp_path: Path, data: Path, command: str) -> None:
    found = report(tmp_path, "sh", "-c", command.format(python=sys.executable))
    assert found["kernel"]["unattributed"] == []
    assert share_accounted(found["kernel"]) > 0.95


@pytest.mark.system
@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
@pytest.mark.parametrize("rw", ["read", "write"])
@pytest.mark.parametrize("engine", ["psync", "vsync", "libaio", "io_uring", "mmap", "splice"])
def test_bytes_of_each_engine_of_fio_are_seen_or_named(
    tmp_path: Path, data: Path, engine: str, rw: str
) -> None:
    drop_cache(data)
    options = f"--name=job --filename={data} --size={SIZE} --bs={BLOCK} --rw={rw} --end_fsync=1"
    found = report(tmp_path, "fio", *options.split(), f"--ioengine={engine}", "--output=out")
    if engine == "mmap":
        traced = count_resident_bytes(tmp_path / "log", data)
    else:
        moved = f"bytes_{'read' if rw == 'read' else 'written'}"
        traced = sum(file[moved] for file in of(found, data))
    unseen = sum(part["bytes"] for part in found["kernel"]["unattributed"])
    if engine == "io_uring":
        assert unseen == pytest.approx(SIZE, rel=0.01)
        assert re.match(r"25[67] requests ", found["verdict"]["sentence"])  # one may be of fsync
    else:
        assert traced == pytest.approx(SIZE, rel=0.01)


@pytest.mark.system
@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
def test_requests_of_rings_to_the_page_cache_are_named(tmp_path: Path, data: Path) -> None:
    options = f"--name=job --filename={data} --size={SIZE} --bs=64k --rw=read --invalidate=0"
    found = report(tmp_path, "fio", *options.split(), "--ioengine=io_uring", "--output=out")
    assert found["verdict"]["sentence"].startswith("256 requests of this run's I/O went through")


def count_resident_bytes(log: Path, path: Path) -> int:
    """Returns the bytes of a file that its mappings have touched."""
    job = read([log])
    mapped = [job.path(int(file)) == str(path) for file in job.records["file"]]
    return int(job.records["bytes_resident"][mapped].sum())


def of(found: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    return [file for file in found["files"] if file["path"] == str(path)]


def drop_cache(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.system
def test_busy_processes_on_few_processors_wait_for_them(tmp_path: Path) -> None:
    program = tmp_path / "spin"
    source = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC * 7 / 10); }"
    run_command(["gcc", "-x", "c", "-o", program, "-"], input=source, status=0)
    one = f"taskset -c {min(os.sched_getaffinity(0))} {program} & "
    found = report(tmp_path, "sh", "-c", 4 * one + "wait")
    assert found["kernel"]["run_queue_share"] > 0.3
    assert "of the run the processes waited for a processor" in found["verdict"]["sentence"]
    assert "slept" not in found["verdict"]["sentence"]
