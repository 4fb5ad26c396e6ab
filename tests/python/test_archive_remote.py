"""Archives on other hosts: complete or absent there, several transfers at a time, continued after a
kill."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pario.move.archive import Archive, pack
from pario.move.rsync import (
    HostPath,
    Missing,
    host_path,
    list_files,
    missing_files,
    transfer,
)
from tests.support.commands import run_command, start_command
from tests.support.processes import find_processes
from tests.support.waiting import wait_until

RSYNC = shutil.which("rsync")
SSHD = shutil.which("sshd", path="/usr/sbin:/sbin")
pytestmark = pytest.mark.skipif(not RSYNC, reason="rsync is not installed")
PARIO = [sys.executable, "-m", "pario"]
#: Bytes in each of four files that do not compress, and thus in each shard.
SIZE = 1 << 20


@dataclass
class Node:
    """A host called ``node``, which is this one; ``remote_shell`` starts its commands."""

    root: Path
    remote_shell: str
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *words: object, **options):
        return run_command([*PARIO, *words], env=self.variables(), cwd=self.root, **options)

    def variables(self) -> dict[str, str]:
        return {**os.environ, "RSYNC_RSH": self.remote_shell, **self.environment}

    def wrap_rsync(self, rate: int = 0, most: int = 4) -> Path:
        """Puts a wrapper before rsync that records each file and its bytes sent, and limits the
        rate of each (KiB/s); returns the record. It transfers ``most`` shards: those after them
        wait for the end of pario."""
        log, folder, begun = (self.root / name for name in ("rsync.log", "bin", "begun"))
        folder.mkdir(exist_ok=True)
        for file in (log, begun):
            file.unlink(missing_ok=True)
        write_script(
            folder / "rsync",
            f'case "$*" in *--list-only*) exec {RSYNC} "$@" ;; esac\n'
            f'case "$*" in *.tar.zst*) echo >> {begun} ;; esac\n'
            f'if [ -e {begun} ] && [ "$(wc -l < {begun})" -gt {most} ]; then\n'
            f"while kill -0 $PPID; do sleep 0.05; done; exit 1; fi\n"
            f"exec {RSYNC} --bwlimit={rate} --log-file={log} --log-file-format='FILE %n %b' \"$@\"",
        )
        self.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
        return log

    def tree(self) -> Path:
        tree = self.root / "tree"
        tree.mkdir()
        for number in range(4):
            (tree / f"f{number}").write_bytes(os.urandom(SIZE))
        (tree / "empty").mkdir()
        (tree / "link").symlink_to("f0")
        return tree

    def names(self, folder: str = "") -> list[str]:
        return sorted(path.name for path in (self.root / folder).iterdir())


def write_script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def bytes_sent(log: Path) -> dict[str, int]:
    """The files of a record of rsync, and their bytes."""
    found = re.findall(r"FILE (\S+) (\d+)", log.read_text())
    return {name: int(count) for name, count in found}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Starts remote commands by the shell, as ssh would on the host ``node``."""
    script = tmp_path / "rsh"
    write_script(
        script,
        '[ "$1" = node ] || { echo "ssh: Could not resolve hostname $1" >&2; exit 255; }\n'
        'shift; cd "${0%/*}/work/home"; export PATH=/usr/bin:/bin; exec sh -c "$*"',
    )
    (tmp_path / "work" / "home").mkdir(parents=True)
    return Node(tmp_path / "work", str(script))


@pytest.fixture
def ssh_node(tmp_path: Path) -> Node:
    """Starts remote commands by ssh, and for each a sshd of Debian with keys of its own."""
    if not SSHD or not shutil.which("ssh"):
        pytest.skip("openssh-server is not installed")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # as the service of the package makes it
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name]
        run_command(make, status=0)
    (keys / "sshd_config").write_text(
        f"HostKey {keys}/host\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {keys}/user.pub\nPidFile none\nPermitRootLogin yes\n"
    )
    (keys / "config").write_text(
        f"Host node\nIdentityFile {keys}/user\nLogLevel ERROR\n"
        f"ProxyCommand {SSHD} -i -f {keys}/sshd_config\n"
        f"StrictHostKeyChecking no\nUserKnownHostsFile {keys}/known\n"
    )
    (tmp_path / "work" / "home").mkdir(parents=True)
    return Node(tmp_path / "work", f"ssh -F {keys}/config")


def facts_of(tree: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        path.name: (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes(),
        )
        for path in tree.iterdir()
        if not path.is_dir()
    }


def start_until(node: Node, words: list[object], begun: Callable[[], bool]) -> None:
    """Starts pario, and kills it when a transfer has begun; waits for its programs to end."""
    command = [*PARIO, *words]
    with start_command(command, env=node.variables(), cwd=node.root) as running:
        wait_until(begun, "bytes arrive")
        os.kill(running.pid, signal.SIGKILL)
        running.wait_for_end()
        wait_until(lambda: not living(running.mark), "the programs of the command end")


