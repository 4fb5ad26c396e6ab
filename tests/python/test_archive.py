"""Archives of directories: nothing is lost, ordinary tar reads the shards, and single members can
be read."""

import contextlib
import os
import random
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pario.cli import main
from pario.errors import ParioError
from pario.move.archive import Archive, pack
from pario.move.archive.subdirs import Spreading
from tests.support.commands import run_command

needs_tar = pytest.mark.skipif(
    not (shutil.which("tar") and shutil.which("zstd")), reason="tar or zstd is not installed"
)


def facts_of(root: Path) -> dict[str, tuple[object, ...]]:
    """Returns the facts that an archive must preserve, by name."""
    found = {}
    first: dict[int, str] = {}
    for path in sorted([root, *root.rglob("*")]):
        facts = path.lstat()
        kind = stat.S_IFMT(facts.st_mode)
        content = (
            path.readlink()
            if stat.S_ISLNK(kind)
            else path.read_bytes()
            if stat.S_ISREG(kind)
            else None
        )
        name = str(path.relative_to(root))
        link = (
            first.setdefault(facts.st_ino, name)
            if facts.st_nlink > 1 and not stat.S_ISDIR(kind)
            else None
        )
        found[name] = (
            facts.st_mode,
            facts.st_mtime_ns,
            facts.st_uid,
            facts.st_gid,
            content,
            link,
            attributes_of(path),
        )
    return found


