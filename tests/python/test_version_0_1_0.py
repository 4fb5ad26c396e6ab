"""Files that pario 0.1.0 wrote can be read; test_checkpoint_format.py has its checkpoints."""

from __future__ import annotations

import os
import tarfile
from decimal import Decimal
from pathlib import Path

import pytest

from pario import records, settings
from pario.checkpoint import read_safetensors
from pario.cli import main
from pario.see.tables import read


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Unpacks the files, and makes their directory the current one."""
    with tarfile.open(Path(__file__).parent / "fixtures" / "version-0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
        for member in archive.getmembers():  # indexes of records know the nanoseconds of a change
            modified = int(Decimal(member.pax_headers.get("mtime", member.mtime)) * 10**9)
            os.utime(tmp_path / member.name, ns=(modified, modified), follow_symlinks=False)
    monkeypatch.chdir(tmp_path / "version-0.1.0")
    return Path()


def check_output(capsys, expected: str) -> None:
    output = capsys.readouterr()
    assert expected in output.out + output.err


def test_log_is_read(files):
    job = read([files / "run.pario"])
    rows: dict[str, list[tuple[int, ...]]] = {}
    for record in job.records:
        name = Path(job.path(int(record["file"]))).name
        if name in ("shared.dat", "small.dat"):
            counts = [int(record[key]) for key in ("writes", "bytes_written", "reads")]
            rows.setdefault(name, []).append(
                (int(record["process"]), int(record["layer"]), *counts)
            )
    assert rows == {
        "shared.dat": [(0, 0, 1, 8000, 0), (0, 2, 1, 4000, 0), (1, 0, 0, 0, 0), (1, 2, 1, 4000, 0)],
        "small.dat": [(0, 0, 200, 4000, 100)],
    }
    assert (job.ranks, len(job.mpiio), job.messages) == (2, 2, [])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["report", "run.pario"], "2 ranks"),
        (["advise", "run.pario", "-o", "advised.toml"], ""),
        (["compare", "run.pario", "run.pario"], ""),
        (["survey", "run.pario"], "1 run"),
        (["export", "run.pario", "--json", "-"], 'shared.dat"'),
        (["whatif", "run.pario"], "predicted"),
        (["replay", "run.pario", "--on", "."], "2 ranks"),
        (["ls", "tree.pack"], "sub/b.bin"),
        (["records", "stat", "lines.txt"], "100 records (lines)"),
        (["records", "verify", "lines.prec"], "100 records"),
        (["records", "verify", "fused.prec"], "100 records"),
        (["settings", "explain", "--with", "pario.toml", "x.dat"], "romio_cb_write"),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_commands_accept_files(files, capsys, command, expected):
    assert main(command) == 0
    check_output(capsys, expected)


def test_archive_is_unpacked(files):
    assert main(["unpack", "tree.pack", "-o", "tree"]) == 0
    tree = files / "tree"
    found = {path.relative_to(tree).as_posix() for path in tree.rglob("*")}
    assert found == {"a.txt", "link", "sub", "sub/b.bin"}
    assert (tree / "link").readlink() == Path("a.txt")
    assert (tree / "sub/b.bin").read_bytes() == bytes(range(256)) * 4


def test_subfiles_are_joined(files):
    assert main(["join", "subfiled.dat"]) == 0
    assert (files / "subfiled.dat").read_bytes() == (b"a" * 8 + b"b" * 8) * 500


@pytest.mark.parametrize("name", ["lines.txt", "lines.prec", "fused.prec"])
def test_records_are_read(files, name):
    data = records.Dataset(name)
    assert sorted(bytes(data[i]) for i in range(len(data))) == sorted(
        b"line %d" % i for i in range(100)
    )


def test_safetensors_are_read(files):
    assert read_safetensors("state.safetensors")["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_all_settings_are_accepted(files):
    assert settings.load(files / "pario.toml")