def living(mark: str) -> list[str]:
    return [one.command for one in find_processes(mark=mark) if one.lives]


def count_arrived(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("0*.tar.zst"))


def check_pack_resumed(node: Node) -> None:
    tree = node.tree()
    home = node.root / "home"
    target = f"node:{home}/x.pack"
    log = node.wrap_rsync(rate=512, most=2)
    words = ["pack", tree, "-o", target, "--shards", 4, "--transfers", 2]
    start_until(node, words, lambda: count_arrived(home) > SIZE)
    assert not (home / "x.pack").exists()
    there = count_arrived(home)
    log = node.wrap_rsync()
    done = node.run(*words, status=0)
    sent = bytes_sent(log)
    assert SIZE / 2 < sum(sent.values()) <= 4 * SIZE + 200_000 - there
    assert (node.names("home"), ".tree.pario-transfer" in node.names()) == (["x.pack"], False)
    assert "7 members" in done.stderr and "4 shards" in done.stderr
    Archive(home / "x.pack").unpack(node.root / "back")
    assert facts_of(node.root / "back") == facts_of(tree)


def check_unpack_resumed(node: Node) -> None:
    tree = node.tree()
    pack(tree, node.root / "home" / "x.pack", shards=4)
    words = ["unpack", f"node:{node.root}/home/x.pack", "--transfers", 2]
    node.wrap_rsync(rate=512, most=2)
    start_until(node, words, lambda: count_arrived(node.root / ".x.pario-transfer") > SIZE)
    there = count_arrived(node.root / ".x.pario-transfer")
    log = node.wrap_rsync()
    assert node.run(*words, status=0).stderr == f"{node.root}/x: 7 members\n"
    assert SIZE / 2 < sum(bytes_sent(log).values()) <= 4 * SIZE + 200_000 - there
    assert facts_of(node.root / "x") == facts_of(tree)
    assert ".x.pario-transfer" not in node.names()


@pytest.mark.system
def test_a_killed_pack_continues(node: Node) -> None:
    check_pack_resumed(node)


@pytest.mark.system
def test_a_killed_unpack_continues(node: Node) -> None:
    check_unpack_resumed(node)


@pytest.mark.system
def test_a_killed_pack_continues_over_ssh(ssh_node: Node) -> None:
    check_pack_resumed(ssh_node)


@pytest.mark.exhaustive
def test_a_killed_unpack_continues_over_ssh(ssh_node: Node) -> None:
    check_unpack_resumed(ssh_node)


@pytest.mark.system
def test_shards_are_transferred_at_the_same_time(node: Node) -> None:
    tree = node.tree()
    folder, begun = node.root / "bin", node.root / "begun"
    folder.mkdir()
    write_script(  # ends when three of it run
        folder / "rsync",
        f'case "$*" in *--list-only*) exec {RSYNC} "$@" ;; esac\necho $$ >> {begun}\n'
        f'while [ "$(wc -l < {begun})" -lt 3 ]; do sleep 0.02; done\nexec {RSYNC} "$@"',
    )
    node.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    node.run("pack", tree, "-o", "node:x.pack", "--shards", 3, "--transfers", 3, status=0)
    assert node.names("home") == ["x.pack"]
    begun.unlink()
    node.run("unpack", "node:x.pack", "--transfers", 3, status=0)
    assert facts_of(node.root / "x") == facts_of(tree)


@pytest.mark.system
def test_an_archive_is_sent_unchanged(node: Node) -> None:
    pack(node.tree(), node.root / "x.pack", shards=2)
    done = node.run("pack", "x.pack", "-o", "node:~/sent.pack", status=0)
    names = ["00000.tar.zst", "00001.tar.zst", "index"]
    assert node.names("home") == ["sent.pack"] and node.names("home/sent.pack") == names
    for name in names:
        sent = node.root / "home" / "sent.pack" / name
        assert sent.read_bytes() == (node.root / "x.pack" / name).read_bytes()
    assert re.fullmatch(r"node:~/sent.pack: (\S+ MB) of \1 sent\n", done.stderr)


@pytest.mark.exhaustive
def test_a_directory_that_changed_after_a_kill_is_packed_again(node: Node) -> None:
    tree = node.tree()
    node.wrap_rsync(rate=512, most=2)
    words = ["pack", tree, "-o", "node:x.pack", "--shards", 4, "--transfers", 2]
    start_until(node, words, lambda: count_arrived(node.root / "home") > SIZE)
    (tree / "f0").unlink()
    (tree / "link").unlink()
    (tree / "f1").write_bytes(b"short")
    node.wrap_rsync()
    node.run(*words[:4], "--shards", 1, status=0)
    assert node.names("home") == ["x.pack"]
    assert node.names("home/x.pack") == ["00000.tar.zst", "index"]
    Archive(node.root / "home" / "x.pack").unpack(node.root / "back")
    assert facts_of(node.root / "back") == facts_of(tree)


