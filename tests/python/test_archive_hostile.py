"""Hostile archives: impossible members are refused by name before any file is made."""

from __future__ import annotations

import os
import re
import stat
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pario.cli import main
from pario.move.archive import Archive, pack
from tests.support.commands import run_command

ROW = struct.Struct("<QQQQqIIIIBB6x")
FIELDS = "name offset stored size modified name_size shard header mode type sparse".split()
HEAD = struct.Struct("<QQQQII24x")
_PRIMES = (
    *(11400714785074694791, 14029467366897019727, 1609587929392839161),
    *(9650029242287828579, 2870177450012600261),
)
_WORD = 2**64 - 1


def _rotate(value: int, bits: int) -> int:
    value &= _WORD
    return (value << bits | value >> (64 - bits)) & _WORD


def _round(state: int, value: int) -> int:
    return _rotate(state + value * _PRIMES[1], 31) * _PRIMES[0] & _WORD


def xxh64(data: bytes, seed: int) -> int:
    """Returns the published xxHash64 of data of any length."""
    one, two, three, four, five = _PRIMES
    at, result = 0, seed + five
    if len(data) >= 32:
        states = [seed + one + two, seed + two, seed, seed - one]
        while at + 32 <= len(data):
            words = struct.unpack_from("<4Q", data, at)
            states = [_round(state, word) for state, word in zip(states, words, strict=True)]
            at += 32
        bits = (1, 7, 12, 18)
        result = sum(_rotate(state, bit) for state, bit in zip(states, bits, strict=True))
        for state in states:
            result = ((result ^ _round(0, state)) * one + four) & _WORD
    result += len(data)
    while at + 8 <= len(data):
        word = struct.unpack_from("<Q", data, at)[0]
        result, at = _rotate(result ^ _round(0, word), 27) * one + four & _WORD, at + 8
    if at + 4 <= len(data):
        word = struct.unpack_from("<I", data, at)[0]
        result, at = _rotate(result ^ word * one, 23) * two + three & _WORD, at + 4
    for byte in data[at:]:
        result = _rotate(result ^ byte * five, 11) * one & _WORD
    result &= _WORD
    result = (result ^ result >> 33) * two & _WORD
    result = (result ^ result >> 29) * three & _WORD
    return result ^ result >> 32


@dataclass
class Index:
    """The parts of an index, which write() puts together with a valid checksum."""

    rows: list[dict[str, int]]
    names: bytearray
    shards: int

    @classmethod
    def read(cls, path: Path) -> Index:
        data = path.read_bytes()
        _, members, names, _, shards, _ = HEAD.unpack_from(data)
        rows = [
            dict(zip(FIELDS, ROW.unpack_from(data, 64 + 64 * row), strict=True))
            for row in range(members)
        ]
        return cls(rows, bytearray(data[len(data) - names :]), shards)

    def write(self, path: Path) -> None:
        rows = b"".join(ROW.pack(*(row[name] for name in FIELDS)) for row in self.rows)
        total = xxh64(bytes(self.names), xxh64(rows, 0))
        head = HEAD.pack(
            0x314B4341504F4950, len(self.rows), len(self.names), total, self.shards, 64
        )
        path.write_bytes(head + rows + self.names)

    def row(self, name: bytes) -> dict[str, int]:
        for row in self.rows:
            if self.names[row["name"] : row["name"] + row["name_size"]] == name:
                return row
        raise KeyError(name)

    def rename(self, name: bytes, other: bytes) -> None:
        """Changes the name of a member to another name of the same length."""
        at = self.row(name)["name"]
        self.names[at : at + len(name)] = other


Change = Callable[[Index], object]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with the members ".", "aa", "bb" and "cc"."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("aa", "bb", "cc"):
        (tree / name).write_text(name)
    pack(tree, tmp_path / "out.pack")
    return tmp_path / "out.pack"


def change(archive: Path, edit: Change) -> None:
    index = Index.read(archive / "index")
    edit(index)
    index.write(archive / "index")


def edit(member: bytes, /, **values: int) -> Change:
    return lambda index: index.row(member).update(values)


def swap(index: Index) -> None:
    index.rows[1], index.rows[2] = index.rows[2], index.rows[1]


def share(index: Index) -> None:
    index.row(b"bb").update(offset=index.row(b"aa")["offset"])


