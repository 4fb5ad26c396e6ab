"""``pario lab``: a file system that is correct, and as slow as configured."""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pario.cli import main
from pario.errors import ParioError
from pario.fix.stripe.layout import Part, Wanted, set_stripes, stripes_of
from pario.prove.lab.mount import down, is_running, reset, status, up
from tests.filesystems.conftest import Labs, fast
from tests.hosts.conftest import make_hosts, on
from tests.support.commands import run_command
from tests.support.waiting import wait_until

MIB = 1 << 20

pytestmark = pytest.mark.system


def make_striped(path: Path, count: int, unit: int = 1 << 16) -> Path:
    set_stripes(path, Wanted((Part(unit=unit, count=count),)))
    return path


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def total(point: Path, name: str) -> int:
    return sum(int(target[name]) for target in status(point)["targets"])


# ---- metadata


def test_requests_about_names_are_counted_and_delayed(labs: Labs) -> None:
    point = labs(metadata=2_000_000)
    (point / "dir").mkdir()
    (point / "dir" / "file").write_bytes(b"x")
    reset(point)
    begin = time.monotonic()
    (point / "dir" / "file").read_bytes()
    took = time.monotonic() - begin
    found = status(point)["metadata"]
    assert found["opens"] == 1 and found["lookups"] >= 2
    assert took >= 0.002 * sum(found.values())
    reset(point)
    assert not (point / "dir" / "missing").exists() and names(point / "dir") == ["file"]
    found = status(point)["metadata"]
    assert found["lists"] == 1 and found["opens"] == 0 and found["changes"] == 0


# ---- files


def actions(path: Path, rng: random.Random) -> list[Callable[[], Any]]:
    """Lists random actions on a file; each returns the result that a program sees."""
    offset, length = rng.randrange(3 * MIB), rng.choice([1, 100, 4096, 70_000, 400_000])
    data, other = rng.randbytes(length), path.with_name(path.name + ".other")

    def act_on_open_file(act: Callable[[int], Any], flags: int = os.O_RDWR) -> Any:
        descriptor = os.open(path, flags | os.O_CREAT, 0o644)
        try:
            return act(descriptor)
        finally:
            os.close(descriptor)

    def replace() -> None:
        other.write_bytes(data)
        other.rename(path)

    def unlink_while_open(descriptor: int) -> tuple[bytes, int]:
        path.unlink()
        os.pwrite(descriptor, data, offset)
        return os.pread(descriptor, length + 10, max(offset - 5, 0)), os.fstat(descriptor).st_size

    def replace_by_link() -> tuple[bytes, int]:
        other.unlink(missing_ok=True)
        os.link(path, other)
        path.unlink()
        other.rename(path)
        return path.read_bytes(), path.stat().st_nlink

    return [
        lambda: act_on_open_file(lambda descriptor: os.pwrite(descriptor, data, offset)),
        lambda: act_on_open_file(
            lambda descriptor: os.write(descriptor, data), os.O_WRONLY | os.O_APPEND
        ),
        lambda: act_on_open_file(lambda descriptor: os.pread(descriptor, length, offset)),
        lambda: act_on_open_file(lambda descriptor: os.ftruncate(descriptor, offset)),
        lambda: act_on_open_file(lambda descriptor: os.posix_fallocate(descriptor, offset, length)),
        lambda: act_on_open_file(unlink_while_open),
        lambda: act_on_open_file(lambda descriptor: os.lseek(descriptor, 0, os.SEEK_END)),
        lambda: os.truncate(path, offset) if path.exists() else None,
        lambda: path.write_bytes(data),
        lambda: path.exists() and replace_by_link(),
        replace,
    ]


