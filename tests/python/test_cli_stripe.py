"""``pario fs`` and ``pario stripe`` on a file system without stripes, and checks of their
arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pario.cli import main
from pario.fix.stripe import filesystem
from pario.fix.stripe.filesystem import facts_of
from tests.python.jobs import add_record, make_job, set_layout


def run_stripe(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    assert main(["stripe", *map(str, arguments)]) == status
    captured = capsys.readouterr()
    return captured.err if status else captured.out


def test_fs_prints_kind_mount_and_free_space(capsys, tmp_path):
    assert main(["fs", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"{tmp_path}: ")
    assert all(
        f"\n  {word} " in page for word in ("mount", "options", "blocks", "room", "pario can")
    )


def test_fs_as_json(capsys, tmp_path):
    assert main(["fs", "--json", str(tmp_path), "/proc"]) == 0
    here, proc = json.loads(capsys.readouterr().out)
    assert (
        here["mount"]["point"] == mount_point(tmp_path)
        and here["total"] > here["free"] > 0
        and here["block"] == tmp_path.stat().st_blksize
    )
    assert proc["mount"]["type"] == "proc" and not proc["stripes"]["settable"]


def mount_point(path: Path) -> str:
    return str(next(above for above in (path, *path.parents) if above.is_mount()))


def test_facts_of_a_new_file_are_of_its_directory(tmp_path):
    assert facts_of(tmp_path / "new").path == str(tmp_path)


def test_fs_names_the_calls_of_lustre_that_pass_the_page_cache_by(capsys, tmp_path, monkeypatch):
    mount = tmp_path / "llite" / "scratch-ffff9c0d"
    mount.mkdir(parents=True)
    for name, value in (("", 1), ("_write_threshold_bytes", 2 << 20), ("_read_threshold_bytes", 0)):
        (mount / f"hybrid_io{name}").write_text(f"{value}\n")
    stripes = replace(filesystem.stripes_of(tmp_path), kind="lustre")
    monkeypatch.setattr(filesystem, "stripes_of", lambda place: stripes)
    monkeypatch.setattr(filesystem, "LUSTRE_MOUNTS", str(mount.parent))
    assert main(["fs", str(tmp_path)]) == 0
    assert "\n  direct      writes from 2 MiB pass the page cache by (hybrid I/O)\n" in (
        capsys.readouterr().out
    )


def test_fs_of_a_missing_file_is_an_error(capsys, tmp_path):
    assert main(["fs", str(tmp_path / "new")]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/new: no such file or directory; expected an existing file" in error


def test_fs_of_nowhere_is_an_error(capsys):
    assert main(["fs", "/nowhere/at/all"]) == 2
    assert "/nowhere" in capsys.readouterr().err


def test_files_without_stripes_are_shown_as_such(capsys, tmp_path):
    assert "no stripes" in run_stripe(capsys, "show", tmp_path)
    (told,) = json.loads(run_stripe(capsys, "show", "--json", tmp_path))
    assert told["directory"] and told["parts"] == []


def test_stripes_that_cannot_be_set_leave_no_file(capsys, tmp_path):
    assert "has no stripes that can be set" in run_stripe(
        capsys, "set", "--count", "4", tmp_path / "new", status=2
    )
    assert "has no stripes that can be set" in run_stripe(
        capsys, "set", "--count", "4", tmp_path, status=2
    )
    assert "has no stripes that can be set" in run_stripe(
        capsys, "set", "--inherit", tmp_path, status=2
    )
    assert list(tmp_path.iterdir()) == []


def test_files_without_stripes_are_not_copied(capsys, tmp_path):
    (tmp_path / "data").write_bytes(b"as it was")
    assert "has no stripes that can be set" in run_stripe(
        capsys, "restripe", "--count", "4", tmp_path / "data", status=2
    )
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [
        ("data", b"as it was")
    ]


def test_discarding_nothing(capsys, tmp_path):
    (tmp_path / "data").touch()
    assert "nothing was left" in run_stripe(capsys, "restripe", "--discard", tmp_path / "data")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "nothing is asked for"),
        (["--size", "100K"], "multiple of 64 KiB"),
        (["--targets", "0,1", "--count", "3"], "leave out --count"),
        (["--part", "end:4", "--count", "3"], "leave out --count"),
        (["--part", "64M:4"], "last part must reach to the end"),
        (["--part", "64M:4", "--part", "32M:4", "--part", "end:1"], "one after the other"),
        (["--part", "100K:4", "--part", "end:1"], "multiple of 64 KiB"),
    ],
)
def test_impossible_layouts(options, text, capsys, tmp_path):
    assert text in run_stripe(capsys, "set", *options, tmp_path / "new", status=2)


@pytest.mark.parametrize(
    "options",
    [
        ["--count", "0"],
        ["--count", "many"],
        ["--size", "4X"],
        ["--targets", "0,x"],
        ["--part", "64M"],
    ],
)
def test_unparsable_values(options, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["stripe", "set", *options, str(tmp_path / "new")])
    assert "expected" in capsys.readouterr().err


def test_advice_has_a_reason_and_the_commands(capsys, tmp_path):
    text = run_stripe(
        capsys,
        "advise",
        "--size",
        "189G",
        "--ranks",
        "7680",
        "--kind",
        "lustre",
        "--targets",
        "300",
        tmp_path / "chk",
    )
    assert "80 stripes of 4 MiB" in text and "because files of more than 100 GB" in text
    assert f"$ lfs setstripe -c 80 -S 4M {tmp_path}/chk" in text
    assert f"$ pario stripe set --count 80 --size 4M {tmp_path}/chk" in text
    assert "--hint striping_factor=80 --hint striping_unit=4M" in text


def test_advice_without_settable_stripes_states_it(capsys, tmp_path):
    assert "no stripes that can be set: nothing to do" in run_stripe(
        capsys, "advise", "--size", "1G", tmp_path / "chk"
    )


def test_advice_as_json(capsys, tmp_path):
    told = json.loads(
        run_stripe(
            capsys,
            "advise",
            "--json",
            "--size",
            "1G",
            "--writers",
            "64",
            "--kind",
            "ceph",
            tmp_path,
        )
    )
    assert told["choice"]["rule"] == "shared" and told["choice"]["count"] == 64
    assert told["commands"][0].startswith("setfattr -n ceph.dir.layout")


def test_advice_needs_a_size_or_a_log(capsys, tmp_path):
    assert "--size" in run_stripe(capsys, "advise", tmp_path / "chk", status=2)


def log_of(monkeypatch: pytest.MonkeyPatch, layouts: bool) -> None:
    job = make_job(ranks=8)
    add_record(job, range(8), "/scratch/out.h5", bytes_written=10**9, end_written=8 * 10**9)
    add_record(job, 0, "/scratch/log", bytes_written=1000, end_written=1000)
    if layouts:
        set_layout(job, "/scratch/out.h5", 1 << 20, [3])
        set_layout(job, "/scratch/log", 1 << 20, [3])
    monkeypatch.setattr("pario.see.tables.read", lambda logs: job)


def test_advice_on_a_log_is_a_table_and_commands(capsys, tmp_path, monkeypatch):
    log_of(monkeypatch, layouts=True)
    lines = run_stripe(capsys, "advise", tmp_path).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["File", "size", "processes", "stripes", "should", "be", "of", "rule"],
        ["/scratch/out.h5", "8.00", "GB", "8", "1", "8", "4", "MiB", "shared"],
        ["/scratch/log", "1.00", "kB", "1", "1", "1", "1", "MiB", "small"],
    ]
    assert lines[-1] == "  $ lfs setstripe -c 8 -S 4M /scratch"


def test_advice_on_a_log_without_layouts_asks_for_the_kind(capsys, tmp_path, monkeypatch):
    log_of(monkeypatch, layouts=False)
    assert "--kind lustre" in run_stripe(capsys, "advise", tmp_path)
    assert "ceph.dir.layout" in run_stripe(capsys, "advise", "--kind", "ceph", tmp_path)