def attributes_of(path: Path) -> dict[str, bytes]:
    with contextlib.suppress(OSError):
        return {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }
    return {}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Makes a directory with one file of each kind."""
    root = tmp_path / "tree"
    (root / "deep" / ("long" * 40) / "empty").mkdir(parents=True)
    (root / "text").write_text("hello")
    (root / "nothing").touch()
    (root / "deep" / ("long" * 40) / ("name" * 30)).write_bytes(os.urandom(5000))
    (root / os.fsdecode(b"not utf-8 \xff")).write_bytes(b"1")
    (root / "large").write_bytes(random.Random(1).randbytes(9_000_000))
    with (root / "sparse").open("wb") as file:
        file.seek(20 << 20)
        file.write(b"data")
        file.truncate(40 << 20)
    (root / "all holes").touch()
    os.truncate(root / "all holes", 1 << 20)
    (root / "link").symlink_to("text")
    (root / "dangling").symlink_to("x" * 200)
    os.link(root / "text", root / "deep" / "a second name")
    os.mkfifo(root / "pipe")
    (root / "text").chmod(0o4751)
    with contextlib.suppress(OSError):
        os.setxattr(root / "large", "user.note", b"\x00binary\n")
    for number, path in enumerate(sorted(root.rglob("*"))):
        os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number), follow_symlinks=False)
    os.utime(root / "nothing", ns=(0, -1_500_000_000))
    (root / "deep").chmod(0o550)
    os.utime(root / "deep", ns=(0, 5))
    return root


@pytest.mark.system
@pytest.mark.parametrize("options", [{}, {"shards": 5}, {"shard_size": 1 << 20, "workers": 1}])
def test_nothing_is_lost(tree: Path, tmp_path: Path, options: dict[str, int]) -> None:
    done = pack(tree, tmp_path / "out", **options)
    Archive(tmp_path / "out").unpack(tmp_path / "back")
    assert facts_of(tmp_path / "back") == facts_of(tree)
    assert done.members == len(facts_of(tree))
    assert (tmp_path / "back" / "sparse").stat().st_blocks * 512 < 1 << 20


@needs_tar
def test_ordinary_tar_reads_the_shards(tree: Path, tmp_path: Path) -> None:
    pack(tree, tmp_path / "out", shards=3)
    (tmp_path / "back").mkdir()
    for shard in sorted((tmp_path / "out").glob("*.tar.zst")):
        run_command(["tar", "--zstd", "--xattrs", "-xpf", shard, "-C", tmp_path / "back"], status=0)
    assert facts_of(tmp_path / "back") == facts_of(tree)


def test_members_are_read_alone(tree: Path, tmp_path: Path) -> None:
    pack(tree, tmp_path / "out", shards=2)
    archive = Archive(tmp_path / "out")
    for name, facts in facts_of(tree).items():
        assert name in archive
        if isinstance(facts[4], bytes):
            assert archive.read(name) == facts[4]
    with pytest.raises(ParioError, match="no member nowhere"):
        archive.read("nowhere")
    with pytest.raises(ParioError, match=r"deep in .* is no regular file"):
        archive.read("deep")


def test_a_part_is_unpacked(
    tree: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["pack", str(tree), "-o", str(tmp_path / "out.pack")]) == 0
    assert (
        main(
            [
                "unpack",
                str(tmp_path / "out.pack"),
                "deep/" + "long" * 40,
                "large",
                "-o",
                str(tmp_path / "part"),
            ]
        )
        == 0
    )
    everything = facts_of(tree)
    part = facts_of(tmp_path / "part")
    assert sorted(part) == [
        ".",
        "deep",
        "deep/" + "long" * 40,
        f"deep/{'long' * 40}/empty",
        f"deep/{'long' * 40}/{'name' * 30}",
        "large",
    ]
    assert part["large"] == everything["large"]
    capfdbinary.readouterr()
    assert main(["unpack", str(tmp_path / "out.pack"), "text", "--stdout"]) == 0
    assert capfdbinary.readouterr().out == b"hello"


def test_a_hard_link_alone_is_an_error_that_names_the_missing_member(
    tree: Path, tmp_path: Path
) -> None:
    pack(tree, tmp_path / "out")
    with pytest.raises(OSError, match="a hard link to deep/a second name: unpack that, too"):
        Archive(tmp_path / "out").unpack(tmp_path / "back", ["text"])
    assert not (tmp_path / "back").exists()


def test_ls_shows_members(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack(tree, tmp_path / "out")
    assert main(["ls", str(tmp_path / "out"), "tex*", "not *"]) == 0
    assert capsys.readouterr().out == "not utf-8 \\xff\ntext\n"
    assert main(["ls", "-l", str(tmp_path / "out"), "deep/a second name"]) == 0
    assert capsys.readouterr().out.startswith("-rwsr-x--x             5  ")


def test_an_output_that_exists_stays(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    assert main(["pack", str(tree), "-o", str(tmp_path / "out")]) == 2
    assert "out: EEXIST" in capsys.readouterr().err
    assert main(["pack", str(tree), "-o", str(tree / "within")]) == 2
    assert "is within" in capsys.readouterr().err


def test_a_failure_names_the_file_and_removes_the_output(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    with pytest.raises(OSError, match="missing"):
        pack(tmp_path / "missing", tmp_path / "out")
    pack(tmp_path / "tree", tmp_path / "out", shards=2)
    shard = tmp_path / "out" / "00000.tar.zst"
    shard.write_bytes(shard.read_bytes()[:-3])
    with pytest.raises(OSError, match=r"00000\.tar\.zst: EIO.*cut off"):
        Archive(tmp_path / "out").unpack(tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tree"]


def test_damaged_bytes_are_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(random.Random(2).randbytes(100_000))
    pack(tmp_path / "tree", tmp_path / "out")
    shard = tmp_path / "out" / "00000.tar.zst"
    data = bytearray(shard.read_bytes())
    data[50_000] ^= 1
    shard.write_bytes(data)
    with pytest.raises(OSError, match=r"00000\.tar\.zst"):
        Archive(tmp_path / "out").unpack(tmp_path / "back")
    index = tmp_path / "out" / "index"
    index.write_bytes(index.read_bytes()[:-1] + b"!")
    with pytest.raises(OSError, match=r"index.*checksum"):
        Archive(tmp_path / "out").unpack(tmp_path / "back")


def test_an_index_that_names_other_bytes_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    for name in "ab":
        (tmp_path / "two" / name).write_text(name)
    pack(tmp_path / "two", tmp_path / "out")
    index = bytearray((tmp_path / "out" / "index").read_bytes())
    rows = [
        64 + 64 * number + 8 for number in (1, 2)
    ]  # the offsets of a and b; the directory's row comes first
    first, second = (bytes(index[at : at + 8]) for at in rows)
    index[rows[0] : rows[0] + 8], index[rows[1] : rows[1] + 8] = second, first
    (tmp_path / "out" / "index").write_bytes(index)
    with pytest.raises(OSError, match="differs from the index"):
        Archive(tmp_path / "out").read("a")


def test_a_directory_may_be_named_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_text("1")
    (tmp_path / "link").symlink_to("tree")
    assert main(["pack", str(tmp_path / "link") + "/", "-o", str(tmp_path / "out")]) == 0
    assert Archive(tmp_path / "out").read("file") == b"1"


@pytest.mark.system
def test_stale_files_of_a_killed_pack_are_removed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(2000):
        (tmp_path / "tree" / str(number)).write_bytes(os.urandom(4000))
    code = (
        "import os, sys; from pario.move.archive import pack; pack(sys.argv[1], sys.argv[2],"
        " level=19, show=lambda *_: os.kill(os.getpid(), 9))"
    )
    killed = run_command([sys.executable, "-c", code, tmp_path / "tree", tmp_path / "out"])
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    pack(tmp_path / "tree", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tree"]
    assert len(Archive(tmp_path / "out")) == 2001


@pytest.mark.system
def test_stale_files_of_a_killed_unpack_are_removed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(3000):
        (tmp_path / "tree" / str(number)).write_bytes(b"1" * 4000)
    pack(tmp_path / "tree", tmp_path / "out")
    code = (
        "import os, sys; from pario.move.archive import"
        " Archive;Archive(sys.argv[1]).unpack(sys.argv[2], workers=1, show=lambda *_:"
        " os.kill(os.getpid(), 9))"
    )
    killed = run_command([sys.executable, "-c", code, tmp_path / "out", tmp_path / "back"])
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "back").exists()
    Archive(tmp_path / "out").unpack(tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "out", "tree"]
    assert facts_of(tmp_path / "back") == facts_of(tmp_path / "tree")


def test_a_private_directory_stays_private(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "within").mkdir(parents=True)
    for path in (tree, tree / "within"):
        path.chmod(0o700)
    pack(tree, tmp_path / "out")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o2777)
    Archive(tmp_path / "out").unpack(tmp_path / "shared" / "back")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "shared").rglob("*")] == [
        0o700,
        0o700,
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone gives files away")
def test_the_packed_group_is_restored_and_not_the_directorys(tmp_path: Path) -> None:
    tree, shared = tmp_path / "tree", tmp_path / "shared"
    for directory in (tree, shared):
        directory.mkdir()
    (tree / "file").write_text("1")
    for path in (tree, tree / "file"):
        os.chown(path, 0, 0)
    os.chown(shared, 0, 12345)
    shared.chmod(0o2775)
    pack(tree, tmp_path / "out")
    Archive(tmp_path / "out").unpack(shared / "back")
    assert [path.stat().st_gid for path in (shared / "back", shared / "back" / "file")] == [0, 0]


def default_acl(*permissions: int) -> bytes:
    """Makes a default ACL of the owner, the group and others in the kernel's format."""
    entries = (
        struct.pack("<HHI", tag, allowed, 0xFFFFFFFF)
        for tag, allowed in zip((0x01, 0x04, 0x20), permissions, strict=True)
    )
    return struct.pack("<I", 2) + b"".join(entries)