@pytest.mark.parametrize(
    "model", [{}, {"cache": True}, {"ceph": True}], ids=["lustre", "cached", "ceph"]
)
def test_random_calls_have_the_results_of_another_file_system(
    model: dict[str, Any], labs: Labs, tmp_path: Path
) -> None:
    point, plain, seed = labs(**model), tmp_path / "plain", random.randrange(1 << 30)
    plain.mkdir()
    print("seed", seed)
    for place in (point, plain):
        (place / "files").mkdir()
    set_stripes(point / "files", Wanted((Part(unit=1 << 16, count=3),)))
    one, other = random.Random(seed), random.Random(seed)
    for step in range(400):
        number, action = one.randrange(4), one.randrange(11)
        assert (other.randrange(4), other.randrange(11)) == (number, action)
        mine, theirs = point / "files" / str(number), plain / "files" / str(number)
        assert actions(mine, one)[action]() == actions(theirs, other)[action](), (step, action)
        if theirs.exists():
            assert mine.stat().st_size == theirs.stat().st_size, (step, action)
    for theirs in (plain / "files").iterdir():
        assert (point / "files" / theirs.name).read_bytes() == theirs.read_bytes()
    shutil.rmtree(point / "files")
    assert not [*(labs.backing(point)).glob("target.*/*")], "objects of files that are gone"


def test_what_is_not_bytes(labs: Labs) -> None:
    point = labs()
    (point / "a" / "b").mkdir(parents=True)
    (point / "a" / "b").rename(point / "c")
    assert names(point) == ["a", "c"] and names(point / "a") == []
    (point / "link").symlink_to("c")
    assert (point / "link").readlink() == Path("c") and (point / "link").is_dir()
    file = point / "c" / "file"
    file.write_bytes(b"12345")
    file.chmod(0o640)
    os.utime(file, ns=(10**18, 10**18 + 7))
    os.setxattr(file, "user.note", b"kept")
    assert (
        file.stat().st_mode & 0o777,
        file.stat().st_mtime_ns,
        os.getxattr(file, "user.note"),
    ) == (0o640, 10**18 + 7, b"kept")
    assert set(os.listxattr(file)) == {"user.note", "lustre.lov"}
    with pytest.raises(OSError, match="not empty"):
        (point / "c").rmdir()
    assert os.statvfs(point).f_bavail > 0


def test_holes_are_holes(labs: Labs) -> None:
    file = make_striped(labs() / "file", 3)
    with file.open("r+b") as opened:
        opened.seek(5 * MIB + 10)
        opened.write(b"x" * 10)
        opened.flush()
        assert os.lseek(opened.fileno(), 0, os.SEEK_DATA) // 65536 == 5 * MIB // 65536
        assert os.lseek(opened.fileno(), 5 * MIB, os.SEEK_DATA) == 5 * MIB
    assert file.stat().st_blocks * 512 < 65536
    assert file.read_bytes() == bytes(5 * MIB + 10) + b"x" * 10