@pytest.mark.system
def test_a_longer_file_of_an_earlier_transfer_is_replaced(node: Node) -> None:
    archive = node.root / "home" / "x.pack"
    pack(node.tree(), archive, shards=2)
    copy = node.root / ".x.pario-transfer" / "pack"
    copy.mkdir(parents=True)
    (copy / "00000.tar.zst").write_bytes(bytes(3 * SIZE))
    (copy / "00001.tar.zst").write_bytes(bytes(100))
    (copy / "00002.tar.zst").write_bytes(bytes(100))
    node.run("unpack", "node:x.pack", status=0)
    assert facts_of(node.root / "x") == facts_of(node.root / "tree")


@pytest.mark.system
def test_a_full_disk_is_named_and_the_command_continues(node: Node) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: a small tmpfs")
    tree, home = node.tree(), node.root / "home"
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", home]
    if run_command(mount).returncode:
        pytest.skip("tmpfs cannot be mounted")
    try:
        words = ["pack", tree, "-o", f"node:{home}/x.pack", "--shards", 4]
        done = node.run(*words, status=2)
        assert f"node:{home}/.x.pack." in done.stderr and "No space left on device" in done.stderr
        assert "the same command continues the transfer" in done.stderr
        there = count_arrived(home)
        run_command(["mount", "-o", "remount,size=6m", home], status=0)
        log = node.wrap_rsync()
        node.run(*words, status=0)
        assert sum(bytes_sent(log).values()) <= 4 * SIZE + 200_000 - there
        assert node.names("home") == ["x.pack"]
        Archive(home / "x.pack").unpack(node.root / "back")
        assert facts_of(node.root / "back") == facts_of(tree)
    finally:
        run_command(["umount", "-l", home], status=0)


def test_hosts_without_connection_are_named(node: Node) -> None:
    tree = node.tree()
    for words in (["pack", tree, "-o", "nowhere:x.pack"], ["unpack", "nowhere:x.pack"]):
        done = node.run(*words, status=2)
        expected = "nowhere: no connection: ssh: Could not resolve hostname nowhere"
        assert done.stderr == f"pario {words[0]}: {expected}\n"
    assert node.names() == ["home", "tree"]


def test_hosts_without_rsync_are_named(node: Node) -> None:
    tree = node.tree()
    script, programs = Path(node.remote_shell), node.root.parent / "programs"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    script.write_text(script.read_text().replace("PATH=/usr/bin:/bin", f"PATH={programs}"))
    for words in (["pack", tree, "-o", "node:x.pack"], ["unpack", "node:x.pack"]):
        done = node.run(*words, status=2)
        assert done.stderr == f"pario {words[0]}: node: rsync is not installed there\n"
    assert node.names() == ["home", "tree"] and node.names("home") == []


@pytest.mark.system
def test_places_that_cannot_be_used_are_refused_before_the_work(node: Node) -> None:
    tree = node.tree()
    (node.root / "home" / "taken").mkdir()
    expected = {
        ("pack", "tree", "-o", "node:taken"): "node:taken: it exists; expected",
        ("pack", "tree", "-o", "node:no/x"): "node:no/x: mkdir: cannot create directory",
        ("unpack", "node:none.pack"): "node:none.pack: no such archive; expected",
        ("unpack", "node:x.pack", "-o", "tree"): "tree exists; expected",
        ("unpack", "node:x.pack", "f0", "--stdout"): "expected no --stdout",
        ("pack", "tree", "-o", "node::module"): "expected HOST:PATH",
        ("pack", "tree", "-o", "-oProxyCommand=id:x"): "expected",
        ("pack", "tree", "--output=-oProxyCommand=id:x"): "expected HOST:PATH",
        ("pack", "tree", "-o", "node:"): "expected HOST:PATH",
    }
    for words, text in expected.items():
        assert text in node.run(*words, status=2).stderr, words
    assert node.names() == ["home", "tree"] and node.names("home") == ["taken"]
    assert tree.is_dir()


@pytest.mark.system
def test_an_output_in_a_missing_directory_is_refused(node: Node) -> None:
    node.tree()
    node.run("pack", "tree", "-o", "node:x.pack")
    done = node.run("unpack", "node:x.pack", "-o", "no/out", status=2)
    assert "/no: no such directory" in done.stderr