HOSTILE = {
    "unknown type": (edit(b"bb", type=ord("Z")), r'"bb" has the type \'Z\' \(90\)'),
    "type of no letter": (edit(b"bb", type=0xC3), r'"bb" has the type \(195\)'),
    "old kind of file": (edit(b"bb", type=0), r'"bb" has the type \(0\)'),
    "same name": (lambda index: index.rename(b"bb", b"aa"), r'two members are "aa"'),
    "order": (swap, r'not in order at "aa"'),
    "no name": (edit(b"bb", name_size=0), r"member 2 has no name"),
    "name elsewhere": (edit(b"bb", name=2**63), r"member 2 has no name"),
    "shard": (edit(b"bb", shard=7), r'"bb" is in shard 7 of 1'),
    "size": (edit(b"bb", size=2**63), r'"bb" has a size of 9223372036854775808 bytes'),
    "size and bytes": (edit(b"bb", size=3), r'"bb" has a size of 3 bytes, but 2 are stored'),
    "bytes": (edit(b"bb", size=2**40, stored=2**40), r'"bb" is said to have .* behind the end'),
    "negative offset": (edit(b"bb", offset=2**64 - 512), r'"bb" is said to have .* behind'),
    "same bytes": (share, r"lies in the bytes of another member"),
    "no file": (edit(b"bb", type=ord("5")), r'"bb" is no file, but has 2 bytes'),
    "above": (lambda index: index.rename(b"aa", b".."), r'it has a member "\.\."'),
    "zero": (lambda index: index.rename(b"bb", b"b\0"), r'it has a member "b\\x00"'),
    "root": (lambda index: index.rename(b"aa", b"/a"), r'it has a member "/a"'),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_impossible_members_are_refused_by_name(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    edit, told = HOSTILE[case]
    change(archive, edit)
    assert main(["unpack", str(archive), "-o", str(tmp_path / "back")]) == 2
    assert re.search(told, capsys.readouterr().err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.pack", "tree"]


@pytest.mark.parametrize("case", HOSTILE)
def test_ls_shows_no_impossible_member_as_a_good_one(
    archive: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    change(archive, HOSTILE[case][0])
    status = main(["ls", "-l", str(archive)])
    shown = capsys.readouterr()
    assert "\0" not in shown.out + shown.err
    if case in ("above", "zero", "root"):  # names that only unpack rejects
        assert (status, len(shown.out.splitlines())) == (0, 4)
    else:
        assert status in (1, 2) and re.search(HOSTILE[case][1], shown.err)


def test_ls_states_that_the_index_is_verified(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ls", str(archive)]) == 0
    shown = capsys.readouterr()
    assert shown.out == ".\naa\nbb\ncc\n"
    assert shown.err == f"{archive}: 4 members in 1 shard, index verified\n"


def test_ls_lists_the_members_of_a_missing_shard_and_names_it(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (archive / "00000.tar.zst").unlink()
    assert main(["ls", str(archive)]) == 1
    shown = capsys.readouterr()
    assert shown.out == ".\naa\nbb\ncc\n"
    assert "00000.tar.zst" in shown.err and "not verified" in shown.err


def test_ls_refuses_an_index_with_a_wrong_checksum(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (archive / "index").read_bytes()
    (archive / "index").write_bytes(data[:-1] + b"!")
    assert main(["ls", str(archive)]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "checksum" in shown.err


def test_names_are_escaped_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("red\x1b[31m", "two\nlines", "tab\t", "back\x08\x7f", "left\u202eright"):
        (tree / name).touch()
    pack(tree, tmp_path / "out")
    assert main(["ls", "-l", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == 6
    assert all(line.isprintable() for line in shown.splitlines())
    change(tmp_path / "out", edit(b"red\x1b[31m", type=ord("Z")))
    assert main(["unpack", str(tmp_path / "out"), "-o", str(tmp_path / "back")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_an_archive_that_is_too_large_is_refused(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["unpack", str(archive), "-o", str(tmp_path / "back"), "--max-size"]
    assert main([*words, "5"]) == 2
    assert "more than the allowed 5 bytes in all" in capsys.readouterr().err
    assert not (tmp_path / "back").exists()
    assert main([*words, "6"]) == 0


def test_devices_and_pipes_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    os.link(tree / "pipe", tree / "same pipe")
    (tree / "file").write_text("1")
    (tree / "link").symlink_to("file")
    pack(tree, tmp_path / "out")
    words = ["unpack", str(tmp_path / "out"), "-o", str(tmp_path / "back"), "--no-special"]
    assert main(words) == 0
    assert "2 devices and pipes left out" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == ["file", "link"]


def test_permissions_can_be_those_of_new_files(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "open").mkdir(parents=True)
    (tree / "tool").write_text("1")
    os.mkfifo(tree / "pipe")
    for name, mode in (("tool", 0o6777), ("open", 0o3777), ("pipe", 0o666), (".", 0o777)):
        (tree / name).chmod(mode)
    pack(tree, tmp_path / "out")
    unpack = [sys.executable, "-m", "pario", "unpack", tmp_path / "out", "-o", tmp_path / "back"]
    run_command([*unpack, "--no-same-permissions"], status=0, umask=0o027)
    modes = {
        name: stat.S_IMODE((tmp_path / "back" / name).lstat().st_mode)
        for name in ("tool", "open", "pipe", ".")
    }
    assert modes == {"tool": 0o750, "open": 0o750, "pipe": 0o640, ".": 0o750}


MEGABYTES = 256
PRINT = """
import pathlib, re, sys
from pario.cli import main
status = main(sys.argv[1:])
# Not ru_maxrss, which counts the process that this one was forked from.
status_text = pathlib.Path("/proc/self/status").read_text()
print(re.search("VmHWM:.*?([0-9]+) kB", status_text)[1], file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.system
@pytest.mark.parametrize("holes", [False, True], ids=["bytes", "holes"])
def test_a_large_file_is_printed_in_little_memory(tmp_path: Path, holes: bool) -> None:
    size = MEGABYTES << 20
    (tmp_path / "tree").mkdir()
    with (tmp_path / "tree" / "large").open("wb") as file:
        if holes:
            file.truncate(size)
        else:
            os.posix_fallocate(file.fileno(), 0, size)
    pack(tmp_path / "tree", tmp_path / "out")
    with (tmp_path / "printed").open("wb") as printed:
        words = [sys.executable, "-c", PRINT, "unpack", tmp_path / "out", "large", "--stdout"]
        done = run_command(words, status=0, stdout=printed)
    assert (tmp_path / "printed").stat().st_size == size
    assert int(done.stderr) << 10 < size / 2


def test_a_file_too_large_for_the_memory_is_an_error(archive: Path) -> None:
    change(archive, edit(b"bb", size=2**62, sparse=1))
    with pytest.raises(OSError, match="differs from the index"):
        Archive(archive).read("bb")


def test_the_hash_of_these_tests_is_that_of_the_index(archive: Path) -> None:
    before = (archive / "index").read_bytes()
    change(archive, lambda _: None)
    assert (archive / "index").read_bytes() == before
