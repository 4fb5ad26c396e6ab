"""Indexes of files in read-only directories: they are made once and kept in the cache directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

from pario.cli import main
from pario.records import Dataset
from tests.support.commands import run_command, start_command

SIZE = 4 << 20
COUNT = SIZE // 64
#: Prints the number of bytes read to open the records, and the number of records.
OPEN = """
import sys
import numpy  # whose files are not counted
from pario.records import Dataset
def bytes_read():
    with open("/proc/self/io") as facts:
        return int(facts.readline().split()[1])
before = bytes_read()
records = len(Dataset(sys.argv[1], *sys.argv[2:]))
print(bytes_read() - before, records)
"""
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARIO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "a.jsonl"
    path.write_bytes(b"".join(b"%063d\n" % number for number in range(COUNT)))
    return path


@pytest.fixture
def read_only(data: Path) -> list[str]:
    """Returns the beginning of a command line that mounts the data's directory read-only."""
    user = [] if os.getuid() == 0 else ["--map-root-user"]
    words = ["unshare", "--mount", *user, "sh", "-c", READ_ONLY, str(data.parent)]
    if not shutil.which("unshare") or run_command([*words, "true"]).returncode != 0:
        pytest.skip("no mount can be made here (unshare --mount)")
    assert run_command([*words, "touch", str(data.parent / "new")]).returncode != 0
    return words


def open_by_process(start: list[str], *arguments: object) -> tuple[int, int]:
    command = [*start, sys.executable, "-c", OPEN, *map(str, arguments)]
    read, records = run_command(command, status=0, stdout=subprocess.PIPE).stdout.split()
    return int(read), int(records)


def entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def records(*arguments: object) -> int:
    return main(["records", *map(str, arguments)])


def test_only_the_first_process_searches_the_file(
    data: Path, read_only: list[str], cache: Path
) -> None:
    first, second = (open_by_process(read_only, data) for _ in range(2))
    assert first[1] == second[1] == COUNT
    assert first[0] >= SIZE and second[0] < SIZE // 4
    assert [path.name for path in data.parent.iterdir()] == [data.name]


@pytest.mark.system
def test_a_requested_format_has_its_own_entry(data: Path, cache: Path) -> None:
    (other := data.with_name("numbers")).write_bytes(data.read_bytes())
    reads = [open_by_process([], other, "lines")[0] for _ in range(2)]
    assert reads[1] < SIZE // 4 <= reads[0]


@pytest.mark.system
@pytest.mark.parametrize("action", ["index", "shuffle"])
def test_commands_keep_the_index_in_the_cache(
    action: str, data: Path, read_only: list[str], cache: Path, tmp_path: Path
) -> None:
    pario = [*read_only, sys.executable, "-m", "pario", "records"]
    source = data.with_name("a.tfrecord")
    assert records("convert", data, "--to", "tfrecord", "-o", source) == 0
    source.with_name("a.tfrecord.pidx").unlink(missing_ok=True)
    out = tmp_path / "out.tfrecord"
    for _ in range(2):
        words = ["index", source] if action == "index" else ["shuffle", source, "-o", out]
        done = run_command([*pario, *map(str, words)], status=0, stderr=subprocess.PIPE)
    if action == "index":
        assert str(cache) in done.stderr
    assert len(entries(cache)) >= 1 and not Path(f"{source}.pidx").exists()
    assert len(Dataset(source)) == COUNT


@pytest.mark.system
def test_of_processes_that_start_together_one_searches(data: Path, cache: Path) -> None:
    command = [sys.executable, "-c", OPEN, str(data)]
    with ExitStack() as stack:
        started = [
            stack.enter_context(start_command(command, stdout=subprocess.PIPE)) for _ in range(4)
        ]
        reads = [int(process.finish().stdout.split()[0]) for process in started]
    assert sum(read >= SIZE for read in reads) == 1 and len(entries(cache)) == 1


def test_a_changed_file_replaces_its_entry(data: Path, cache: Path) -> None:
    assert len(Dataset(data)) == COUNT and len(entries(cache)) == 1
    with data.open("ab") as file:
        file.write(b"one more\n")
    assert len(Dataset(data)) == COUNT + 1 and len(entries(cache)) == 1
    facts = data.stat()
    (other := data.with_name("other")).write_bytes(b"x" * (facts.st_size - 1) + b"\n")
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.replace(data)  # same name, size and time
    assert len(Dataset(data)) == 1 and len(entries(cache)) == 1


@pytest.mark.parametrize("damage", ["a flipped bit", "cut off", "empty"])
@pytest.mark.system
def test_a_damaged_entry_is_replaced(damage: str, data: Path, cache: Path) -> None:
    assert len(Dataset(data)) == COUNT
    (entry,) = entries(cache)
    image = bytearray(entry.read_bytes())
    image[len(image) // 2] ^= 1
    cut = {"a flipped bit": len(image), "cut off": len(image) // 2, "empty": 0}[damage]
    entry.write_bytes(image[:cut])
    lines = Dataset(data)
    assert [bytes(lines[number]) for number in range(0, COUNT, 999)] == [
        b"%063d" % number for number in range(0, COUNT, 999)
    ]
    assert open_by_process([], data)[0] < SIZE // 4


def test_a_cache_that_cannot_be_written_is_named_once(
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pario.records import dataset

    monkeypatch.setattr(dataset, "_said", False)
    monkeypatch.setenv("PARIO_CACHE", "/proc/none")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(Dataset(data)) == len(Dataset(data)) == COUNT
    (text,) = [str(one.message) for one in caught]
    assert "/proc/none" in text and "PARIO_CACHE" in text


def test_a_command_names_the_cache_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    command = [sys.executable, "-m", "pario", "records", "head", "a.txt"]
    done = run_command(command, cwd=tmp_path, env={**os.environ, "PARIO_CACHE": "/dev/null"})
    assert (done.returncode, done.stdout) == (0, "0 (1 B): a\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("pario records: indexes of records are not kept: mkdir /dev/null/")


def test_the_cache_is_bounded(data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(Dataset(data)) == COUNT
    (first,) = entries(cache)
    most = 2 * first.stat().st_size
    monkeypatch.setenv("PARIO_CACHE_SIZE", str(most))
    for number in range(4):
        shutil.copy(data, other := data.with_name(f"{number}.jsonl"))
        assert len(Dataset(other)) == COUNT
        assert sum(path.stat().st_size for path in entries(cache)) <= most
    assert first not in entries(cache) and len(entries(cache)) == 2


@pytest.mark.parametrize(
    ("variable", "place"), [("XDG_CACHE_HOME", "pario"), ("HOME", ".cache/pario")]
)
def test_the_usual_cache_directories_are_used(
    variable: str, place: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PARIO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "home"))
    assert len(Dataset(data)) == COUNT
    assert len(entries(tmp_path / "home" / place)) == 1


def test_an_index_beside_the_file_needs_no_cache(data: Path, cache: Path) -> None:
    assert records("index", data) == 0
    assert len(Dataset(data)) == COUNT and not cache.exists()
