"""Some members of an archive: missing shards of others, and usable directories above members."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pario.cli import main
from pario.move.archive import Archive, pack
from tests.support.commands import run_command


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """An archive of two shards with one large file each, without the shard of b/g."""
    tree = tmp_path / "tree"
    for name, letter in (("a/f", b"f"), ("b/g", b"g")):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_bytes(letter * 100_000)
    (tree / "b").chmod(0o750)
    pack(tree, tmp_path / "tree.pack", shards=2)
    archive = Archive(tmp_path / "tree.pack")
    assert [archive.member(name).shard for name in ("a/f", "b/g", "a", "b", ".")] == [0, 1, 1, 1, 1]
    (tmp_path / "tree.pack" / "00001.tar.zst").unlink()
    return tmp_path / "tree.pack"


def modes_of(root: Path) -> dict[str, int]:
    """The permissions of the directories at and below a path."""
    places = [root, *(path for path in root.rglob("*") if path.is_dir())]
    return {str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode) for path in places}


def test_a_member_needs_only_its_own_shard(halves: Path, tmp_path: Path) -> None:
    assert main(["unpack", str(halves), "a/f", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "a" / "f").read_bytes() == b"f" * 100_000


def test_the_members_of_a_missing_shard_are_counted(
    halves: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert main(["unpack", str(halves), "-o", str(output)]) == 1
    assert capsys.readouterr().err == (
        f"{output}: 1 member\n"
        f"lost: the shard of 4 members; the first: open {halves}/00001.tar.zst: ENOENT (No such"
        " file or directory)\n"
    )
    assert [path.name for path in output.rglob("*") if path.is_file()] == ["f"]
    assert modes_of(output) == {".": 0o755, "a": 0o755, "b": 0o750}


@pytest.mark.parametrize("words", [["--strict"], ["b/g"]])
def test_nothing_is_unpacked_without_a_needed_shard(
    halves: Path, tmp_path: Path, words: list[str]
) -> None:
    assert main(["unpack", str(halves), *words, "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "outer", "inner"), [([], 0o755, 0o570), (["--no-same-permissions"], 0o750, 0o550)]
)
@pytest.mark.system
def test_directories_above_a_member_have_the_packed_permissions(
    tmp_path: Path, options: list[str], outer: int, inner: int
) -> None:
    (tmp_path / "tree" / "d1" / "d2").mkdir(parents=True)
    (tmp_path / "tree" / "d1" / "d2" / "f").touch()
    (tmp_path / "tree" / "d1").chmod(0o755)
    (tmp_path / "tree" / "d1" / "d2").chmod(0o570)
    pack(tmp_path / "tree", tmp_path / "tree.pack")
    unpack = ["pario", "unpack", "tree.pack", "d1/d2/f", "-o", "out", *options]
    run_command(unpack, status=0, umask=0o027, cwd=tmp_path)
    assert modes_of(tmp_path / "out") == {".": 0o750, "d1": outer, "d1/d2": inner}