@pytest.mark.exhaustive
def test_one_process_transfers_a_directory(node: Node) -> None:
    tree = node.tree()
    node.wrap_rsync(rate=64)
    words = [*PARIO, "pack", tree, "-o", "node:x.pack", "--shards", 2]
    with start_command(words, env=node.variables(), cwd=node.root):
        wait_until(lambda: count_arrived(node.root / "home"), "bytes arrive")
        done = node.run("pack", tree, "-o", "node:y.pack", status=2)
        assert ".tree.pario-transfer is in use by another transfer" in done.stderr


@pytest.mark.system
def test_names_that_the_shell_would_read_are_kept(node: Node) -> None:
    pack(node.tree(), node.root / "x.pack")
    name = "a b'c$(touch oops);*"
    node.run("pack", "x.pack", "-o", f"node:{name}", status=0)
    node.run("unpack", f"node:{name}", "-o", "back", status=0)
    assert node.names("home") == [name]
    assert facts_of(node.root / "back") == facts_of(node.root / "tree")


@pytest.mark.system
def test_a_login_shell_without_words_of_several_lines_suffices(node: Node) -> None:
    """csh is one."""
    tree, shell = node.tree(), node.root.parent / "csh"
    line_end = '"$(printf "\\n.")"'
    write_script(
        shell,
        f"end={line_end}; end=${{end%.}}\n"
        'case "$*" in *"$end"*) echo "Unmatched \'." >&2; exit 1;; esac\n'
        f'exec {node.remote_shell} "$@"',
    )
    node.remote_shell = str(shell)
    node.run("pack", tree, "-o", "node:x.pack", status=0)
    node.run("unpack", "node:x.pack", "-o", "back", status=0)
    assert facts_of(node.root / "back") == facts_of(tree)


@pytest.mark.system
def test_names_with_wildcards_are_no_patterns(node: Node) -> None:
    pack(node.tree(), node.root / "x.pack")
    (node.root / "tree" / "more").write_text("more")
    pack(node.root / "tree", node.root / "y.pack")
    node.run("pack", "x.pack", "-o", "node:run1", status=0)
    node.run("pack", "y.pack", "-o", "node:run[1]", status=0)
    node.run("unpack", "node:run[1]", "-o", "back", status=0)
    assert node.names("home") == ["run1", "run[1]"]
    assert (node.root / "back" / "more").read_text() == "more"


def test_a_local_directory_with_a_colon_is_unpacked(node: Node) -> None:
    pack(node.tree(), node.root / "12:30.pack")
    node.run("unpack", "12:30.pack", status=0)
    assert facts_of(node.root / "12:30") == facts_of(node.root / "tree")


def test_a_failed_pack_leaves_nothing(node: Node) -> None:
    tree = node.tree()
    limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh"]
    words = [*limited, *PARIO, "pack", tree, "-o", "node:x.pack"]
    done = run_command(words, env=node.variables(), cwd=node.root, status=2)
    assert "File too large" in done.stderr
    assert node.names() == ["home", "tree"] and node.names("home") == []


def test_host_paths_are_told_from_local_ones() -> None:
    found = {
        text: host_path(text)
        for text in ("a:b", "me@a:/b/", "[::1]:x", "./a:b", "/a:b", "a/b:c", "plain", "")
    }
    assert {text: (one.host, one.local) for text, one in found.items() if one} == {
        "a:b": ("a", "./b"),
        "me@a:/b/": ("me@a", "/b"),
        "[::1]:x": ("[::1]", "./x"),
    }
    assert HostPath("a", "~/x").sibling("y").local == "./y"
    assert HostPath("a", "/b/x/").sibling(".y").local == "/b/.y"


def test_missing_files_are_planned_by_size_and_time() -> None:
    source = {"same": (9, "1"), "part": (9, "1"), "new": (5, "1"), "other": (9, "1")}
    target = {"same": (9, "1"), "part": (6, "2"), "other": (9, "2"), "more": (1, "1")}
    assert missing_files(source, target) == [
        Missing("other", 9, 0, replaces=True),
        Missing("new", 5, 0, replaces=False),
        Missing("part", 9, 6, replaces=False),
    ]


def test_progress_counts_the_missing_bytes(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    target.mkdir()
    source.mkdir()
    whole = os.urandom(3 * SIZE)
    for name in ("a", "b"):
        (source / name).write_bytes(whole)
    (target / "b").write_bytes(whole[:SIZE])
    shown: list[tuple[int, int]] = []
    sent = transfer(source, target, list_files(source), 2, lambda *state: shown.append(state))
    assert (sent, shown[-1]) == (5 * SIZE, (5 * SIZE, 5 * SIZE))
    assert shown == sorted(shown) and {total for _, total in shown} == {5 * SIZE}
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"a": whole, "b": whole}
    assert transfer(source, target, list_files(source), 2, lambda *_: None) == 0
