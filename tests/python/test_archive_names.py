"""Packs and unpacks paths that are too long for a single system call."""

import os
import stat
from pathlib import Path

from pario.move.archive import Archive, pack
from tests.support.commands import run_command


def make_deep(root: Path, levels: int) -> Path:
    """Makes nested directories whose path is too long for a system call; the last one holds a hard
    link, a symbolic link, a pipe and a sparse file."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    try:
        for name, content in (("a", b"one"), ("n" * 255, b"two")):
            file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o640, dir_fd=here)
            os.write(file, content)
            os.close(file)
        file = os.open("sparse", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=here)
        os.truncate(file, 1 << 20)
        os.pwrite(file, b"end", (1 << 20) - 3)
        os.close(file)
        os.link("a", "link", src_dir_fd=here, dst_dir_fd=here)
        os.symlink("a", "soft", dir_fd=here)
        os.mkfifo("pipe", dir_fd=here)
    finally:
        os.close(here)
    return root


def deep_facts(root: Path) -> list[tuple[object, ...]]:
    """Lists the files below ``root`` with os.fwalk, which works at any depth."""
    found: list[tuple[object, ...]] = []
    for path, directories, files, descriptor in os.fwalk(root):
        for name in sorted(directories + files):
            facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            content: object = None
            if stat.S_ISREG(facts.st_mode):
                with open(
                    name,
                    "rb",
                    opener=lambda name, flags, at=descriptor: os.open(name, flags, dir_fd=at),
                ) as file:
                    content = file.read()
            found.append(
                (
                    path[len(str(root)) :],
                    name,
                    facts.st_mode,
                    facts.st_mtime_ns,
                    facts.st_nlink,
                    content,
                )
            )
    return found


def test_paths_longer_than_a_call_takes_are_packed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    tree = make_deep(tmp_path / "tree", 25)
    pack(tree, tmp_path / "out", shards=2)
    done = Archive(tmp_path / "out").unpack(tmp_path / "back")
    assert done.losses == ()
    assert deep_facts(tmp_path / "back") == deep_facts(tree)
    assert len(deep_facts(tree)) == 25 + 6
    name = "/".join(["d" * 200] * 25 + ["a"])
    assert Archive(tmp_path / "out").read(name) == b"one"
    for root in (tree, tmp_path / "back"):
        run_command(["rm", "-rf", root], status=0)