def test_packed_permissions_are_restored_under_any_default_permissions_of_a_directory(
    tmp_path: Path,
) -> None:
    tree, shared = tmp_path / "tree", tmp_path / "shared"
    for directory in (tree, shared):
        directory.mkdir()
    for name in ("small", "large"):
        (tree / name).write_bytes(b"1" * (5_000_000 if name == "large" else 1))
        (tree / name).chmod(0o644)
    pack(tree, tmp_path / "out")
    try:
        os.setxattr(shared, "system.posix_acl_default", default_acl(7, 7, 0))
    except OSError:
        pytest.skip("no access control lists here")
    Archive(tmp_path / "out").unpack(shared / "back")
    assert [
        stat.S_IMODE((shared / "back" / name).stat().st_mode) for name in ("small", "large")
    ] == [0o644, 0o644]


FULL = """
import resource, signal, sys
from pario.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.system
def test_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(3):
        (tmp_path / "tree" / str(number)).write_bytes(random.Random(number).randbytes(500_000))
    pack(tmp_path / "tree", tmp_path / "out")
    for words in (
        ["pack", tmp_path / "tree", "-o", tmp_path / "new"],
        ["unpack", tmp_path / "out", "-o", tmp_path / "new"],
    ):
        done = run_command([sys.executable, "-c", FULL, *words])
        assert done.returncode == 2
        assert "EFBIG" in done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tree"]


def test_sockets_are_left_out_and_names_may_have_any_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in (b"a\nline", b"tab\t", b"\xff\xfe", b" ", b"-x", b"n" * 255, b"back\\slash"):
        (tree / os.fsdecode(name)).write_bytes(name)
    monkeypatch.chdir(tree)  # paths of sockets have to be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        pack(tree, tmp_path / "out", shards=3)
    (tree / "s").unlink()
    os.utime(tree, ns=(0, 7))
    Archive(tmp_path / "out").unpack(tmp_path / "back")
    os.utime(tmp_path / "back", ns=(0, 7))
    assert facts_of(tmp_path / "back") == facts_of(tree)


def test_a_file_that_changes_while_it_is_packed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tree").mkdir()
    busy = tmp_path / "tree" / "busy"
    busy.write_bytes(bytes(50_000_000))
    is_over = threading.Event()

    def change() -> None:
        while not is_over.wait(0.001):
            os.utime(busy)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        assert main(["pack", str(tmp_path / "tree"), "-o", str(tmp_path / "out")]) == 2
    finally:
        is_over.set()
        changer.join()
    expected = f"pario pack: read {busy}: it changed while it was packed\n"
    assert capsys.readouterr().err == expected


@pytest.mark.system
def test_a_large_file_is_unpacked_by_several_threads(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "large").write_bytes(random.Random(4).randbytes(10_000_000) * 3 + b"end")
    (tmp_path / "tree" / "large").chmod(0o400)
    (tmp_path / "tree" / "small").write_bytes(b"1")
    pack(tmp_path / "tree", tmp_path / "out")
    Archive(tmp_path / "out").unpack(tmp_path / "back", workers=5)
    assert facts_of(tmp_path / "back") == facts_of(tmp_path / "tree")


@pytest.mark.system
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"),
    reason="needs root, and setpriv to be less than that",
)
def test_members_that_this_user_cannot_create_are_counted(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "tool").write_text("1")
    os.chown(tree / "tool", 12345, 12345)
    (tree / "tool").chmod(0o4755)
    try:
        os.mknod(tree / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("root may not make devices here")
    pack(tree, tmp_path / "out")

    def unpack(*words: str) -> subprocess.CompletedProcess[str]:
        less = ["setpriv", "--bounding-set=-mknod,-chown", sys.executable, "-m", "pario"]
        command = [*less, "unpack", str(tmp_path / "out"), "-o", str(tmp_path / "back"), *words]
        return run_command(command)

    done = unpack("--strict")
    assert done.returncode == 2
    assert "EPERM" in done.stderr
    assert not (tmp_path / "back").exists()
    done = unpack()
    assert done.returncode == 1
    assert "lost: owner of 1 member; the first: chown" in done.stderr
    assert "lost: devices of 1 member; the first: mknod" in done.stderr
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["tool"]
    assert (
        tmp_path / "back" / "tool"
        # a file of another user must not run as this user: no set-user-ID bit
    ).stat().st_mode & 0o7777 == 0o755


def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(b"1")

    def interrupt(_done: int, _whole: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(tmp_path / "tree", tmp_path / "out", show=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


NAMES = st.binary(min_size=1, max_size=130).filter(
    lambda name: not {b"/"[0], 0} & set(name) and name not in (b".", b"..")
)
FILES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    st.tuples(st.integers(0, 3_000_000), st.integers(0, 0o777), st.integers(-(10**18), 4 * 10**18)),
    max_size=12,
)


@pytest.mark.system
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(files=FILES, shards=st.integers(1, 4))
def test_any_tree_survives(
    files: dict[tuple[bytes, ...], tuple[int, int, int]],
    shards: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("any")
    root = place / "tree"
    root.mkdir()
    for parts, (size, mode, modified) in files.items():
        path = root.joinpath(*map(os.fsdecode, parts))
        with contextlib.suppress(
            OSError
        ):  # the name is a directory in one file's path and a file in another's, or too long
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(random.Random(size).randbytes(size))
            path.chmod(mode | 0o400)
            os.utime(path, ns=(0, modified))
    pack(root, place / "out", shards=shards)
    Archive(place / "out").unpack(place / "back")
    assert facts_of(place / "back") == facts_of(root)
    shutil.rmtree(place)


def test_a_reader_that_closes_the_list_early_causes_no_error(tree: Path, tmp_path: Path) -> None:
    pack(tree, tmp_path / "out")
    reads, writes = os.pipe()
    os.close(reads)
    listed = [sys.executable, "-m", "pario", "ls", str(tmp_path / "out")]
    done = run_command(listed, stdout=writes)
    os.close(writes)
    assert done.returncode == 0
    assert done.stderr == f"{tmp_path}/out: 15 members in 1 shard, index verified\n"


@pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not installed")
def test_shards_that_were_sent_in_part_are_completed(tree: Path, tmp_path: Path) -> None:
    pack(tree, tmp_path / "out", shards=2)
    there = tmp_path / "there"
    there.mkdir()
    whole = (tmp_path / "out" / "00000.tar.zst").read_bytes()
    (there / "00000.tar.zst").write_bytes(whole[: len(whole) // 2])
    run_command(["rsync", "-a", "--append-verify", f"{tmp_path / 'out'}/", f"{there}/"], status=0)
    Archive(there).unpack(tmp_path / "back")
    assert facts_of(tmp_path / "back") == facts_of(tree)


def test_a_flat_directory_is_divided_into_subdirectories_and_joined(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    for number in range(100):
        (flat / f"f{number}").write_text(str(number))
    assert main(["pack", str(flat), "--subdirs", "12"]) == 0
    assert (flat / Spreading(12, "hash").place_of("f7") / "f7").read_text() == "7"
    (flat / "later").write_text("later")
    assert main(["pack", str(flat), "--subdirs", "12"]) == 0
    assert sorted(path.name for path in flat.glob("*")) == [
        ".pario-subdirs",
        *(f"{number:02d}" for number in range(12)),
    ]
    assert main(["unpack", str(flat)]) == 0
    assert {path.name: path.read_text() for path in flat.iterdir()} == {
        f"f{n}": str(n) for n in range(100)
    } | {"later": "later"}


def test_an_interrupted_even_spread_is_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(100):
        (tmp_path / f"f{number:03}").touch()
    pack_evenly = ["pack", str(tmp_path), "--subdirs", "4", "--by", "even"]
    assert main(pack_evenly) == 0
    for place, name in (("0", "f000"), ("2", "f060"), ("3", "f099")):
        (tmp_path / place / name).rename(tmp_path / name)
    assert main(pack_evenly) == 0
    assert [len(list((tmp_path / str(place)).iterdir())) for place in range(4)] == [25] * 4
    for number in range(30):
        (tmp_path / f"a{number}").touch()
    assert main(pack_evenly) == 2
    assert "is spread evenly already" in capsys.readouterr().err


def test_an_even_spread_is_even(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"f{number:02d}").touch()
    assert main(["pack", str(tmp_path), "--subdirs", "4", "--by", "even"]) == 0
    assert [len(list((tmp_path / str(number)).iterdir())) for number in range(4)] == [
        25,
        25,
        25,
        25,
    ]
    assert (tmp_path / "3" / "f75").exists()


def test_a_file_named_like_a_subdirectory_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):
        (tmp_path / str(number)).touch()
    assert main(["pack", str(tmp_path), "--subdirs", "4"]) == 2
    assert "has a file 0" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == list("012345")


def test_gathering_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text("old")
    main(["pack", str(tmp_path), "--subdirs", "2"])
    (tmp_path / "a").write_text("new")
    assert main(["unpack", str(tmp_path)]) == 2
    assert "there is a file of this name" in capsys.readouterr().err
    assert (tmp_path / "a").read_text() == "new"


def test_late_times_are_kept_up_to_the_latest_of_64_bits(tmp_path):
    tree, year_2250, year_2300 = tmp_path / "tree", 8_835_955_200, 10_413_792_000
    tree.mkdir()
    times = {"early": -631_152_000, "2250": year_2250, "late": year_2300}
    for name, time in times.items():
        (tree / name).touch()
        os.utime(tree / name, (time, time))
    if (tree / "late").stat().st_mtime != year_2300:
        pytest.skip("the file system has no such times")
    assert main(["pack", str(tree), "-o", str(tmp_path / "pack")]) == 0
    assert main(["unpack", str(tmp_path / "pack"), "-o", str(tmp_path / "back")]) == 0
    found = {name: int((tmp_path / "back" / name).stat().st_mtime) for name in times}
    assert found == times | {"late": (2**63 - 1) // 10**9 - 1}