def test_locks_hold_between_processes(labs: Labs) -> None:
    file = labs() / "file"
    with file.open("wb") as opened:
        fcntl.lockf(opened, fcntl.LOCK_EX)
        code = (
            f"import fcntl; fcntl.lockf(open({str(file)!r}, 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        )
        assert "BlockingIOError" in run_command([sys.executable, "-c", code]).stderr


def test_shared_mappings_need_the_cache(labs: Labs) -> None:
    data = os.urandom(3 * MIB)
    for point, mapped in ((labs(), False), (labs(cache=True), True)):
        make_striped(point / "file", 3).write_bytes(data)
        with (point / "file").open("r+b") as opened:
            try:
                with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as seen:
                    assert seen[:] == data and mapped
            except OSError as error:
                assert error.errno == errno.ENODEV and not mapped


# ---- costs and counters


def test_each_target_is_asked_for_its_stripes(labs: Labs) -> None:
    point = labs(targets=4)
    make_striped(point / "file", 4, MIB)
    reset(point)
    with (point / "file").open("wb", buffering=0) as opened:
        for _ in range(8):
            opened.write(bytes(MIB))
    told = status(point)["targets"]
    assert [(target["writes"], target["bytes_written"]) for target in told] == [(2, 2 * MIB)] * 4
    assert (point / "file").read_bytes() == bytes(8 * MIB)
    assert [target["bytes_read"] for target in status(point)["targets"]] == [2 * MIB] * 4
    assert total(point, "hand_overs") == 0


def write_piece(path: Path, offset: int) -> None:
    with path.open("r+b", buffering=0) as opened:
        opened.seek(offset)
        opened.write(b"1")


def by_another_process(path: Path, offset: int) -> None:
    child = multiprocessing.get_context("fork").Process(target=write_piece, args=(path, offset))
    child.start()
    child.join()
    assert child.exitcode == 0


def test_objects_go_from_writer_to_writer(labs: Labs) -> None:
    point = labs(process=True)
    make_striped(point / "file", 2)
    for offset, handed in ((0, 0), (65536, 0), (0, 1), (0, 2), (131072, 3)):
        by_another_process(point / "file", offset)
        assert total(point, "hand_overs") == handed, offset
    point = labs(process=False)
    make_striped(point / "file", 2)
    for _ in range(3):
        by_another_process(point / "file", 0)
    assert total(point, "hand_overs") == 0, "all are one host"


def test_hosts_are_clients(labs: Labs) -> None:
    point = labs()
    make_striped(point / "file", 1)
    for hosts in make_hosts("l", 2):
        for number, host in enumerate([*hosts, hosts[0], hosts[0]]):
            on(host, f"printf x | dd of={point}/file bs=1 seek={number} conv=notrunc status=none")
        assert total(point, "hand_overs") == 2
    assert (point / "file").read_bytes() == b"xxxx"


def test_requests_take_their_time(labs: Labs) -> None:
    point = labs(targets=2, latency=20_000_000, in_flight=0)
    make_striped(point / "file", 1)
    begin = time.monotonic()
    with (point / "file").open("wb", buffering=0) as opened:
        for _ in range(5):
            opened.write(b"x")
    assert time.monotonic() - begin >= 5 * 0.02
    assert total(point, "busy_ns") >= 100_000_000


# ---- mounting and unmounting


def is_dead(point: Path) -> bool:
    try:
        point.stat()
    except OSError as error:
        return error.errno == errno.ENOTCONN  # ECONNABORTED: it is still ending
    return False


def test_nothing_is_left(labs: Labs, tmp_path: Path) -> None:
    point = labs()
    process, backing = int(status(point)["process"]), labs.backing(point)
    (point / "file").write_bytes(b"bytes")
    down(point)
    assert not point.exists() and not backing.exists() and not is_running(process)


def test_files_stay_where_a_place_was_given(tmp_path: Path, labs: Labs) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for expected in ([], ["file"]):
        point = labs(backing=kept)
        assert names(point) == expected
        if not expected:
            make_striped(point / "file", 3).write_bytes(b"bytes" * 100_000)
        assert (point / "file").read_bytes() == b"bytes" * 100_000 and stripes_of(
            point / "file"
        ).parts[0].count == 3
        down(point)
    with pytest.raises(ParioError, match="more than 2 targets"):
        labs(backing=kept, targets=2)


def test_a_lab_that_was_killed_is_mounted_again(labs: Labs) -> None:
    point = labs()
    make_striped(point / "file", 3).write_bytes(b"bytes" * 100_000)
    os.kill(int(status(point)["process"]), signal.SIGKILL)
    wait_until(lambda: is_dead(point), "the lab is dead")
    with pytest.raises(ParioError, match="has died"):
        status(point)
    outcome = up(point, fast())
    assert "had died" in outcome.notes[0] and (point / "file").read_bytes() == b"bytes" * 100_000
    os.kill(int(status(point)["process"]), signal.SIGKILL)
    wait_until(lambda: is_dead(point), "the lab is dead")
    down(point)
    assert not point.exists() and not outcome.backing.exists()


def test_the_command_line(labs: Labs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    point = tmp_path / "lab"
    assert (
        main(["lab", "up", str(point), "--targets", "3", "--latency", "0.5ms", "--rate", "1G"]) == 0
    )
    assert "3 targets of 1 GiB/s" in capsys.readouterr().out
    (point / "file").write_bytes(b"bytes")
    assert main(["lab", "status", str(point)]) == 0
    assert "latency 500 µs" in (page := capsys.readouterr().out) and page.splitlines()[-1].split()[
        :3
    ] == ["all", "1", "5"]
    assert main(["lab", "status", str(point), "--json", "--reset"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["latency_ns"] == 500_000 and total(point, "writes") == 0
    )
    assert main(["lab", "up", str(point)]) == 2 and "is a lab already" in capsys.readouterr().err
    assert main(["lab", "down", str(point)]) == 0 and main(["lab", "down", str(point)]) == 2
    assert "is no lab" in capsys.readouterr().err
